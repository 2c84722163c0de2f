// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
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
	a.seeing.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("cluster")
		err := a.files.SetSeen(id, r.Wall)
		if err != nil {
			a.log.Error("cluster not recorded as seen", "error", err)
		}
		return struct{}{}, err
	})
}

// noteMembership records on disk which member of which cluster this host is, and when it is none
// any more. It is written beside the loop: the disk may hang.
func (a *Agent) noteMembership(ctx context.Context, r *round.Round) {
	data, in := r.View.Data, r.View.Cluster
	if data.State != policy.DataMember || (in.ExpectedID != 0 && in.ExpectedID != in.ID) ||
		data.ClusterID != in.ID {
		return
	}
	var member uint64
	if m, ok := r.Membership.ByID(data.MemberID); ok {
		member = m.ID
	}
	cluster, known := a.files.Membership()
	if (cluster == in.ID && known == member) || (cluster == 0 && member == 0) {
		return
	}
	a.noted.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("membership")
		err := a.files.SetMembership(in.ID, member)
		if err != nil {
			a.log.Error("membership not recorded", "error", err)
		}
		return struct{}{}, err
	})
}

// noteEvery is how often it is tried to note something.
const noteEvery = 2 * time.Second

// noteTimeout bounds a note that may hang with the disk.
const noteTimeout = 5 * time.Second
