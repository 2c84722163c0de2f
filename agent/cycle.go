// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Leadership moves etcd's leadership.
type Leadership interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
}

// Machine is the host itself.
type Machine interface {
	// Reboot asks for an orderly reboot and returns once it is under way.
	Reboot(ctx context.Context) error
}

// Hooks are the operator's own programs that run before etcd is stopped and after it is back. Its
// methods start or look, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, when string, vars map[string]string) error
	State(ctx context.Context, when string) (policy.Hooks, error)
}

// viewAsked makes the view of what was asked of this host.
func (a *Agent) viewAsked(r *round) {
	asked, _ := a.files.asked()
	if asked == nil {
		return
	}
	v := &policy.Asked{
		Work: asked.Work, By: asked.By, Reason: asked.Reason, KeepRunning: asked.KeepRunning, External: asked.External,
		Over: asked.over(a.opt.BootID) || asked.tooLate(a.opt.BootID), Stopped: asked.Stopped, Rebooted: asked.rebooted(a.opt.BootID),
		Overdue: asked.For > 0 && r.wall.After(asked.Since.Add(asked.For)), RebootFor: policy.Never,
	}
	if a.rebooting.value != "" {
		v.RebootFor = r.at - a.rebooting.at
	}
	r.asked, r.view.Asked = asked, v
}

// cycleStep takes the steps of an operation that takes this host down and brings it back.
func (a *Agent) cycleStep(ctx context.Context, r *round, step policy.Step) error {
	switch step.Kind {
	case policy.StepBeginCycle:
		return a.beginCycle(ctx, r)
	case policy.StepMoveLeader:
		return a.moveLeader(ctx, r, step)
	case policy.StepRestartUnit:
		a.binary.forget()
		return a.opt.Unit.Restart(ctx)
	case policy.StepTakeDown:
		return a.takeDown(ctx, r)
	case policy.StepReboot:
		if a.opt.Machine == nil {
			return errors.New("cannot reboot the machine: this agent has no way to; reboot it by hand")
		}
		return a.opt.Machine.Reboot(ctx)
	}
	return fmt.Errorf("cannot take step %q: it is none of a cycle", step.Kind)
}

// beginCycle records the operation. The boot is noted first: a machine that reboots from here on has
// done what a reboot was asked for.
func (a *Agent) beginCycle(ctx context.Context, r *round) error {
	a.binary.forget() // an etcd that was exchanged must not be started unseen
	if err := a.files.markAsk(func(k *ask) { k.BootID = a.opt.BootID }); err != nil {
		return err
	}
	c := a.opt.Config
	op := record.Op{
		Kind: policy.KindCycle, Host: c.Host.ID, HostName: c.Host.Name, Work: string(r.asked.Work),
		Phase: string(policy.PhaseBegun), BootID: a.opt.BootID, PeerURL: c.Etcd.PeerURL,
		Started: r.wall, Clock: r.at, Reason: r.asked.Reason, By: r.asked.By,
	}
	if m, ok := r.membership.ByPeerURL(c.Etcd.PeerURL); ok {
		op.MemberID = record.MemberID(m.ID)
	}
	return a.lock.Begin(ctx, op)
}

// moveLeader asks this host's own member, which leads, to hand over.
func (a *Agent) moveLeader(ctx context.Context, r *round, step policy.Step) error {
	m, ok := r.membership.ByPeerURL(a.opt.Config.Etcd.PeerURL)
	if !ok || len(m.ClientURLs) == 0 {
		return errors.New("cannot move the leadership: this host's member has no client URL")
	}
	return a.opt.Etcd.MoveLeader(ctx, m.ClientURLs[0], step.MemberID)
}

// takeDown stops etcd. That it was this agent is noted first, so that after a crash it is known whose
// turn it is to start it; for maintenance it is held back, so that a reboot does not start it under
// someone's hands.
func (a *Agent) takeDown(ctx context.Context, r *round) error {
	stands := false
	err := a.files.markAsk(func(k *ask) {
		if stands = !k.Over; stands {
			k.Stopped = true
		}
	})
	if err == nil && !stands {
		err = errors.New("cannot stop etcd: what was asked was withdrawn in this moment")
	}
	if err != nil {
		return err
	}
	if r.asked.Work == policy.WorkMaintenance {
		if err := a.files.setHeld(true); err != nil {
			return err
		}
	}
	if !a.lock.MayAct() { // the disk may have hung
		return errors.New("cannot stop etcd: the lock is not ours any more")
	}
	return a.opt.Unit.Stop(ctx)
}

// noteAsk brings what was asked in line with what the round has seen, beside the loop: the disk may
// hang. It ends what is over and has no operation any more, and what a rollout asked that has ended.
func (a *Agent) noteAsk(ctx context.Context, r *round) {
	k := r.asked
	if k == nil || !r.view.Cluster.Reachable || r.etcdAt != r.at || (r.op != nil && r.op.Host == a.opt.Config.Host.ID) {
		return
	}
	code, text := policy.ReasonCode(""), ""
	_, listed := r.membership.ByPeerURL(a.opt.Config.Etcd.PeerURL)
	up := r.view.Unit.State == policy.UnitActive
	switch {
	case k.over(a.opt.BootID) && (up || !listed || !k.Stopped) && a.lock.Token() == 0:
		code, text = policy.Cycled, "its operation has ended"
	case k.tooLate(a.opt.BootID):
		code, text = policy.Withdrawn, "the machine was rebooted before its turn had come"
	case k.Rollout != "" && k.BootID == "" && (r.rollout == nil || r.rollout.ID != k.Rollout || r.rollout.State != record.RolloutRunning):
		code, text = policy.Withdrawn, "the rollout that asked for it does not go on"
	default:
		return
	}
	a.notingAsk.refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		err := a.files.changeAsk(func(now *ask) (*ask, *askEnd) {
			if now == nil || *now != *k {
				return now, nil // something else is asked by now
			}
			return nil, k.end(code, text, r.wall)
		})
		if err != nil {
			a.log.Error("end of what was asked not noted", "error", err)
		}
		return struct{}{}, err
	})
}
