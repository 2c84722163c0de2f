// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func (a *Actor) takeLock(ctx context.Context, t *task) error { return a.lock.Take(ctx, t.on.OpAt) }

func (a *Actor) lockTaken(*task) { a.renewed = a.opt.Now() }

func (a *Actor) releaseLock(ctx context.Context, _ *task) error { return a.lock.Release(ctx) }

// setPhase records the phase of the operation.
func (a *Actor) setPhase(ctx context.Context, t *task) error {
	r, op := t.on, *t.on.Op
	op.Phase, op.MemberID = string(t.step.Phase), record.MemberID(t.step.MemberID)
	if policy.TakesDown(op.Kind) && r.Request != nil {
		op.Until, op.Interruptible = r.Request.Until(), r.Request.Interruptible
	}
	also, err := a.repairWrites(r, op)
	if err != nil {
		return err
	}
	return a.lock.Advance(ctx, op, r.OpAt, also...)
}

// rollBack records that the operation must be rolled back. For a learner that belongs to no operation, it creates an
// operation.
func (a *Actor) rollBack(ctx context.Context, t *task) error {
	r, step := t.on, t.step
	if r.Op == nil {
		name := "a learner"
		if m, _ := r.Membership.ByID(step.MemberID); step.Outcome == policy.StandbyLost {
			name = "the standby " + m.Name
		}
		return a.lock.Begin(ctx, record.Op{
			Kind: policy.KindJoin, Host: "member-" + record.MemberID(step.MemberID).String(), HostName: name,
			Phase: string(policy.PhaseRollback), MemberID: record.MemberID(step.MemberID),
			Started: r.Wall, Outcome: string(step.Outcome), Reason: string(step.Outcome) + ": " + step.Why,
			By: "policy",
		})
	}
	op := *r.Op
	op.Phase, op.Outcome = string(policy.PhaseRollback), string(step.Outcome)
	op.Reason = op.Outcome + ": " + step.Why
	if step.MemberID != 0 {
		op.MemberID = record.MemberID(step.MemberID)
	}
	return a.lock.Advance(ctx, op, r.OpAt)
}
