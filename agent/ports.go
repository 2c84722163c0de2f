// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// Membership reads and changes the member list of etcd.
type Membership interface {
	// Belongs says to which cluster this host belongs, so that another one's list is not taken for that one's.
	SetClusterID(clusterID uint64)
	Members(ctx context.Context) (cluster.Membership, error)
	AddLearner(ctx context.Context, peerURL string) (cluster.Member, error)
	Promote(ctx context.Context, id uint64, leaderURL string) error
}

// Removal takes members out of etcd's list.
type Removal interface {
	RemoveLearner(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
}

// Statuses asks members about themselves.
type Statuses interface {
	Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
	// Answers asks for nobody's agreement.
	Answers(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
}

// Observer asks who is at the other end.
type Observer interface {
	Statuses
	ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error)
	cluster.KnownEndpoints
	// Who names as whom etcd sees this host; empty for nobody.
	User() string
}

// Records reads what lies in etcd.
type Records interface {
	Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error)
	// ReadAt gives what one member holds, whoever agrees.
	ReadAt(ctx context.Context, endpoint string, spans ...cluster.Span) (cluster.Range, error)
	ReadLast(ctx context.Context, prefix string, limit int64) (cluster.Range, error)
}

// Raft changes who votes and who leads.
type Raft interface {
	Membership
	Removal
	Leadership
}

// Etcd is all that the agent asks of the cluster.
type Etcd interface {
	Raft
	Observer
	Records
	lock.Store
}

// Unit is the local etcd service.
type Unit interface {
	Status(ctx context.Context) (systemd.Status, error)
	Jobs
	Environment
}

// Jobs start and stop the local etcd service. They are queued: how they go is seen from its status.
type Jobs interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
}

// Environment is that of the local etcd service.
type Environment interface {
	SetEnvironment(ctx context.Context, vars map[string]string) error
}

// Probe measures the disk under etcd's write-ahead log. Its methods never wait.
type Probe interface {
	Read() disk.Reading
	InFlight() (age time.Duration, op string)
	SetBurst(on bool)
}

// DataDir is the local data directory. Its methods may hang with the disk.
type DataDir interface {
	Inspect(ctx context.Context) (datadir.Contents, error)
	MoveAside(ctx context.Context) ([]string, error)
}

// Recovery makes of the data of one member that is left, or of a snapshot, a cluster of that member alone. Its own
// methods may hang with the disk.
type Recovery interface {
	RecoveryCopy
	Read(ctx context.Context) (recovery.Log, error)
	Swap(ctx context.Context, w recovery.Work) ([]string, error)
}

// RecoveryCopy is the copy that such a cluster goes on with. Its methods never wait.
type RecoveryCopy interface {
	Copy(w recovery.Work)
	State() recovery.Copy
	Abandon()
}

// Leadership moves etcd's leadership.
type Leadership interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
}

// Network looks at the members from this host. Its methods never wait.
type Network interface {
	Watch(members []network.Member, every time.Duration)
	Sights() []network.Sight
	ProbeNow(member uint64, since time.Duration)
}

// ExternalChecks are the operator's own checks. Its methods never wait.
type ExternalChecks interface {
	List(gates func(name string) health.Gate) []health.ExternalCheck
	Read(ctx context.Context) []health.ExternalCheckReading
}

// Machine is the host itself.
type Machine interface {
	// Reboot asks for an orderly reboot and returns once it is under way.
	Reboot(ctx context.Context) error
	// CheckReboot returns why it would be refused now.
	CheckReboot(ctx context.Context) error
}

// Hooks are the operator's own programs that run before etcd is stopped and after it is back. Its
// methods start or look, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
	// Find tells why the command of that name could not be run here; nil when it can.
	Find(name string) error
}

// BootstrapExchange is the word of the hosts that are to make the cluster by themselves. Its methods never wait.
type BootstrapExchange interface {
	Answers() []policy.BootstrapAnswer
	Publish(answer policy.BootstrapAnswer)
}
