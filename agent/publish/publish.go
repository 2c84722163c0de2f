// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish publishes what a round has observed and decided: to the other hosts in this host's record in etcd, to
// operators in the history, and to monitoring systems as metrics.
//
// It promises that publishing never changes a decision; that a write replaces only the revision of a record that was
// read; and that history lines which etcd did not accept (at most the newest 50) are stored later, once each and in
// order, unless the agent exits first. Only the loop may use the host record and the queue, and only the loop renews
// their lease. Everything else is safe for concurrent use.
package publish

import (
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// Options are the configuration and dependencies of a Publisher.
type Options struct {
	Config   config.Config // complete: host.name and host.id are set
	Instance string        // ID of this agent, the same until the host reboots
	BootID   string
	Version  string // of quorumd

	Etcd   cluster.Etcd
	Probe  disk.Prober
	Checks []health.Check       // the checks of this machine
	Now    func() time.Duration // since boot, including time suspended
	Wall   func() time.Time
	Logger *slog.Logger
	// Hurry makes the next round query the cluster, because a client has read an old status. It must not block.
	Hurry func()
	// Noting is called before a write to this host's disk from outside the loop. It may be nil.
	Noting func(what string)
}

func (o Options) noting(what string) {
	if o.Noting != nil {
		o.Noting(what)
	}
}

const (
	noteEvery = 2 * time.Second // interval of the attempts to record this agent's identity
	noteBound = 5 * time.Second // timeout of an attempt, which may hang with the disk
)
