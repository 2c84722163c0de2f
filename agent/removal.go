// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// removes tells whether the operation in flight is a removal of this host's.
func (a *Agent) removes(r *round.Round) bool {
	return r.Removes(a.opt.Config.Host.ID)
}

// noteRemoval ends what this host was asked to remove when the member is gone, or the time is over, beside the loop:
// the disk may hang. While it is not seen whether its operation is in flight it stands.
func (a *Agent) noteRemoval(ctx context.Context, r *round.Round) {
	k, _ := a.files.Removals()
	// its operation may be in flight, and etcd told
	unseen := !r.View.Cluster.Reachable || r.EtcdAt != r.At || r.Op == nil && r.OpAt != 0
	if k == nil || unseen || a.removes(r) {
		return
	}
	_, listed := r.Membership.ByID(uint64(k.MemberID))
	code, text := policy.Removed, "it is in the member list no more"
	switch {
	case !r.View.Cluster.Foreign() && !listed:
	case k.Begun && (r.Removal == nil || !r.Removal.Begun): // it has only just begun: this round saw what was before
		return
	case k.Begun:
		code, text = policy.Withdrawn,
			"its operation was released, or deleted, or ended by another host, or etcd did not say whether it had begun"
	case !r.Wall.Before(k.Until):
		code, text = policy.Withdrawn, "its time was over before its turn came"
		if first := firstReason(a.last); first.Code != "" {
			text += "; " + string(first.Code) + ": " + first.Text
		}
	default:
		return
	}
	a.ending.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("removal")
		err := a.files.EndRemoval(k, code, text, r.Wall)
		if err != nil {
			a.log.Error("end of the removal not noted", "error", err)
		}
		return struct{}{}, err
	})
}
