// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// Did returns whether this process holds the lock, and what it has done.
func (a *Actor) Did() round.ActorState {
	now, d := a.opt.Now(), a.did
	d.Defragmenting, d.Defragmented = a.defrag.state()
	d.Token, d.ValidUntil = a.lock.Token(), now+a.lock.ValidFor()
	if t := a.running; t != nil {
		d.Stuck = fmt.Sprintf("%s has been running for %s", t.step.Kind, durationfmt.Seconds(now-t.began))
	}
	return d
}

// Renew keeps a held lock alive unless a step or the local disk hangs, because a holder that cannot act must not block
// the other hosts. If renewal has failed for too long, it releases the lock.
func (a *Actor) Renew(ctx context.Context) {
	t := a.opt.Config.Timing
	if a.lock.Token() == 0 || a.opt.Now()-a.renewed < t.RenewEvery {
		return
	}
	if a.running != nil && a.opt.Now()-a.running.began > t.RenewGiveUp {
		a.log.Warn("lock not renewed: a step hangs", "step", a.running.step.Kind)
		return
	}
	if age, op := a.opt.Probe.InFlight(); age > a.opt.Config.Disk.Stall {
		a.log.Warn("lock not renewed: the disk hangs", "operation", op, "for", age)
		return
	}
	sent := a.opt.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*t.CallTimeout)
	defer cancel()
	if err := a.lock.Renew(ctx); err != nil {
		a.log.Warn("cannot renew the lock", "error", err, "valid_for", a.lock.ValidFor())
		if sent-a.renewed > t.RenewGiveUp {
			a.log.Error("lock released: renewal timed out", "after", sent-a.renewed)
			_ = a.lock.Release(ctx) // if etcd cannot be reached, the lease expires
		}
		return
	}
	a.renewed = sent
}

// Check releases the lock if a linearizable read has found a different token, which means that the lock is lost
// although its lease may still exist. It reports whether it released the lock.
func (a *Actor) Check(ctx context.Context, found int64) bool {
	token := a.lock.Token()
	if token == 0 || token == found {
		return false
	}
	a.log.Warn("lock lost", "token", token)
	_ = a.lock.Release(ctx) // if etcd cannot be reached, the lease expires
	return true
}

// Leave stops a running defragmentation and releases the lock, so that the next agent need not wait for the lease to
// expire.
func (a *Actor) Leave(ctx context.Context) {
	a.defrag.stop()
	if a.lock.Token() == 0 {
		return
	}
	if err := a.lock.Release(ctx); err != nil {
		a.log.Warn("cannot release the lock; it expires with its lease", "error", err)
	}
}

// stepContext returns the context of a step, with the step's time limit. If the step needs the lock, it confirms the
// lock first.
func (a *Actor) stepContext(ctx context.Context, step policy.Step, bound time.Duration) (
	context.Context, context.CancelFunc, error,
) {
	if !step.Kind.Info().Locked {
		stepCtx, cancel := context.WithTimeout(ctx, bound)
		return stepCtx, cancel, nil
	}
	return a.lock.Confirm(ctx, bound, a.opt.Config.Timing.StepMargin)
}
