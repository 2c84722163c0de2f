// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// beginCycle records the operation. It saves the boot ID first, because from now on a reboot of the machine counts as
// part of the operation.
func (a *Actor) beginCycle(ctx context.Context, t *task) error {
	a.opt.ForgetBinary() // a replaced binary must not start before its version is known
	r := t.on
	asked, err := a.opt.Files.BeginOperation(hoststate.Beginning{
		BootID: a.opt.BootID, At: r.Wall, Clock: r.At, Cluster: r.View.Cluster.ID,
	})
	switch {
	case err != nil:
		return err
	case asked == nil:
		return errors.New("cannot start the operation: the request was cancelled")
	}
	if err := a.lock.Begin(ctx, a.cycleOp(r, asked)); err != nil {
		return err
	}
	// do not wait for the next round: an operator may release the operation before that
	if err := a.opt.Files.OperationRecorded(); err != nil {
		a.log.Error("cannot save the start of the operation", "error", err)
	}
	return nil
}

// cycleOp returns the record of this host's operation, from the request on its disk.
func (a *Actor) cycleOp(r *round.Round, k *hoststate.Request) record.Op {
	c := a.opt.Config
	op := record.Op{
		Kind: policy.KindCycle, Host: c.Host.ID, HostName: c.Host.Name, Work: string(k.Work),
		Phase: string(policy.PhaseBegun), BootID: k.BootID, PeerURL: r.View.Self.PeerURL,
		Started: k.Began, Until: k.Until(), Clock: k.Clock, Reason: k.Reason, By: k.By,
		Interruptible: k.Interruptible,
	}
	if m, ok := r.OwnMember(r.Membership, c.Etcd.PeerURL); ok {
		op.MemberID = record.MemberID(m.ID)
	}
	return op
}

// recordAgain writes the operation's record again after it was deleted. The record starts with the first phase, because
// whatever was already done can be observed.
func (a *Actor) recordAgain(ctx context.Context, t *task) error {
	asked, _ := a.opt.Files.Asked()
	if asked == nil || !asked.Seen || !asked.Began.Equal(t.on.Request.Began) { // the operation has ended meanwhile
		return nil
	}
	return a.lock.Begin(ctx, a.cycleOp(t.on, asked))
}

func (a *Actor) runHooks(ctx context.Context, t *task) error {
	return a.opt.Hooks.Start(ctx, hooksOf(t.on))
}

func (a *Actor) hooksLaunched(t *task) { a.launched(hooksOf(t.on)) }

func (a *Actor) launched(run hooks.Run) {
	a.did.Launched = a.now()
	a.did.Launched.Of = run.ID
}

// hooksOf returns the hooks to run in the operation's current phase.
func hooksOf(r *round.Round) hooks.Run {
	if policy.HooksIn(policy.OpPhase(r.Op.Phase)) == policy.HooksAfter {
		return r.Request.HookRun(hooks.After)
	}
	return r.Request.HookRun(hooks.Before)
}

// updateMember registers the peer URL of the step for this host's member.
func (a *Actor) updateMember(ctx context.Context, t *task) error {
	return a.opt.Etcd.UpdateMember(ctx, t.step.MemberID, t.step.PeerURL)
}

func (a *Actor) updateSent(*task)     { a.did.UpdateSent = a.now() }
func (a *Actor) updateAnswered(*task) { a.did.UpdateSent = round.Stamp{} }

func (a *Actor) restartUnit(ctx context.Context, _ *task) error {
	a.opt.ForgetBinary()
	return a.opt.Unit.Restart(ctx)
}

// noteStop records on disk that this agent stops etcd, so that after a crash the agent starts etcd again. It fails if
// the request was cancelled after the decision, even if a new request exists.
func (a *Actor) noteStop(_ context.Context, t *task) error {
	current, err := a.opt.Files.EtcdStopped(t.on.Request)
	if err == nil && !current {
		err = errors.New("cannot stop etcd: the request was cancelled")
	}
	return err
}

// takeDown stops etcd. Before a readdress it writes the environment of the next start, so that etcd starts at the
// registered URL even if the quorum is lost.
func (a *Actor) takeDown(ctx context.Context, t *task) error {
	if t.step.WriteEnv {
		if err := a.writeEnvironment(ctx, t); err != nil {
			return err
		}
	}
	return a.stopUnit(ctx, t)
}

func (a *Actor) reboot(ctx context.Context, _ *task) error {
	if a.opt.Reboot == nil {
		return errors.New("cannot reboot the machine: this agent is not permitted to do that; reboot it manually")
	}
	return a.opt.Reboot(ctx)
}

func (a *Actor) rebootSent(*task) { a.did.Rebooted = a.now() }
