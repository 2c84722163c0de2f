// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

func (a *Actor) canRecover(context.Context, *task) error {
	if a.opt.Recovery == nil {
		return errors.New("cannot recover: this agent cannot access etcd's files")
	}
	return nil
}

func (a *Actor) copyData(_ context.Context, t *task) error {
	a.opt.Recovery.Copy(a.workOf(t))
	if k, _ := a.opt.Files.Recoveries(); k == nil || k.Plan != t.on.Recovery.Plan || k.GivenUp != "" {
		a.opt.Recovery.Abandon() // the plan was abandoned after the decision
	}
	return nil
}

func (a *Actor) copyBegun(*task) { a.did.Copied = a.now() }

// workOf describes the copy of its data that this host must make for the plan.
func (a *Actor) workOf(t *task) recovery.Work {
	k, c := t.on.Recovery, a.opt.Config
	return recovery.Work{
		Plan: k.Plan, Cluster: k.New, Old: k.Old, Member: k.Member, Term: k.Term, Index: k.Index, Name: c.Host.Name,
		ClientURL: c.Etcd.ClientURL, PeerURL: c.Etcd.PeerURL, Snapshot: k.Source,
	}
}

// placeCopy moves the old data aside and the copy into place. It records the new cluster only after that, so etcd
// cannot start earlier.
func (a *Actor) placeCopy(ctx context.Context, t *task) error {
	if err := a.opt.Files.BeginMoveAside(t.on.Recovery.Plan); err != nil {
		return err
	}
	moved, err := a.opt.Recovery.Swap(ctx, a.workOf(t))
	a.opt.ForgetData()
	if err != nil {
		return err
	}
	a.log.Warn("moved old etcd data aside for the recovery", "to", moved, "plan", t.on.Recovery.Plan)
	return a.opt.Files.SetMembership(uint64(t.on.Recovery.New), uint64(t.on.Recovery.Member))
}

func (a *Actor) layAside(ctx context.Context, t *task) error {
	if k := t.on.Recovery; k != nil { // nil on a host that returns after the recovery
		if err := a.opt.Files.BeginMoveAside(k.Plan); err != nil {
			return err
		}
	}
	return a.moveDataAside(ctx, t)
}

// endRecovery ends this host's part of the plan. If the plan was carried out, the survivor records in etcd that its
// cluster replaces the old one, for hosts that return later, and every other host with the plan records the new cluster
// on its disk, but no member ID yet.
func (a *Actor) endRecovery(ctx context.Context, t *task) error {
	v := t.on.View.Recovery
	switch t.on.Decision.Notes.Recovery { //exhaustive:enforce
	case policy.RecoveryLeavesNothing:
	case policy.RecoveryAnnounced:
		if err := a.recordRecovered(ctx, t); err != nil {
			return err
		}
	case policy.RecoveryJoins:
		if err := a.opt.Files.SetStandby(0); err != nil {
			return err
		}
		if err := a.opt.Files.SetMembership(v.New, 0); err != nil {
			return err
		}
	}
	return a.opt.Files.EndRecovery(v.Plan, t.step.Outcome, t.on.Wall)
}

func (a *Actor) recordRecovered(ctx context.Context, t *task) error {
	k := t.on.Recovery
	value, err := record.Encode(record.Recovered{
		Plan: k.Plan, Old: k.Old, New: k.New, Host: a.opt.Config.Host.Name, By: k.By, Time: t.on.Wall,
	})
	if err != nil {
		return err
	}
	_, err = a.opt.Etcd.Txn(ctx, nil, clientv3.OpPut(a.keys.Recovered(), string(value)))
	// If the old data included an alarm, the alarm stays until an operator clears it. The plan does not wait for the
	// operator, because a host does nothing else while it has a plan. A host that returns later and finds no record of
	// the recovery waits for an operator, and loses no data.
	if errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) || errors.Is(rpctypes.Error(err), rpctypes.ErrCorrupt) {
		a.log.Error("cannot record the recovery in the new cluster: an etcd alarm blocks writes; 'etcdctl alarm list' "+
			"shows it, and 'quorumctl explain' shows how to clear it. Move etcd's data aside manually on every host "+
			"that returns after the recovery",
			"plan", k.Plan, "error", err)
		return nil
	}
	return err
}
