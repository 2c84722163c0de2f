// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// runningStep is a step that has begun. One that does not come back within its bound runs on
// beside the loop, which takes no other step meanwhile.
type runningStep struct {
	step  policy.Step
	on    *round.Round // in which it was decided
	began time.Duration
	done  chan error
}

func (s *runningStep) text(now time.Duration) string {
	return fmt.Sprintf("%s has not come back for %s", s.step.Kind, (now - s.began).Round(time.Second))
}

// afterwards is how much longer than its own bound a step is waited for: what it calls ends with
// its context, unless the disk hangs.
const afterwards = 500 * time.Millisecond

// act takes the decided step, and tells whether it has succeeded.
func (a *Agent) act(ctx context.Context, r *round.Round) bool {
	if a.running != nil {
		return a.collect(ctx, r)
	}
	step := r.Decision.Step
	if step.Kind == policy.StepNone {
		return false
	}
	if age, limit := a.opt.Now()-r.At, a.oldest(); age > limit {
		a.log.Info("step not taken: what it was decided on is too old", "step", step.Kind, "age", age, "limit", limit)
		return false
	}
	bound := time.Duration(step.Kind.Info().Calls) * a.opt.Config.Timing.CallTimeout
	stepCtx, cancel, err := a.stepContext(ctx, step, bound)
	if err != nil {
		a.log.Info("step not taken", "step", step.Kind, "error", err)
		a.metrics.Step(step.Kind, err)
		a.fail(step.Kind, err)
		return false
	}
	a.stepping(step, false)
	switch step.Kind { // what the loop remembers is written by the loop only
	case policy.StepStartUnit:
		a.started = mark{value: "started", at: a.opt.Now()}
	case policy.StepTakeLock:
		a.renewed = a.opt.Now()
	case policy.StepPromote:
		a.promoted = mark{value: "sent", at: a.opt.Now()}
	case policy.StepReboot:
		a.rebooting = mark{value: "sent", at: a.opt.Now()}
	}
	running := &runningStep{step: step, on: r, began: a.opt.Now(), done: make(chan error, 1)}
	go func() {
		defer cancel()
		running.done <- a.take(stepCtx, r, step)
	}()
	timer := time.NewTimer(bound + afterwards)
	defer timer.Stop()
	select {
	case err := <-running.done:
		return a.finished(ctx, r, running, err)
	case <-timer.C:
		a.log.Error("step has not come back", "step", step.Kind, "after", bound+afterwards)
		a.running = running
		return false
	}
}

// oldest is how old a round's observations may be when a step is taken on them: as old as the
// calls that make them can take.
func (a *Agent) oldest() time.Duration {
	t := a.opt.Config.Timing
	return observedCalls*t.CallTimeout + t.Interval
}

// observedCalls is how many calls stand between the first observation of a round and its step.
const observedCalls = 4

// fail remembers the step that failed last, for people.
func (a *Agent) fail(kind policy.StepKind, err error) {
	a.failed = policy.Failed{Kind: kind, Text: err.Error()}
	if cluster.Denied(err) {
		a.failed.Denied, a.failed.Text = true, a.deniedText(err)
	}
}

// collect ends a step that came back late, and tells whether it has succeeded.
func (a *Agent) collect(ctx context.Context, now *round.Round) bool {
	select {
	case err := <-a.running.done:
		late := a.running
		a.running = nil
		a.log.Warn("late step has come back", "step", late.step.Kind, "after", now.At-late.began)
		return a.finished(ctx, now, late, err)
	default:
		return false
	}
}

// stepContext gives the context for a step: bounded, and for a locked step only after the lock
// was confirmed.
func (a *Agent) stepContext(ctx context.Context, step policy.Step,
	bound time.Duration,
) (context.Context, context.CancelFunc, error) {
	if !step.Kind.Info().Locked {
		stepCtx, cancel := context.WithTimeout(ctx, bound)
		return stepCtx, cancel, nil
	}
	return a.lock.Confirm(ctx, bound, a.opt.Config.Timing.StepMargin)
}

func (a *Agent) stepping(step policy.Step, done bool) {
	if a.opt.Stepping != nil {
		a.opt.Stepping(step, done)
	}
}

// finished is the end of every step, whether it came back in its own round or late: it says how the step went, to the
// log, the metrics and the history, and tells whether it has succeeded. What the step has done is as its own round
// wanted it; the history is written as this round sees etcd.
func (a *Agent) finished(ctx context.Context, now *round.Round, s *runningStep, err error) bool {
	step := s.step
	a.steps++
	a.metrics.Step(step.Kind, err)
	a.failed = policy.Failed{}
	if err != nil {
		a.fail(step.Kind, err)
	}
	a.stepping(step, true)
	if errors.Is(err, lock.ErrTaken) && step.Kind == policy.StepTakeLock {
		return false // somebody was quicker
	}
	if err != nil {
		a.log.Warn("step failed", "step", step.Kind, "why", step.Why, "error", err)
		a.tell(ctx, now, step, record.StepError, record.FailedStep+step.Text()+": "+err.Error())
		return false
	}
	switch step.Kind {
	case policy.StepWriteEnv:
		a.environmentWritten = a.wantedEnvironment(s.on)
	case policy.StepRunHooks, policy.StepRunCommand:
		a.noteLaunch(s.on, step)
	}
	a.log.Info("step taken", "step", step.Kind, "why", step.Why)
	switch step.Kind {
	case policy.StepEndOp, policy.StepTakeLock, policy.StepReleaseLock:
	default: // the end writes its own line; the lock is no news
		a.tell(ctx, now, step, record.StepOK, step.Text())
	}
	return true
}

// tell writes the line of a step into the history: at once, if this round has asked the cluster that this host belongs
// to, or else when one has.
func (a *Agent) tell(ctx context.Context, now *round.Round, step policy.Step, outcome, text string) {
	e := publish.Entry{Kind: "step", Code: string(step.Kind), Outcome: outcome, Text: text}
	if now.EtcdAt == now.At && now.View.Cluster.Reachable && !now.View.Cluster.Foreign() {
		a.journal.Write(ctx, now.Revision, e)
		return
	}
	a.journal.Note(0, e)
}

// take does the work of a step.
func (a *Agent) take(ctx context.Context, r *round.Round, step policy.Step) error {
	if step.Kind.Info().Locked && !a.lock.MayAct() {
		return lock.ErrLost // the machine was suspended since it was confirmed
	}
	c := a.opt.Config
	switch step.Kind { //exhaustive:enforce
	case policy.StepTakeLock:
		return a.lock.Take(ctx, r.OpAt)
	case policy.StepReleaseLock:
		return a.lock.Release(ctx)
	case policy.StepBeginJoin:
		a.binary.Forget() // an etcd that was exchanged must not be started unseen
		if err := a.files.SetStandby(0); err != nil {
			return err
		}
		return a.lock.Begin(ctx, a.newOp(r, step))
	case policy.StepSetPhase:
		op := *r.Op
		op.Phase, op.MemberID = string(step.Phase), record.MemberID(step.MemberID)
		if op.Kind == policy.KindCycle && r.Request != nil {
			op.Until = r.Request.Until()
		}
		return a.lock.Advance(ctx, op, r.OpAt)
	case policy.StepRollBack:
		return a.rollBack(ctx, r, step)
	case policy.StepEndOp:
		return a.endOp(ctx, r, step)
	case policy.StepAddLearner:
		_, err := a.opt.Etcd.AddLearner(ctx, c.Etcd.PeerURL)
		return err
	case policy.StepPromote:
		return a.promote(ctx, r, step)
	case policy.StepRemoveLearner:
		return a.opt.Etcd.RemoveLearner(ctx, step.MemberID)
	case policy.StepBeginRemoval:
		return a.beginRemoval(ctx, r, step)
	case policy.StepRemoveMember:
		return a.opt.Etcd.RemoveMember(ctx, step.MemberID)
	case policy.StepMoveDataAside:
		moved, err := a.opt.Data.MoveAside(ctx)
		a.data.Forget()
		if len(moved) > 0 {
			a.log.Info("old data moved aside", "to", moved)
		}
		return err
	case policy.StepFinishBootstrap:
		return a.files.EndBootstrap()
	case policy.StepBeginCycle, policy.StepRunHooks, policy.StepMoveLeader, policy.StepRestartUnit, policy.StepTakeDown,
		policy.StepReboot, policy.StepRunCommand, policy.StepRecordAgain:
		return a.cycleStep(ctx, r, step)
	case policy.StepWriteEnv, policy.StepStartUnit, policy.StepStopUnit, policy.StepNone:
		return a.driveUnit(ctx, r, step)
	}
	return fmt.Errorf("cannot take step %q: this agent does not know it", step.Kind)
}

// driveUnit takes the steps that concern the local unit.
func (a *Agent) driveUnit(ctx context.Context, r *round.Round, step policy.Step) error {
	if r.Bootstrap != nil && !r.View.Cluster.Listed && step.Kind != policy.StepStopUnit {
		if err := a.nobodyElse(ctx); err != nil { // it was true when the operator asked
			return err
		}
	}
	switch step.Kind {
	case policy.StepWriteEnv:
		return a.opt.Unit.SetEnvironment(ctx, a.wantedEnvironment(r))
	case policy.StepStartUnit:
		a.data.Forget()
		a.noteCommand(r) // before a reboot can clear it
		if err := a.files.SetHeld(ctx, false); err != nil {
			return err
		}
		if err := a.opt.Unit.Start(ctx); err != nil {
			return err
		}
		return a.files.MarkRequest(func(k *local.Request) { k.Stopped = false })
	case policy.StepStopUnit:
		return a.opt.Unit.Stop(ctx)
	}
	return nil
}

func (a *Agent) newOp(r *round.Round, step policy.Step) record.Op {
	c := a.opt.Config
	return record.Op{
		Kind: policy.KindJoin, Host: c.Host.ID, HostName: c.Host.Name, Target: string(step.Target),
		Phase: string(policy.PhaseBegun), BootID: a.opt.BootID, PeerURL: c.Etcd.PeerURL,
		Started: r.Wall, Clock: r.At, By: "policy",
	}
}

// promote asks the leader, the only member that knows how far the learner is.
func (a *Agent) promote(ctx context.Context, r *round.Round, step policy.Step) error {
	for id, s := range r.Statuses {
		if s.Err != nil || s.Leader != id {
			continue
		}
		if m, ok := r.Membership.ByID(id); ok && len(m.ClientURLs) > 0 {
			return a.opt.Etcd.Promote(ctx, step.MemberID, m.ClientURLs[0])
		}
	}
	return errors.New("cannot promote the learner: no member says that it leads")
}
