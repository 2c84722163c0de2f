// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/round"
)

// noteSeen records the cluster that has just answered, beside the loop: the disk may hang. A cluster
// that this host is making itself, at an operator's word, is none that was there before.
func (a *Agent) noteSeen(ctx context.Context, r *round.Round) {
	_, ours := r.Membership.ByPeerURL(r.View.Self.PeerURL)
	id := r.Membership.ClusterID
	if !r.Listed || r.EtcdAt != r.At || id == a.files.LastSeen() || (r.Bootstrap != nil && ours) {
		return
	}
	a.seeing.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("cluster")
		err := a.files.SetSeen(id, r.Wall)
		if err != nil {
			a.log.Error("cluster not recorded as seen", "error", err)
		}
		return struct{}{}, err
	})
}
