// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is the loop that runs on every host: observe, decide, act.
//
// A round observes everything into one policy.View, asks policy.Decide what to do, publishes
// what it has seen and why it does what it does, and takes at most one step. The package
// promises:
//
//   - Nothing outside this loop renews the lock. A loop that hangs loses it, and with it the
//     right to act.
//   - Nothing in the loop waits longer than its bound. What may hang (the disk, a binary on it,
//     a step) runs beside the loop, once at a time, and its absence shows as an old value.
//   - A step starts only if it was decided on what was seen in its own round. One that needs the lock
//     (see policy.Steps) starts only under a lock that was confirmed by a fresh transaction and is
//     valid for as long as the step may take.
//   - What etcd has to do for the agents does not grow with the number of hosts that are no members
//     and have nothing to do; see observe/pace.go and publish/queue.go.
//   - What must survive a crash is in etcd or on disk, so that an agent that was killed anywhere
//     goes on from what it sees.
package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumd/quorumd/agent/act"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/persist"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Agent is one host's loop. Make it with New and run it once.
type Agent struct {
	opt  Options
	keys record.Keys

	*operate.Operator // answers the socket, beside Status and LookAgain
	actor             *act.Actor
	observer          *observe.Observer
	told              *publish.Publisher
	files             *hoststate.State
	reasons           observe.Since // of the decisions
	keeper            *persist.Persister
	lightly           bool          // the next round is one in between: it asks etcd for little
	full              time.Duration // when the last full round began, the light ones in between apart
	rounds            uint64
	last              policy.Decision
	taken             policy.Step // by the last round, if it took one

	wake  chan struct{}
	hurry atomic.Bool   // somebody waits for a fresh picture of the cluster
	begun atomic.Uint64 // the number of the round that runs, or has ended last
}

// Metrics gives the agent's metrics, for a registry.
func (a *Agent) Metrics() *publish.Metrics { return a.told.Metrics() }

// Status gives the picture of the last finished observation. It waits for nothing.
func (a *Agent) Status() control.Status { return a.told.Status() }

// Revision returns the number of the round that Status shows, and 0 before the first one.
func (a *Agent) Revision() uint64 { return a.told.Revision() }

// ClusterState gives the same for those who look again and again: etcd is not asked anew for it.
func (a *Agent) ClusterState() control.Status { return a.told.ClusterState() }

// Voters gives the list of voters for the forwarder of this host, as they were when the cluster was last reached; ok is
// false before that. It waits for nothing.
func (a *Agent) Voters() (l proxy.List, ok bool) { return a.told.Voters() }

// Fsyncs gives what the probe has measured lately, minute by minute, oldest first. It waits for nothing.
func (a *Agent) Fsyncs() []control.FsyncMinute { return a.told.Fsyncs() }

// Checks gives what is looked at on this machine, and where each check stands. It waits for nothing.
func (a *Agent) Checks() control.Checks { return a.told.Checks() }

// Run rounds until the context ends, then gives the lock and the presence back. etcd is left as
// it is.
func (a *Agent) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.wake:
		}
		if ctx.Err() != nil { // also when it is time for another round
			a.leave(ctx)
			return nil
		}
		select {
		case <-a.wake: // the round that begins now is the one that was asked for
		default:
		}
		if a.round(ctx) {
			timer.Reset(0) // a step was taken: look again at once
		} else {
			timer.Reset(a.again())
		}
	}
}

// again is when to look again after a round without a step. A round in between two full ones is light, and does not
// put the next full one off.
func (a *Agent) again() time.Duration {
	next, early := a.opt.Config.Timing.Interval, a.last.Again
	if a.lightly {
		next = max(0, a.full+next-a.opt.Now())
	}
	a.lightly = early > 0 && early < next
	if a.lightly {
		return early
	}
	return next
}

// leave is an orderly end: the next agent need not wait for leases to run out.
func (a *Agent) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opt.Config.Timing.CallTimeout)
	defer cancel()
	a.actor.Leave(ctx)
	a.told.Leave(ctx)
	a.observer.Save(true)
}

// Wake makes the next round start at once, and ask etcd.
func (a *Agent) Wake() {
	a.hurry.Store(true)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// round looks, decides and acts once. It tells whether to look again at once: a step has succeeded, and is another than
// the last one.
func (a *Agent) round(ctx context.Context) bool {
	a.rounds++
	a.begun.Store(a.rounds)
	began := a.opt.Now()
	if !a.lightly {
		a.full = began
	}
	a.actor.Renew(ctx)
	r := a.observer.Look(ctx, round.Input{
		Number: a.rounds, Did: a.actor.Did(), Hurry: a.hurry.Swap(false), Light: a.lightly, Behind: a.last.Behind,
		First: a.last.First, Quiet: a.last.Quiet,
	})
	a.checkLock(ctx, r)
	a.decide(r)
	if a.stale(r) {
		a.observer.Confirm(ctx, r)
		a.checkLock(ctx, r)
		a.decide(r)
	}
	if a.opt.Founding != nil {
		a.opt.Founding.Publish(policy.BootstrapAnswerOf(r.View))
	}
	a.keeper.Decided(ctx, r)
	a.RememberSnapshots(ctx, r)
	a.TakeSnapshotIfDue(ctx, r)
	a.TestRestoreIfDue(ctx, r)
	a.observer.Done(r)
	a.told.Show(r)
	a.observer.Save(false)
	first := r.Decision.Step.Kind.Info().Led
	if !first {
		a.told.Publish(ctx, r)
	}
	a.last = r.Decision
	done, acted := a.actor.Act(ctx, r)
	if first {
		a.told.Publish(ctx, r)
	}
	if acted {
		a.told.Completed(ctx, r, done)
		acted = done.Err == nil
	}
	if acted {
		a.hurry.Store(true) // what was seen before the step is not so any more
	}
	a.told.Metrics().Round(r, a.opt.Now()-began)
	if a.opt.Rounded != nil {
		a.opt.Rounded(r.Decision, r.Verdict)
	}
	if !acted {
		a.taken = policy.Step{}
		return false
	}
	return !a.repeats(r.Decision.Step)
}

// repeats tells whether the step just taken is the one of the round before as well. Then it has changed nothing that
// is seen, and is taken again at the usual pace: at once would be an etcd restarted without end, as fast as it can be.
func (a *Agent) repeats(step policy.Step) bool {
	step.Why = "" // may tell of times
	repeats := step == a.taken
	a.taken = step
	return repeats
}

// stale tells whether a round has decided something on what was carried over: a step, or that it is not quiet any more.
func (a *Agent) stale(r *round.Round) bool {
	if r.Decision.Step.Kind != policy.StepNone {
		return !r.Fresh()
	}
	return a.last.Quiet && !r.Decision.Quiet && r.Reachable && !r.Looked()
}

// checkLock gives a lock up that a linearizable read shows to be gone, though its lease may live.
func (a *Agent) checkLock(ctx context.Context, r *round.Round) {
	if r.Reachable && r.Did.Token != 0 && a.actor.Check(ctx, r.LockAt) { // one that was taken since is not in it yet
		r.Did = a.actor.Did()
	}
}

// decide asks the policy, and measures for how long its reasons have stood.
func (a *Agent) decide(r *round.Round) {
	r.Decision = policy.Decide(r.View)
	r.ReasonFor = map[policy.ReasonCode]time.Duration{}
	for _, reason := range r.Decision.Reasons {
		r.ReasonFor[reason.Code] = a.reasons.Of("reason/"+string(reason.Code), "", r.At, r.Number)
	}
	a.reasons.Forget(r.Number)
}
