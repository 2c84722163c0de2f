// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is the loop that runs on every host: observe, decide, act.
//
// A round collects all observations in one policy.View, calls policy.Decide, publishes the observations and the reasons
// for the decision, and takes at most one step. The package promises:
//
//   - Only this loop renews the lock. If the loop hangs, it loses the lock and with it the permission to act.
//   - Nothing in the loop waits longer than its timeout. A call that may hang (an access to the disk, a program on the
//     disk, a step) runs in its own goroutine, at most one per purpose. Until it returns, the loop uses the last value.
//   - A step starts only if it was decided from observations of its own round. A step that needs the lock (see
//     policy.Steps) starts only under a lock that a new transaction has confirmed and that is valid for as long as the
//     step may take.
//   - The load on etcd does not grow with the number of spares; see observe/pace.go and publish/queue.go.
//   - All state that must survive a crash is in etcd or on disk, so an agent that was killed at any point continues
//     from what it observes after its restart.
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

// Agent is one host's loop. Create it with New and run it once.
type Agent struct {
	opt  Options
	keys record.Keys

	*operate.Operator // handles the socket's requests, except those that Agent itself handles
	actor             *act.Actor
	observer          *observe.Observer
	publisher         *publish.Publisher
	files             *hoststate.State
	reasons           observe.Since // how long the reasons of the decisions have lasted
	keeper            *persist.Persister
	lightly           bool          // the next round is light, so it sends few requests to etcd
	full              time.Duration // when the last full round began
	rounds            uint64
	last              policy.Decision
	taken             policy.Step // step of the last round, without Why; zero if no step succeeded in that round

	wake  chan struct{}
	hurry atomic.Bool   // the next round must query etcd
	begun atomic.Uint64 // number of the current or last round
}

// Metrics returns the agent's metrics, for a registry.
func (a *Agent) Metrics() *publish.Metrics { return a.publisher.Metrics() }

// Status returns the state of the last round that has decided. It does not block. If the cluster state is old, it makes
// the next round query etcd.
func (a *Agent) Status() control.Status { return a.publisher.Status() }

// Revision returns the number of the round that Status shows, or 0 before the first round.
func (a *Agent) Revision() uint64 { return a.publisher.Revision() }

// ClusterState returns the same document as Status, for clients that poll. Unlike Status, it never makes the next round
// query etcd.
func (a *Agent) ClusterState() control.Status { return a.publisher.ClusterState() }

// Voters returns the current list of voters for this host's proxy. ok is false if there is none, for example without a
// quorum. It does not block.
func (a *Agent) Voters() (l proxy.List, ok bool) { return a.publisher.Voters() }

// Fsyncs returns the probe's recent measurements per minute, oldest first. It does not block.
func (a *Agent) Fsyncs() []control.FsyncMinute { return a.publisher.Fsyncs() }

// Checks returns all checks of this machine and their current results. It does not block.
func (a *Agent) Checks() control.Checks { return a.publisher.Checks() }

// Run runs rounds until the context ends, then releases the lock and deletes the host record. It leaves etcd running.
func (a *Agent) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.wake:
		}
		if ctx.Err() != nil { // do not start another round, even if one is due
			a.leave(ctx)
			return nil
		}
		select {
		case <-a.wake: // the round that begins now serves this request
		default:
		}
		if a.round(ctx) {
			timer.Reset(0) // a step was taken: observe again at once
		} else {
			timer.Reset(a.again())
		}
	}
}

// again returns how long to wait for the next round if it does not start at once, and decides whether that round is
// light. A light round does not delay the next full round.
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

// leave releases the lock and deletes the host record, so that the next agent does not have to wait for leases to
// expire.
func (a *Agent) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opt.Config.Timing.CallTimeout)
	defer cancel()
	a.actor.Leave(ctx)
	a.publisher.Leave(ctx)
	a.observer.Leave(ctx)
}

// Wake starts the next round at once and makes it query etcd.
func (a *Agent) Wake() {
	a.hurry.Store(true)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// round observes, decides and acts once. It reports whether to start the next round at once: after a successful step,
// unless the step repeats that of the previous round.
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
	if a.opt.BootstrapAnswers != nil {
		a.opt.BootstrapAnswers.Publish(policy.BootstrapAnswerOf(r.View))
	}
	a.keeper.Decided(ctx, r)
	a.RememberSnapshots(ctx, r)
	a.TakeSnapshotIfDue(ctx, r)
	a.TestRestoreIfDue(ctx, r)
	a.observer.Done(r)
	a.publisher.Show(r)
	a.observer.Save(false)
	first := r.Decision.Step.Kind.Info().Led
	if !first {
		a.publisher.Publish(ctx, r)
	}
	a.last = r.Decision
	done, acted := a.actor.Act(ctx, r)
	if first {
		a.publisher.Publish(ctx, r)
	}
	if acted {
		a.publisher.Completed(ctx, r, done)
		acted = done.Err == nil
	}
	if acted {
		a.hurry.Store(true) // the observations before the step are out of date
	}
	a.publisher.Metrics().Round(r, a.opt.Now()-began)
	if a.opt.Rounded != nil {
		a.opt.Rounded(r.Decision, r.Assessment)
	}
	if !acted {
		a.taken = policy.Step{}
		return false
	}
	return !a.repeats(r.Decision.Step)
}

// repeats reports whether the previous round took the same step. If so, the step had no visible effect, and the next
// attempt waits for the usual interval. Repeating it at once could restart etcd endlessly.
func (a *Agent) repeats(step policy.Step) bool {
	step.Why = "" // ignored, because it may contain times
	repeats := step == a.taken
	a.taken = step
	return repeats
}

// stale reports whether a round used old observations for a decision that needs current ones: a step, or a decision
// after which the cluster no longer counts as quiet (see policy.Decision).
func (a *Agent) stale(r *round.Round) bool {
	if r.Decision.Step.Kind != policy.StepNone {
		return !r.Fresh()
	}
	return a.last.Quiet && !r.Decision.Quiet && r.Reachable && !r.Looked()
}

// checkLock drops the lock if a linearizable read shows that the lock's key is gone or not this agent's, even if the
// lease still exists.
func (a *Agent) checkLock(ctx context.Context, r *round.Round) {
	// The read does not show a lock that was taken after it, so r.Did must already show the lock.
	if r.Reachable && r.Did.Token != 0 && a.actor.Check(ctx, r.LockAt) {
		r.Did = a.actor.Did()
	}
}

// decide calls the policy, and measures how long its reasons have lasted.
func (a *Agent) decide(r *round.Round) {
	r.Decision = policy.Decide(r.View)
	r.ReasonFor = map[policy.ReasonCode]time.Duration{}
	for _, reason := range r.Decision.Reasons {
		r.ReasonFor[reason.Code] = a.reasons.Of("reason/"+string(reason.Code), "", r.At, r.Number)
	}
	a.reasons.Forget(r.Number)
}
