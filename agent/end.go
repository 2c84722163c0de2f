// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// rollBack turns the operation onto its way back. For a learner that no operation stands for, it
// makes one.
func (a *Agent) rollBack(ctx context.Context, r *round.Round, step policy.Step) error {
	if r.Op == nil {
		return a.lock.Begin(ctx, record.Op{
			Kind: policy.KindJoin, Host: "member-" + record.MemberID(step.MemberID).String(), HostName: "a learner",
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

// endOp deletes the record of the operation and notes how it went.
func (a *Agent) endOp(ctx context.Context, r *round.Round, step policy.Step) error {
	text := fmt.Sprintf("%s of %s as %s has ended: %s", r.Op.Kind, r.Op.HostName, orText(r.Op.Target, "member"),
		step.Outcome.Info().Meaning)
	if r.Op.Kind == policy.KindRemove {
		text = fmt.Sprintf("removal of member %s (%s) by %s has ended: %s", r.Op.Target, r.Op.MemberID, r.Op.HostName,
			step.Outcome.Info().Meaning)
	}
	if r.Op.Kind == policy.KindCycle {
		text = fmt.Sprintf("%s of %s for %s has ended: %s", r.Op.Kind, r.Op.HostName, r.Op.Work,
			step.Outcome.Info().Meaning)
	}
	if step.Why != "" {
		text += " (" + step.Why + ")"
	} else if r.Op.Reason != "" {
		text += " (" + r.Op.Reason + ")"
	}
	key, line := a.journal.Line(r.Revision, publish.Entry{
		Kind: "op", Code: string(step.Outcome), Text: text, Operation: r.Op.Kind, Outcome: string(step.Outcome),
	})
	own := r.Op.Host == a.opt.Config.Host.ID
	cycled := own && r.Op.Kind == policy.KindCycle
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
	if err := a.lock.End(ctx, r.OpAt, key, line, a.rolledOut(r, step)...); err != nil {
		return err
	}
	a.journal.Keep(r.Revision, line)
	a.log.Info("operation ended", "code", step.Outcome, "text", text)
	a.metrics.Operation(step.Outcome)
	if cycled && ended { // else it is asked for still
		if err := a.files.EndRequest(step.Outcome, text, r.Wall); err != nil {
			a.log.Error("end of what was asked not noted", "error", err)
		}
	}
	if own && r.Op.Kind == policy.KindRemove {
		if err := a.files.EndRemoval(r.Removal, step.Outcome, text, r.Wall); err != nil {
			a.log.Error("end of the removal not noted", "error", err)
		}
	}
	if own && r.Op.Kind == policy.KindJoin && step.Outcome != policy.Disowned {
		if err := a.files.NoteJoin(step.Outcome != policy.Joined, a.opt.BootID, r.At); err != nil {
			a.log.Error("failed join not noted", "error", err)
		}
	}
	a.journal.Trim(ctx)
	return nil
}
