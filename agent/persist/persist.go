// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package persist writes to this host's disk what a round has decided: the cluster that answered, this host's member
// ID, the start guard, and the state of this host's requests. It also changes the rollout's record in etcd if the round
// has decided to stop or pause the rollout.
//
// It promises that the loop never waits for this host's disk. Files are written in the background, with at most one
// write per kind in flight, and a later round retries a failed write. The policy decides what is written. If an
// operator has changed a request since the decision, the request is not touched.
package persist

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Options configure a Persister.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string
	Etcd   cluster.Etcd
	Files  *hoststate.State
	Now    func() time.Duration // since boot, including time in suspend
	Logger *slog.Logger
	// Wake starts the next round immediately. It is called after a request of this host was written or called off.
	Wake func()
	// Noting is called before each write, in the goroutine of the write. It may be nil.
	Noting func(what string)
}

// Persister writes to disk what rounds decide. Only the loop may call its methods.
type Persister struct {
	opt    Options
	log    *slog.Logger
	keys   record.Keys
	files  *hoststate.State
	tooNew string // ID of the rollout whose unsupported work was already logged

	lastCluster, member, lost, mount, automaticBootstrap, standby, domains, learners poll.Poller[struct{}]
	healthyPeriod, startGuard, request, removal, mutes                               poll.Poller[struct{}]
}

// New returns a Persister that has written nothing.
func New(opt Options) *Persister {
	return &Persister{opt: opt, log: opt.Logger, keys: record.KeysFor(opt.Config.Cluster.Name), files: opt.Files}
}

// Decided writes what a round has decided.
func (k *Persister) Decided(ctx context.Context, r *round.Round) {
	k.noteSelf(ctx, r)
	k.noteBootstrapAttempt(ctx, r)
	k.noteStartGuard(ctx, r)
	k.noteRequest(ctx, r)
	k.noteRemoval(ctx, r)
	k.noteMutes(ctx, r)
}

const (
	noteEvery = 2 * time.Second // minimum interval between attempts
	noteBound = 5 * time.Second // timeout of a write, which hangs if the disk does
)

// note starts a write in the background, unless one of that kind is in progress or was tried within noteEvery.
func (k *Persister) note(ctx context.Context, kind *poll.Poller[struct{}], what, failed string,
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

// noteStartGuard creates or removes the start guard as the round has decided.
func (k *Persister) noteStartGuard(ctx context.Context, r *round.Round) {
	want := r.Decision.Notes.StartGuard
	if k.guarded(want) {
		return
	}
	k.note(ctx, &k.startGuard, "guard", "cannot update the start guard", func(ctx context.Context) error {
		return k.guard(ctx, want)
	})
}

// guarded reports whether the start guard is already in the wanted state.
func (k *Persister) guarded(want policy.StartGuard) bool {
	held, known := k.files.StartGuarded()
	return want == policy.GuardUnchanged || known && held == (want == policy.GuardSet)
}

// guard creates or removes the start guard if necessary.
func (k *Persister) guard(ctx context.Context, want policy.StartGuard) error {
	if k.guarded(want) {
		return nil
	}
	return k.files.SetStartGuard(ctx, want == policy.GuardSet)
}
