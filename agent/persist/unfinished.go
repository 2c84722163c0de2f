// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// stopUnended stops a rollout that reaches this host again after the host's operation has ended. Otherwise the rollout
// would take the host down over and over.
func (k *Persister) stopUnended(ctx context.Context, r *round.Round) {
	next := *r.Rollout
	next.State = record.RolloutStopped
	next.Text = "the operation of " + r.View.Self.Name + " for this rollout has already ended " +
		"(" + string(r.LastRequest.Code) + ": " +
		r.LastRequest.Text + "): quorumctl rollout resume tries it again"
	if r.LastRequest.Code == policy.Cycled {
		next.Text = r.View.Self.Name +
			" is back from its operation, but the rollout's record does not show that: find out what else writes " +
			"to it; quorumctl rollout resume repeats the operation"
	}
	if k.writeRollout(ctx, r, next) {
		k.log.Error("rollout stopped", "rollout", next.ID, "text", next.Text)
	}
}

// pauseHeld pauses an upgrade that has reached the last member. It does so only once: when an operator resumes the
// rollout, the last host goes down.
func (k *Persister) pauseHeld(ctx context.Context, r *round.Round, why string) {
	next := *r.Rollout
	next.State, next.Text, next.Hold = record.RolloutPaused, why, false
	if k.writeRollout(ctx, r, next) {
		k.log.Warn("rollout paused", "rollout", next.ID, "text", why)
	}
}

// writeRollout replaces the rollout's record unless it has changed since this round read it, and reports whether it was
// replaced. If it has changed, the next round reads it again.
func (k *Persister) writeRollout(ctx context.Context, r *round.Round, next record.Rollout) bool {
	value, err := record.Encode(next)
	if err != nil {
		k.log.Error("cannot save the state of the rollout", "rollout", next.ID, "error", err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.opt.Config.Timing.CallTimeout)
	defer cancel()
	key := k.keys.Rollout()
	answer, err := k.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.RolloutAt)},
		clientv3.OpPut(key, string(value)))
	if err != nil {
		k.log.Error("cannot save the state of the rollout; the next round retries", "rollout", next.ID, "error", err)
		return false
	}
	return answer.Succeeded
}
