// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// noteRequest applies the round's decision about this host's maintenance request.
func (k *Persister) noteRequest(ctx context.Context, r *round.Round) {
	switch note := r.Decision.Notes.Request; note.Change { //exhaustive:enforce
	case policy.RequestStays, policy.RequestEnding, policy.RequestRetried: // the steps themselves record the last two
	case policy.RequestSeen, policy.RequestEnds, policy.RequestRecalled, policy.RequestWithdrawn:
		k.noteAsked(ctx, r, note)
	case policy.RequestTurn:
		k.takeTurn(ctx, r)
	case policy.RequestDefrag:
		k.requestDefrag(ctx, r, note.Text)
	case policy.RequestAgain:
		k.stopUnended(ctx, r)
	case policy.RequestHeld:
		k.pauseHeld(ctx, r, note.Text)
	case policy.RequestTooNew: // a newer quorumd wrote the rollout's record, which this version could misread
		if k.tooNew != r.Rollout.ID {
			k.tooNew = r.Rollout.ID
			k.log.Error("rollout waits for this host, whose quorumd does not support this kind of work; upgrade "+
				"quorumd here, or run quorumctl rollout abort", "work", r.Rollout.Work, "rollout", r.Rollout.ID)
		}
	}
}

// noteAsked records that the request's operation was observed in etcd, that its work is called off, that the request
// has ended, or that it is cancelled.
func (k *Persister) noteAsked(ctx context.Context, r *round.Round, note policy.RequestNote) {
	asked, op, in := r.Request, r.Op, r.View.Cluster.ID
	k.note(ctx, &k.request, "request", "cannot save the state of the request", func(ctx context.Context) error {
		switch note.Change {
		case policy.RequestEnds:
			if err := k.guard(ctx, note.Guard); err != nil {
				return err
			}
			return k.files.StandingEnds(asked, note.Code, note.Text, r.Wall)
		case policy.RequestRecalled:
			defer k.opt.Wake()
			if err := k.files.CalledOff(asked, note.Text); err != nil {
				return err
			}
			k.log.Warn("work called off: the cluster needs this host's vote", "work", asked.Work, "by", asked.By,
				"cause", note.Text)
			return nil
		case policy.RequestWithdrawn:
			if err := k.files.Withdraw(asked); err != nil {
				return err
			}
			k.log.Info("request for a defragmentation cancelled: its reason no longer applies",
				"reason", asked.Reason)
			return nil
		}
		return k.files.OperationSeen(asked, hoststate.Beginning{
			BootID: op.BootID, At: op.Started, Clock: op.Clock, Cluster: in,
		})
	})
}

// takeTurn records this host's request for a rollout that has reached this host.
func (k *Persister) takeTurn(ctx context.Context, r *round.Round) {
	rollout := *r.Rollout
	k.note(ctx, &k.request, "rollout", "cannot save this host's request for the "+
		"rollout", func(context.Context) error {
		err := k.files.TakeTurn(requestOf(rollout, r, k.opt.BootID))
		k.opt.Wake()
		return err
	})
}

// byAgent is the requester of a request that the agent makes by itself.
const byAgent = "quorumd"

// requestDefrag records this agent's own request for the defragmentation of its member.
func (k *Persister) requestDefrag(ctx context.Context, r *round.Round, why string) {
	request := &hoststate.Request{
		Request: policy.Request{Work: policy.WorkDefrag, Reason: why, By: byAgent, Automatic: true},
		Since:   r.Wall.UTC(), AskedIn: k.opt.BootID, For: control.DefaultMaintenance,
	}
	k.note(ctx, &k.request, "defragmentation", "cannot save this host's request for a defragmentation",
		func(context.Context) error {
			if err := k.files.TakeTurn(request); err != nil {
				return err
			}
			k.log.Info("defragmentation requested", "reason", why)
			k.opt.Wake()
			return nil
		})
}

// requestOf returns this host's request for a rollout. The request has the default time limit, so that an operation
// that hangs raises an alert.
func requestOf(rollout record.Rollout, r *round.Round, bootID string) *hoststate.Request {
	return &hoststate.Request{
		Request: policy.Request{
			Work: policy.Work(rollout.Work), Program: rollout.Command, Reason: rollout.Reason, By: rollout.By,
		}, Rollout: rollout.ID, RolloutResumed: rollout.Resumed,
		Since: r.Wall.UTC(), AskedIn: bootID, For: control.DefaultMaintenance,
	}
}
