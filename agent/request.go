// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// noteRequest carries out what the round has decided about what was asked of this host.
func (a *Agent) noteRequest(ctx context.Context, r *round.Round) {
	switch note := r.Decision.Notes.Request; note.Change { //exhaustive:enforce
	case policy.RequestStays, policy.RequestEnding, policy.RequestRetried: // the last two go with their step
	case policy.RequestSeen, policy.RequestEnds:
		a.noteAsked(ctx, r, note)
	case policy.RequestTurn:
		a.takeTurn(ctx, r)
	case policy.RequestAgain:
		a.stopUnended(ctx, r)
	case policy.RequestTooNew: // it is of a newer quorumd, and to be taken for nothing else
		if a.tooNew != r.Rollout.ID {
			a.tooNew = r.Rollout.ID
			a.log.Error("turn in the rollout not taken: this quorumd is too old for that work: upgrade it, or "+
				"quorumctl rollout abort", "work", r.Rollout.Work, "rollout", r.Rollout.ID)
		}
	}
}

// noteAsked writes what becomes of what was asked, beside the loop: the disk may hang.
func (a *Agent) noteAsked(ctx context.Context, r *round.Round, note policy.RequestNote) {
	k, op, in := r.Request, r.Op, local.ID(r.View.Cluster.ID)
	a.notingAsk.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("request")
		err := a.files.ChangeRequest(func(now *local.Request) (*local.Request, *local.End) {
			if now == nil || *now != *k {
				return now, nil // something else is asked by now
			}
			if note.Change == policy.RequestEnds {
				return nil, k.Ended(note.Code, note.Text, r.Wall)
			}
			now.Seen = true
			if now.Began.IsZero() { // its early end was noted, and has failed
				now.BootID, now.Began, now.Clock, now.Cluster = op.BootID, op.Started, op.Clock, in
			}
			return now, nil
		})
		if err != nil {
			a.log.Error("end of what was asked not noted", "error", err)
		}
		return struct{}{}, err
	})
}

// takeTurn asks this host to be taken down for the rollout that has come to it, beside the loop: the disk may hang.
func (a *Agent) takeTurn(ctx context.Context, r *round.Round) {
	rollout := *r.Rollout
	a.notingAsk.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("rollout")
		err := a.files.ChangeRequest(func(k *local.Request) (*local.Request, *local.End) {
			if k != nil {
				return k, nil
			}
			return requestOf(rollout, r, a.opt.BootID), nil
		})
		if err != nil {
			a.log.Error("turn in the rollout not noted", "error", err)
		}
		a.Wake()
		return struct{}{}, err
	})
}

// requestOf gives what a rollout asks of this host. Nobody says how long it may take: what hangs must be told.
func requestOf(rollout record.Rollout, r *round.Round, bootID string) *local.Request {
	return &local.Request{
		Work: policy.Work(rollout.Work), Program: rollout.Command, Reason: rollout.Reason, By: rollout.By,
		Rollout: rollout.ID, RolloutAt: rollout.Since,
		Since: r.Wall.UTC(), AskedIn: bootID, For: control.DefaultMaintenance,
	}
}
