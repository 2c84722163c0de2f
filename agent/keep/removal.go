// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteRemoval ends what this host was asked to remove when the member is gone, or the time is over, beside the loop:
// the disk may hang. While it is not seen whether its operation is in flight it stands.
func (k *Keeper) noteRemoval(ctx context.Context, r *round.Round, last policy.Decision) {
	asked, _ := k.files.Removals()
	// its operation may be in flight, and etcd told
	unseen := !r.View.Cluster.Reachable || r.EtcdAt != r.At || r.Op == nil && r.OpAt != 0
	if asked == nil || unseen || r.Removes(k.opt.Config.Host.ID) {
		return
	}
	_, listed := r.Membership.ByID(uint64(asked.MemberID))
	code, text := policy.Removed, "it is in the member list no more"
	switch {
	case !r.View.Cluster.Foreign() && !listed:
	case asked.Begun && (r.Removal == nil || !r.Removal.Begun):
		return // it has only just begun: this round saw what was before
	case asked.Begun:
		code, text = policy.Withdrawn,
			"its operation was released, or deleted, or ended by another host, or etcd did not say whether it had begun"
	case !r.Wall.Before(asked.Until):
		code, text = policy.Withdrawn, "its time was over before its turn came"
		if len(last.Reasons) > 0 && last.Reasons[0].Code != "" {
			text += "; " + string(last.Reasons[0].Code) + ": " + last.Reasons[0].Text
		}
	default:
		return
	}
	k.note(ctx, &k.removal, "removal", "end of the removal not noted", func(context.Context) error {
		return k.files.EndRemoval(asked, code, text, r.Wall)
	})
}
