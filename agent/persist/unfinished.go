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

// stopUnended stops a rollout that comes to this host again after its operation: it would take the host down
// repeatedly.
func (k *Persister) stopUnended(ctx context.Context, r *round.Round) {
	next := *r.Rollout
	next.State = record.RolloutStopped
	next.Text = r.View.Self.Name + " has had its turn, which ended otherwise (" + string(r.LastRequest.Code) + ": " +
		r.LastRequest.Text + "): quorumctl rollout resume tries it again"
	if r.LastRequest.Code == policy.Cycled {
		next.Text = r.View.Self.Name +
			" was taken down and is back, but its record did not say so: see who else writes there, then quorumctl " +
			"rollout resume takes this host down once more"
	}
	value, err := record.Encode(next)
	if err != nil {
		k.log.Error("cannot stop the rollout", "rollout", next.ID, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.opt.Config.Timing.CallTimeout)
	defer cancel()
	key := k.keys.Rollout()
	answer, err := k.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.RolloutAt)},
		clientv3.OpPut(key, string(value)))
	switch {
	case err != nil:
		k.log.Error("cannot stop the rollout; the next round retries", "rollout", next.ID, "error", err)
	case answer.Succeeded: // otherwise the rollout has changed, and the next round reads it again
		k.log.Error("rollout stopped", "rollout", next.ID, "text", next.Text)
	}
}
