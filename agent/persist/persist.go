// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package persist brings what lies on this host's disk in line with what a round has decided: which cluster has
// answered, which member of it this host is, whether etcd may start by itself, what was asked of this host.
//
// It promises that the loop never waits for this host's disk. A note is written beside the loop, each kind once at a
// time, and one that fails is tried again in a later round. What is noted the policy decides; a request that a person
// has changed meanwhile is left alone.
package persist

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Etcd is where a rollout is stopped that this host cannot go on with.
type Etcd interface {
	Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (*clientv3.TxnResponse, error)
}

// Options are whose disk is written to, and by what.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string
	Etcd   Etcd
	Files  *hoststate.State
	Now    func() time.Duration // since boot, running on while suspended
	Logger *slog.Logger
	// Wake has the next round begin at once: this host's turn in a rollout was noted.
	Wake func()
	// Noting is told what is about to be written, by whose goroutine. It may be nil.
	Noting func(what string)
}

// Persister notes. Its methods are for the loop alone.
type Persister struct {
	opt    Options
	log    *slog.Logger
	keys   record.Keys
	files  *hoststate.State
	tooNew string // ID of the rollout of which it was told that this agent does not know its work

	met, member, lost, mount, founding, standby, domains, stretch, hold, request, removal, mutes poll.Look[struct{}]
}

// New makes one that has noted nothing.
func New(opt Options) *Persister {
	return &Persister{opt: opt, log: opt.Logger, keys: record.KeysFor(opt.Config.Cluster.Name), files: opt.Files}
}

// Decided carries out what a round has decided to note.
func (k *Persister) Decided(ctx context.Context, r *round.Round) {
	k.noteSelf(ctx, r)
	k.noteFounding(ctx, r)
	k.noteHold(ctx, r)
	k.noteRequest(ctx, r)
	k.noteRemoval(ctx, r)
	k.noteMutes(ctx, r)
}

const (
	noteEvery = 2 * time.Second // how often it is tried to note something
	noteBound = 5 * time.Second // of a note that may hang with the disk
)

// note writes something beside the loop, unless a note of that kind is being written or was just tried.
func (k *Persister) note(ctx context.Context, kind *poll.Look[struct{}], what, failed string,
	write func(context.Context) error,
) {
	kind.Refresh(ctx, k.opt.Now, noteEvery, noteBound, func(ctx context.Context) (struct{}, error) {
		if k.opt.Noting != nil {
			k.opt.Noting(what)
		}
		err := write(ctx)
		if err != nil {
			k.log.Error(failed, "error", err)
		}
		return struct{}{}, err
	})
}
