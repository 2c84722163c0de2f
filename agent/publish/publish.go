// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish tells what a round has seen and decided: the other hosts by this host's record in etcd, people by the
// history, and whoever scrapes by metrics.
//
// It promises that nothing it does changes what is decided, that a record is written only over the one that was seen,
// and that a line of the history that etcd does not take is stored later, once and in its place: the newest 50 of them,
// as long as the agent runs. The host's record and
// the queue belong to the loop, which alone renews their lease; the rest is for everybody at once.
package publish

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/health"
)

// Etcd is what is asked of the cluster.
type Etcd interface {
	ReadLast(ctx context.Context, prefix string, limit int64) (cluster.Range, error)
	ReadAt(ctx context.Context, endpoint string, spans ...cluster.Span) (cluster.Range, error)
	Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (*clientv3.TxnResponse, error)
	Leases
}

// Leases are what records hang on that are to go away with their agent.
type Leases interface {
	Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error)
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) error
}

// Probe measures the disk under etcd's write-ahead log. Its method never waits.
type Probe interface {
	InFlight() (age time.Duration, op string)
}

// Options are who publishes, and by what.
type Options struct {
	Config   config.Config // complete: host.name and host.id are set
	Instance string        // the same for every process of this agent until the host reboots
	BootID   string
	Version  string // of quorumd

	Etcd   Etcd
	Probe  Probe
	Checks []health.Check       // what is looked at on this machine
	Now    func() time.Duration // since boot, running on while suspended
	Wall   func() time.Time
	Logger *slog.Logger
	// Hurry has the next round ask the cluster anew: somebody looks at an old picture. It must not wait.
	Hurry func()
	// Noting is told what is about to be written to this host's disk beside the loop. It may be nil.
	Noting func(what string)
}

func (o Options) noting(what string) {
	if o.Noting != nil {
		o.Noting(what)
	}
}

const (
	noteEvery = 2 * time.Second // how often it is tried to note who this agent is
	noteBound = 5 * time.Second // of a try, which may hang with the disk
)
