// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/recovery"
)

// Members changes who is a member of the cluster.
type Members interface {
	AddLearner(ctx context.Context, peerURL string) (cluster.Member, error)
	Promote(ctx context.Context, id uint64, leaderURL string) error
	RemoveLearner(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
}

// Peers tells who is at the other end, and moves the leadership.
type Peers interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
	cluster.KnownEndpoints
	// Who names as whom etcd sees this host; empty for nobody.
	User() string
}

// Etcd is what steps ask of the cluster.
type Etcd interface {
	Members
	Peers
	lock.Store
}

// Unit is the local etcd service. What is asked of it is queued: how it goes is seen from its status.
type Unit interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	SetEnvironment(ctx context.Context, vars map[string]string) error
}

// Probe measures the disk under etcd's write-ahead log. Its method never waits.
type Probe interface {
	InFlight() (age time.Duration, op string)
}

// Data is the local data directory. Its method may hang with the disk.
type Data interface {
	MoveAside(ctx context.Context) ([]string, error)
}

// Recovery makes of the data of one member that is left a cluster of that member alone. Swap may hang with the disk.
type Recovery interface {
	// Copy begins to make the copy beside the caller, unless one is being made.
	Copy(w recovery.Work)
	// Abandon ends a copy that is being made.
	Abandon()
	// Swap moves the old data aside and puts the copy in their place.
	Swap(ctx context.Context, w recovery.Work) ([]string, error)
}

// Machine is the host itself.
type Machine interface {
	// Reboot asks for an orderly reboot and returns once it is under way.
	Reboot(ctx context.Context) error
}

// Hooks are the operator's own programs. Its methods start or look, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
}
