// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// beginRemoval records the operation. It saves the start on disk first. If the record is missing later, the agent
// concludes from the saved start that the operation was released or its record deleted, and does not write the record
// again. If etcd has certainly not stored the record, the removal request stays pending.
func (a *Actor) beginRemoval(ctx context.Context, t *task) error {
	asked := t.on.Removal
	if err := a.opt.Files.MarkRemoval(asked, true); err != nil {
		return err
	}
	err := a.lock.Begin(ctx, a.removalOp(t))
	if errors.Is(err, lock.ErrTaken) || errors.Is(err, lock.ErrLost) || cluster.Denied(err) {
		return errors.Join(err, a.opt.Files.MarkRemoval(asked, false))
	}
	return err
}

// removalOp returns the operation record for a new removal.
func (a *Actor) removalOp(t *task) record.Op {
	c, r := a.opt.Config, t.on
	op := record.Op{
		Kind: policy.KindRemove, Host: c.Host.ID, HostName: c.Host.Name, Phase: string(policy.PhaseBegun),
		BootID:   a.opt.BootID,
		MemberID: record.MemberID(t.step.MemberID), Started: r.Wall, Clock: r.At, Reason: t.step.Why, By: "policy",
	}
	if r.Removal != nil {
		op.Target, op.By = r.Removal.Name, r.Removal.By
	}
	return op
}

func (a *Actor) removeMember(ctx context.Context, t *task) error {
	return a.opt.Etcd.RemoveMember(ctx, t.step.MemberID)
}

// beginLeave records the operation in which this host's voter leaves.
func (a *Actor) beginLeave(ctx context.Context, t *task) error {
	c := a.opt.Config
	return a.lock.Begin(ctx, record.Op{
		Kind: policy.KindLeave, Host: c.Host.ID, HostName: c.Host.Name, Phase: string(policy.PhaseBegun),
		BootID: a.opt.BootID, MemberID: record.MemberID(t.step.MemberID),
		Started: t.on.Wall, Clock: t.on.At, Reason: t.step.Why, By: "policy",
	})
}
