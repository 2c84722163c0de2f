// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package act takes the steps that the policy decided, one at a time. It is the only package that holds the lock.
//
// It promises:
//
//   - Only the loop keeps the lock alive, by calling Renew. If the loop, a step or the disk hangs, the lock expires,
//     and with it the permission to act.
//   - A step that needs the lock starts only after a new transaction has confirmed the lock, and only if the lock
//     remains valid for the longest time that the step may take. No step starts from observations that are too old.
//   - The loop waits for a step no longer than the step's time limit and a short grace. A step that does not return
//     keeps running in the background, and no other step starts meanwhile.
//   - Act returns exactly one Completion for every step that ends or cannot start, in the step's own round or in a
//     later one. A step has none if it is skipped because its observations are too old or because an earlier step has
//     outlived its own round.
//
// The package decides nothing. Did returns a copy of the actor's state, including the lock.
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
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/systemd"
)

// Options hold the configuration and the dependencies of an Actor.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string

	Etcd  cluster.Etcd
	Unit  systemd.Unit
	Probe disk.Prober
	// MoveDataAside moves the data directory's content aside. It may hang if the disk hangs.
	MoveDataAside func(ctx context.Context) ([]string, error)
	Recovery      recovery.Rebuilder // nil if this host's data cannot be rebuilt
	// Reboot requests an orderly reboot, and returns when the reboot has begun. It is nil if the agent cannot reboot
	// this machine.
	Reboot func(ctx context.Context) error
	Hooks  hooks.Programs // nil if there are none
	// Maintenance frees space after a NOSPACE alarm, and enables or cancels etcd's downgrade job; nil if the agent
	// cannot. Its methods are not part of Etcd, so that the simulation need not implement them.
	Maintenance *cluster.Client
	// DeleteOldDatabase deletes the database from before a defragmentation; nil if the agent cannot defragment.
	DeleteOldDatabase func(ctx context.Context) error

	Files *hoststate.State

	// Line completes a history line, and returns the key to store it under.
	Line func(revision int64, line record.Line) (string, record.Line)
	// ForgetData is called when a step may change the data directory, and ForgetBinary when etcd's binary may have been
	// replaced.
	ForgetData, ForgetBinary func()

	Now    func() time.Duration // since boot, including time suspended
	Wall   func() time.Time
	Logger *slog.Logger
	// Stepping is called before every step and after its end. It may be nil.
	Stepping func(step policy.Step, done bool)
}

// Actor takes steps. Create it with New. Only the loop may call its methods.
type Actor struct {
	opt  Options
	log  *slog.Logger
	keys record.Keys
	lock *lock.Lock
	ways map[policy.StepKind]way

	defrag    defragmentation
	claimSent time.Duration // when the last claim of a permit to free space was sent

	renewed time.Duration    // when the last attempt to take the lock, or the last successful renewal, began
	running *task            // a step that outlived its own round
	did     round.ActorState // what this process has done; Did adds the lock, the running step and defragmentations
}

// task is a step that has started.
type task struct {
	step  policy.Step
	on    *round.Round // the round that decided the step
	began time.Duration
	ended *record.Line // the history line for the operation that the step ended; nil if it ended none
	done  chan error
}

// lockMarginShare sets the safety margin: the holder stops using the lock one tenth of the TTL before the lease
// expires. The margin covers clocks that run at different rates and a process that wakes up late.
const lockMarginShare = 10

// New returns an Actor that has taken no step and holds no lock.
func New(opt Options) *Actor {
	c := opt.Config
	a := &Actor{opt: opt, log: opt.Logger, keys: record.KeysFor(c.Cluster.Name)}
	a.lock = lock.New(opt.Etcd, lock.Options{
		Keys: a.keys, Host: c.Host.ID, Name: c.Host.Name,
		TTL: c.Timing.LockTTL, Margin: c.Timing.LockTTL / lockMarginShare, Now: opt.Now, Wall: opt.Wall,
	})
	a.did.UpdateSent = a.now() // an earlier process may have sent an update just now
	a.ways = map[policy.StepKind]way{}
	for _, w := range a.table() {
		a.ways[w.kind] = w
	}
	return a
}

// stepGrace is how long the loop still waits for a step after the step's time limit. A step's calls end with the step's
// context, unless the disk hangs.
const stepGrace = 500 * time.Millisecond

// Act takes the step that r has decided, and returns its Completion if the step ends in time or cannot start. It skips
// the step, without a Completion, if r's observations are older than maxAge. If an earlier step has outlived its own
// round, Act takes no step; it returns the Completion of the earlier step if that step has ended.
func (a *Actor) Act(ctx context.Context, r *round.Round) (round.Completion, bool) {
	step := r.Decision.Step
	switch {
	case a.running != nil:
		return a.collect(r)
	case step.Kind == policy.StepNone:
		return round.Completion{}, false
	}
	if age, limit := a.opt.Now()-r.At, a.maxAge(); age > limit {
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
	timer := time.NewTimer(bound + stepGrace)
	defer timer.Stop()
	select {
	case err := <-t.done:
		return a.finished(t, err), true
	case <-timer.C:
		a.log.Error("step timed out", "step", step.Kind, "elapsed", bound+stepGrace)
		a.running = t
		return round.Completion{}, false
	}
}

// maxAge returns the maximum age of a round's observations when a step starts: one interval, and the time of
// observedCalls calls that time out.
func (a *Actor) maxAge() time.Duration {
	t := a.opt.Config.Timing
	return observedCalls*t.CallTimeout + t.Interval
}

// observedCalls is how many calls may time out between the start of a round and its step without making the round's
// observations too old.
const observedCalls = 4

// take does the work of a step in a goroutine outside the loop. The writes to this host's disk on which a step depends
// come before any change of the cluster or etcd's data, because the machine may go down at any moment.
func (a *Actor) take(ctx context.Context, w way, t *task) error {
	if a.lostLock(t.step) { // the machine may have been suspended since the lock was confirmed
		return lock.ErrLost
	}
	if w.first != nil {
		if err := w.first(ctx, t); err != nil {
			return err
		}
	}
	if guard := t.step.Guard; guard != policy.GuardUnchanged {
		if err := a.opt.Files.SetStartGuard(ctx, guard == policy.GuardSet); err != nil {
			return err
		}
	}
	if a.lostLock(t.step) { // the disk may have hung
		return lock.ErrLost
	}
	return w.do(ctx, t)
}

// lostLock reports whether a step needs the lock and this agent no longer holds it.
func (a *Actor) lostLock(step policy.Step) bool { return step.Kind.Info().Locked && !a.lock.MayAct() }

// notBegun returns the Completion of a step that could not start.
func (a *Actor) notBegun(r *round.Round, err error) round.Completion {
	step := r.Decision.Step
	a.log.Info("step skipped", "step", step.Kind, "error", err)
	a.fail(step.Kind, err)
	return round.Completion{Step: step, On: r, Err: err, Unsaid: true}
}

// collect returns the Completion of the late step, if that step has ended.
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

// finished returns the Completion of a step that has started, whether it ended in its own round or late. The Completion
// refers to the round that decided the step.
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
	case errors.Is(err, lock.ErrTaken) && step.Kind == policy.StepTakeLock, errors.Is(err, errPermitTaken):
		c.Unsaid = true // neither logged nor added to the history: another agent was first
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

// fail records a failed step for the policy and for operators.
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
