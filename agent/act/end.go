// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// endOp deletes the record of the operation and records the operation's outcome.
func (a *Actor) endOp(ctx context.Context, t *task) error {
	r, step := t.on, t.step
	text := endText(r.Op, step)
	key, line := a.opt.Line(r.Revision, record.Line{
		Kind: "operation", Code: string(step.Outcome), Text: text, Operation: r.Op.Kind, Outcome: string(step.Outcome),
	})
	cycled := r.TakesDown(a.opt.Config.Host.ID)
	ended := r.Decision.Notes.Request.Change == policy.RequestEnding
	if cycled { // write to this host's disk before etcd
		note := a.opt.Files.OperationGivenUp
		if ended {
			note = func() error { return a.opt.Files.OperationEnds(r.Rollout) }
		}
		if err := note(); err != nil {
			return err
		}
	}
	if err := a.lock.End(ctx, r.OpAt, key, line, a.rolloutWrites(r, step)...); err != nil {
		return err
	}
	t.ended = &line
	a.log.Info("operation ended", "code", step.Outcome, "text", text)
	if cycled && ended { // otherwise the request stays on disk
		if err := a.opt.Files.EndRequest(step.Outcome, text, r.Wall); err != nil {
			a.log.Error("cannot save the end of the request", "error", err)
		}
	}
	if r.Removes(a.opt.Config.Host.ID) {
		if err := a.opt.Files.EndRemoval(r.Removal, step.Outcome, text, r.Wall); err != nil {
			a.log.Error("cannot save the end of the removal", "error", err)
		}
	}
	if n := r.Decision.Notes.Join; n != policy.JoinUncounted {
		if err := a.opt.Files.NoteJoin(n == policy.JoinFailed, a.opt.BootID, r.At); err != nil {
			a.log.Error("cannot save the outcome of the join", "error", err)
		}
	}
	return nil
}

func endText(op *record.Op, step policy.Step) string {
	meaning, why := step.Outcome.Info().Meaning, cmp.Or(step.Why, op.Reason)
	text := policy.Title(policy.OperationTitle{
		Kind: op.Kind, HostName: op.HostName, Target: op.Target, Work: op.Work, Member: op.MemberID.String(),
	}) + " has ended: " + meaning
	if why != "" {
		text += " (" + why + ")"
	}
	return text
}
