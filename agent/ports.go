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

// Membership reads and changes etcd's member list.
type Membership interface {
	// SetClusterID sets this host's cluster, so that the list of another cluster is not taken for that of this one.
	SetClusterID(clusterID uint64)
	Members(ctx context.Context) (cluster.Membership, error)
	AddLearner(ctx context.Context, peerURL string) (cluster.Member, error)
	Promote(ctx context.Context, id uint64, leaderURL string) error
}

// Removal removes members from etcd's list.
type Removal interface {
	RemoveLearner(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
}

// Statuses queries members about themselves.
type Statuses interface {
	Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
	// Answers needs no quorum.
	Answers(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
}

// Observer observes the members.
type Observer interface {
	Statuses
	ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error)
	cluster.KnownEndpoints
	// User returns the etcd user of this host; empty if there is none.
	User() string
}

// Records reads keys in etcd.
type Records interface {
	Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error)
	// ReadAt reads one member's store, without a quorum.
	ReadAt(ctx context.Context, endpoint string, spans ...cluster.Span) (cluster.Range, error)
	ReadLast(ctx context.Context, prefix string, limit int64) (cluster.Range, error)
}

// Raft changes voters and the leader.
type Raft interface {
	Membership
	Removal
	Leadership
}

// Etcd is the agent's complete access to the cluster.
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

// Jobs start and stop the local etcd service. They only queue: the result is visible in its status.
type Jobs interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
}

// Environment sets the environment of the local etcd service.
type Environment interface {
	SetEnvironment(ctx context.Context, vars map[string]string) error
}

// Probe measures the disk under etcd's write-ahead log. Its methods never block.
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

// Recovery makes a cluster with a single member from the survivor's data, or from a snapshot. Its own methods may hang
// with the disk.
type Recovery interface {
	RecoveryCopy
	Read(ctx context.Context) (recovery.Log, error)
	Swap(ctx context.Context, w recovery.Work) ([]string, error)
}

// RecoveryCopy makes the copy for such a cluster. Its methods never block.
type RecoveryCopy interface {
	Copy(w recovery.Work)
	State() recovery.Copy
	Abandon()
}

// Leadership transfers etcd's leadership.
type Leadership interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
}

// Network probes the members from this host. Its methods never block.
type Network interface {
	Watch(members []network.Member, every time.Duration)
	Sights() []network.Sight
	ProbeNow(member uint64, since time.Duration)
}

// ExternalChecks are the external checks. Its methods never block.
type ExternalChecks interface {
	List(gates func(name string) health.Gate) []health.ExternalCheck
	Read(ctx context.Context) []health.ExternalCheckReading
}

// Machine is the host itself.
type Machine interface {
	// Reboot requests an orderly reboot and returns once it is in progress.
	Reboot(ctx context.Context) error
	// CheckReboot returns why a reboot would be refused now.
	CheckReboot(ctx context.Context) error
}

// Hooks are the operator's programs that run before etcd is stopped and after it is back. Its methods start or query
// them, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
	// Find returns why the command of that name could not be run here; nil if it can.
	Find(name string) error
}

// BootstrapExchange exchanges answers with the hosts that are to bootstrap the cluster automatically. Its methods never
// block.
type BootstrapExchange interface {
	Answers() []policy.BootstrapAnswer
	Publish(answer policy.BootstrapAnswer)
}
