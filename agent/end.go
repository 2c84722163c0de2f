// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// rollBack turns the operation onto its way back. For a learner that no operation stands for, it
// makes one.
func (a *Agent) rollBack(ctx context.Context, r *round, step policy.Step) error {
	if r.op == nil {
		return a.lock.Begin(ctx, record.Op{
			Kind: policy.KindJoin, Host: "member-" + record.MemberID(step.MemberID).String(), HostName: "a learner",
			Phase: string(policy.PhaseRollback), MemberID: record.MemberID(step.MemberID),
			Started: r.wall, Reason: string(step.Outcome) + ": " + step.Why, By: "policy",
		})
	}
	op := *r.op
	op.Phase, op.Reason = string(policy.PhaseRollback), string(step.Outcome)+": "+step.Why
	if step.MemberID != 0 {
		op.MemberID = record.MemberID(step.MemberID)
	}
	return a.lock.Advance(ctx, op, r.opAt)
}

// endOp deletes the record of the operation and notes how it went.
func (a *Agent) endOp(ctx context.Context, r *round, step policy.Step) error {
	text := fmt.Sprintf("%s of %s as %s has ended: %s", r.op.Kind, r.op.HostName, orText(r.op.Target, "member"),
		step.Outcome.Info().Meaning)
	if r.op.Kind == policy.KindRemove {
		text = fmt.Sprintf("removal of member %s (%s) by %s has ended: %s", r.op.Target, r.op.MemberID, r.op.HostName,
			step.Outcome.Info().Meaning)
	}
	if r.op.Kind == policy.KindCycle {
		text = fmt.Sprintf("%s of %s for %s has ended: %s", r.op.Kind, r.op.HostName, r.op.Work,
			step.Outcome.Info().Meaning)
	}
	if step.Why != "" {
		text += " (" + step.Why + ")"
	} else if r.op.Reason != "" {
		text += " (" + r.op.Reason + ")"
	}
	key, line := a.journal.line(r.revision, "op", string(step.Outcome), text)
	own := r.op.Host == a.opt.Config.Host.ID
	cycled := own && r.op.Kind == policy.KindCycle
	ended := step.Outcome == policy.Cycled || step.Outcome == policy.Withdrawn || step.Outcome == policy.HookFailed ||
		step.Outcome == policy.CommandFailed
	if cycled { // first on disk: a crash in between must not do it all again, nor look like a release
		err := a.files.MarkRequest(func(k *local.Request) {
			k.Seen = false
			if ended {
				k.Over = true
			} else {
				k.BootID, k.Began, k.Clock, k.Cluster = "", time.Time{}, 0, 0
			}
		})
		if err != nil {
			return err
		}
	}
	if err := a.lock.End(ctx, r.opAt, key, line, a.rolledOut(r, step)...); err != nil {
		return err
	}
	a.journal.keep(r.revision, line)
	a.log.Info("operation ended", "code", step.Outcome, "text", text)
	a.metrics.operation(step.Outcome)
	if cycled && ended { // else it is asked for still
		if err := a.files.EndRequest(step.Outcome, text, r.wall); err != nil {
			a.log.Error("end of what was asked not noted", "error", err)
		}
	}
	if own && r.op.Kind == policy.KindRemove {
		if err := a.files.EndRemoval(r.removal, step.Outcome, text, r.wall); err != nil {
			a.log.Error("end of the removal not noted", "error", err)
		}
	}
	if own && r.op.Kind == policy.KindJoin && step.Outcome != policy.Disowned {
		if err := a.files.NoteJoin(step.Outcome != policy.Joined, a.opt.BootID, r.at); err != nil {
			a.log.Error("failed join not noted", "error", err)
		}
	}
	a.journal.trim(ctx)
	return nil
}
