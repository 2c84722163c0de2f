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

// Members changes the cluster's member list.
type Members interface {
	AddLearner(ctx context.Context, peerURL string) (cluster.Member, error)
	Promote(ctx context.Context, id uint64, leaderURL string) error
	RemoveLearner(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
}

// Peers identifies the other end of a connection, and transfers the leadership.
type Peers interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
	cluster.KnownEndpoints
	// User returns the etcd user of this host; "" if there is none.
	User() string
}

// Etcd is what steps need of the cluster.
type Etcd interface {
	Members
	Peers
	lock.Store
}

// Unit is the local etcd service. Requests to it are queued: its status shows the result.
type Unit interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	SetEnvironment(ctx context.Context, vars map[string]string) error
}

// Probe measures the disk of etcd's write-ahead log. Its method never blocks.
type Probe interface {
	InFlight() (age time.Duration, op string)
}

// Data is the local data directory. Its method may hang with the disk.
type Data interface {
	MoveAside(ctx context.Context) ([]string, error)
}

// Recovery makes a cluster of one member from a survivor's data. Swap may hang with the disk.
type Recovery interface {
	// Copy starts a copy in the background, unless one is being made.
	Copy(w recovery.Work)
	// Abandon stops a copy that is being made.
	Abandon()
	// Swap moves the old data aside and puts the copy in their place.
	Swap(ctx context.Context, w recovery.Work) ([]string, error)
}

// Machine is the host itself.
type Machine interface {
	// Reboot requests an orderly reboot, and returns once it has begun.
	Reboot(ctx context.Context) error
}

// Hooks are the operator's own programs. Its methods start or check a program, and never wait for it.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
}
