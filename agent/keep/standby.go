// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteStandby records on disk that this host's learner is a standby, when no operation names this host: from then on it
// is one until this host begins a join itself. It is written beside the loop: the disk may hang.
func (k *Keeper) noteStandby(ctx context.Context, r *round.Round) {
	data, in := r.View.Data, r.View.Cluster
	if r.OpAt != 0 || data.State != policy.DataMember || data.ClusterID != in.ID ||
		data.MemberID == k.files.Standby() {
		return
	}
	m, ok := r.Membership.ByID(data.MemberID)
	if !ok || !m.Learner || m.Name == "" {
		return
	}
	k.note(ctx, &k.standby, "standby", "standby not recorded", func(context.Context) error {
		return k.files.SetStandby(m.ID)
	})
}
