// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
)

// noteSeen records the cluster that has just answered, beside the loop: the disk may hang. A cluster
// that this host is making itself, at an operator's word, is none that was there before.
func (a *Agent) noteSeen(ctx context.Context, r *round) {
	_, ours := r.membership.ByPeerURL(r.view.Self.PeerURL)
	id := r.membership.ClusterID
	if !r.listed || r.etcdAt != r.at || id == a.files.LastSeen() || (r.boot != nil && ours) {
		return
	}
	a.seeing.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		err := a.files.SetSeen(id, r.wall)
		if err != nil {
			a.log.Error("cluster not recorded as seen", "error", err)
		}
		return struct{}{}, err
	})
}
