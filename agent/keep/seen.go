// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteSeen records the cluster that has just answered, beside the loop: the disk may hang. A cluster
// that this host is making itself, at an operator's word, is none that was there before.
func (k *Keeper) noteSeen(ctx context.Context, r *round.Round) {
	_, ours := r.Membership.ByPeerURL(r.View.Self.PeerURL)
	id := r.Membership.ClusterID
	if !r.Listed || r.EtcdAt != r.At || id == k.files.LastSeen() || (r.Bootstrap != nil && ours) {
		return
	}
	k.note(ctx, &k.met, "cluster", "cluster not recorded as seen", func(context.Context) error {
		return k.files.SetSeen(id, r.Wall)
	})
}

// noteMembership records on disk which member of which cluster this host is, and when it is none
// any more. It is written beside the loop: the disk may hang.
func (k *Keeper) noteMembership(ctx context.Context, r *round.Round) {
	data, in := r.View.Data, r.View.Cluster
	if data.State != policy.DataMember || (in.ExpectedID != 0 && in.ExpectedID != in.ID) ||
		data.ClusterID != in.ID {
		return
	}
	var member uint64
	if m, ok := r.Membership.ByID(data.MemberID); ok {
		member = m.ID
	}
	cluster, known := k.files.Membership()
	if (cluster == in.ID && known == member) || (cluster == 0 && member == 0) {
		return
	}
	k.note(ctx, &k.member, "membership", "membership not recorded", func(context.Context) error {
		return k.files.SetMembership(in.ID, member)
	})
}
