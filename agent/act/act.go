// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package act takes the steps that were decided, one at a time, and alone holds the lock.
//
// It promises:
//
//   - Nothing but the loop, by Renew, keeps the lock alive. A loop that hangs, a step that hangs and a disk that hangs
//     lose it, and with it the right to act.
//   - A step that needs the lock starts only after a fresh transaction has confirmed it, valid for as long as the step
//     may take; and no step starts on what was seen too long ago.
//   - Nobody waits for a step longer than its bound. One that does not come back runs on beside the loop, and no other
//     begins meanwhile.
//   - Every step that comes back, in its own round or late, comes to one end, of which Act tells once.
//
// It decides nothing. What it holds and has done it hands out by value: see Did.
package act

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Options are who acts, and by what.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string

	Etcd  Etcd
	Unit  Unit
	Probe Probe
	Data  Data
	// Recovery makes a cluster of a survivor's data; nil when it cannot.
	Recovery Recovery
	Machine  Machine // nil when it cannot be rebooted from here
	Hooks    Hooks   // nil when there are none
	Files    *hoststate.State

	// Line makes of a line of the history one that is complete, and the key under which it is to be stored.
	Line func(revision int64, line record.Line) (string, record.Line)
	// ForgetData and ForgetBinary tell that a step changes the data directory, or that etcd's binary may be another.
	ForgetData, ForgetBinary func()

	Now    func() time.Duration // since boot, running on while suspended
	Wall   func() time.Time
	Logger *slog.Logger
	// Stepping is told of every step before it starts and after it has ended. It may be nil.
	Stepping func(step policy.Step, done bool)
}

// Actor takes steps. Make it with New; its methods are for the loop alone.
type Actor struct {
	opt  Options
	log  *slog.Logger
	keys record.Keys
	lock *lock.Lock
	ways map[policy.StepKind]way

	renewed time.Duration    // when the lock was last renewed
	running *task            // what has not come back in its own round
	did     round.ActorState // what this process has done, but for the lock and for what runs
}

// task is a step that has begun.
type task struct {
	step  policy.Step
	on    *round.Round // in which it was decided
	began time.Duration
	ended *record.Line // with which it has ended an operation
	done  chan error
}

// lockMarginShare is the part of the lock's time to live by which its validity ends early: room
// for clocks that run at different rates and for a process that is woken late.
const lockMarginShare = 10

// New makes one that has done nothing yet and holds no lock.
func New(opt Options) *Actor {
	c := opt.Config
	a := &Actor{opt: opt, log: opt.Logger, keys: record.KeysFor(c.Cluster.Name)}
	a.lock = lock.New(opt.Etcd, lock.Options{
		Keys: a.keys, Host: c.Host.ID, Name: c.Host.Name,
		TTL: c.Timing.LockTTL, Margin: c.Timing.LockTTL / lockMarginShare, Now: opt.Now, Wall: opt.Wall,
	})
	a.ways = map[policy.StepKind]way{}
	for _, w := range a.table() {
		a.ways[w.kind] = w
	}
	return a
}

// afterwards is how much longer than its own bound a step is waited for: what it calls ends with
// its context, unless the disk hangs.
const afterwards = 500 * time.Millisecond

// Act takes the decided step. It tells how a step went when one has come back: this one, or one that was begun in an
// earlier round.
func (a *Actor) Act(ctx context.Context, r *round.Round) (round.Completion, bool) {
	step := r.Decision.Step
	switch {
	case a.running != nil:
		return a.collect(r)
	case step.Kind == policy.StepNone:
		return round.Completion{}, false
	}
	if age, limit := a.opt.Now()-r.At, a.oldest(); age > limit {
		a.log.Info("step skipped: its view is out of date",
			"step", step.Kind, "age", age, "limit", limit)
		return round.Completion{}, false
	}
	way, known := a.ways[step.Kind]
	if !known {
		return a.notBegun(r, fmt.Errorf("unknown step %q", step.Kind)), true
	}
	bound := time.Duration(step.Kind.Info().Calls) * a.opt.Config.Timing.CallTimeout
	stepCtx, cancel, err := a.stepContext(ctx, step, bound)
	if err != nil {
		return a.notBegun(r, err), true
	}
	a.stepping(step, false)
	t := &task{step: step, on: r, began: a.opt.Now(), done: make(chan error, 1)}
	if way.begins != nil {
		way.begins(t)
	}
	go func() {
		defer cancel()
		t.done <- a.take(stepCtx, way, t)
	}()
	timer := time.NewTimer(bound + afterwards)
	defer timer.Stop()
	select {
	case err := <-t.done:
		return a.finished(t, err), true
	case <-timer.C:
		a.log.Error("step timed out", "step", step.Kind, "elapsed", bound+afterwards)
		a.running = t
		return round.Completion{}, false
	}
}

// oldest is how old a round's observations may be when a step is taken on them: as old as the
// calls that make them can take.
func (a *Actor) oldest() time.Duration {
	t := a.opt.Config.Timing
	return observedCalls*t.CallTimeout + t.Interval
}

// observedCalls is how many calls stand between the first observation of a round and its step.
const observedCalls = 4

// take does the work of a step, beside the loop. What lies on this host's disk comes before etcd or its data are
// touched: the machine may go down at any moment.
func (a *Actor) take(ctx context.Context, w way, t *task) error {
	if a.lostLock(t.step) { // the machine was suspended since it was confirmed
		return lock.ErrLost
	}
	if w.first != nil {
		if err := w.first(ctx, t); err != nil {
			return err
		}
	}
	if guard := t.step.Guard; guard != policy.HoldAsIs {
		if err := a.opt.Files.SetStartGuard(ctx, guard == policy.HoldBack); err != nil {
			return err
		}
	}
	if a.lostLock(t.step) { // the disk may have hung
		return lock.ErrLost
	}
	return w.do(ctx, t)
}

// lostLock tells whether a step needs the lock and may not be taken under it any more.
func (a *Actor) lostLock(step policy.Step) bool { return step.Kind.Info().Locked && !a.lock.MayAct() }

// notBegun is the end of a step that could not begin.
func (a *Actor) notBegun(r *round.Round, err error) round.Completion {
	step := r.Decision.Step
	a.log.Info("step skipped", "step", step.Kind, "error", err)
	a.fail(step.Kind, err)
	return round.Completion{Step: step, On: r, Err: err, Unsaid: true}
}

// collect gives the end of a step that has come back late.
func (a *Actor) collect(now *round.Round) (round.Completion, bool) {
	select {
	case err := <-a.running.done:
		late := a.running
		a.running = nil
		a.log.Warn("late step returned", "step", late.step.Kind, "elapsed", now.At-late.began)
		return a.finished(late, err), true
	default:
		return round.Completion{}, false
	}
}

// finished is the end of every step that has begun, whether it came back in its own round or late. What the step has
// done is as its own round wanted it.
func (a *Actor) finished(t *task, err error) round.Completion {
	step, way := t.step, a.ways[t.step.Kind]
	c := round.Completion{Step: step, On: t.on, Err: err, Unsaid: err == nil && way.unsaid}
	a.did.Steps++
	a.did.Failed = policy.FailedStep{}
	if err != nil {
		a.fail(step.Kind, err)
	}
	a.stepping(step, true)
	switch {
	case errors.Is(err, lock.ErrTaken) && step.Kind == policy.StepTakeLock:
		c.Unsaid = true // somebody was quicker
		return c
	case err != nil:
		a.log.Warn("step failed", "step", step.Kind, "why", step.Why, "error", err)
		return c
	}
	if way.done != nil {
		way.done(t)
	}
	c.Ended = t.ended
	a.log.Info("step done", "step", step.Kind, "why", step.Why)
	return c
}

// fail remembers the step that failed last, for people.
func (a *Actor) fail(kind policy.StepKind, err error) {
	a.did.Failed = policy.FailedStep{Kind: kind, Text: err.Error(), Full: errors.Is(err, rpctypes.ErrNoSpace)}
	if cluster.Denied(err) {
		a.did.Failed.Denied, a.did.Failed.Text = true, cluster.DeniedText(err, a.opt.Etcd.User(), a.keys.Prefix())
	}
}

func (a *Actor) stepping(step policy.Step, done bool) {
	if a.opt.Stepping != nil {
		a.opt.Stepping(step, done)
	}
}

func (a *Actor) now() round.Stamp { return round.Stamp{Is: true, At: a.opt.Now()} }
