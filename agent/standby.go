// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteStandby records on disk that this host's learner is a standby, when no operation names this host: from then on it
// is one until this host begins a join itself. It is written beside the loop: the disk may hang.
func (a *Agent) noteStandby(ctx context.Context, r *round.Round) {
	data, in := r.View.Data, r.View.Cluster
	if r.Op != nil || data.State != policy.DataMember || data.ClusterID != in.ID ||
		data.MemberID == a.files.Standby() {
		return
	}
	m, ok := r.Membership.ByID(data.MemberID)
	if !ok || !m.Learner || m.Name == "" {
		return
	}
	a.notingStandby.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("standby")
		err := a.files.SetStandby(m.ID)
		if err != nil {
			a.log.Error("standby not recorded", "error", err)
		}
		return struct{}{}, err
	})
}
