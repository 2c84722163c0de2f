// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// viewStandbys tells of the learners which of them their own hosts call standbys, or did when they were last heard of.
// Of this host's own its disk tells: what stands in etcd may have been written by anybody who can write there.
func (a *Agent) viewStandbys(r *round.Round) {
	members := r.View.Cluster.Members
	if len(members) == 0 { // nothing was heard in this round
		return
	}
	said := map[uint64]bool{}
	for i := range members {
		m := &members[i]
		if !m.Learner {
			continue
		}
		said[m.ID] = a.standbys[m.ID]
		for _, h := range r.View.Hosts {
			if h.PeerURL == m.PeerURL {
				said[m.ID] = h.Role == policy.RoleStandby
			}
		}
		if m.Standby = said[m.ID]; m.PeerURL == r.View.Self.PeerURL {
			m.Standby = a.files.Standby() == m.ID && !contradicts(r.View.Data, m.ID)
		}
	}
	a.standbys = said
}

// contradicts tells whether the data directory is known not to be that of a member: then it is caught up no more.
func contradicts(d policy.Data, id uint64) bool {
	switch d.State {
	case policy.DataUnknown, policy.DataUnreadable:
		return false
	case policy.DataMember:
		return d.MemberID != id
	}
	return true
}

// noteStandby records on disk that this host's learner is a standby, when no operation names this host: from then on it
// is one until this host begins a join itself. It is written beside the loop: the disk may hang.
func (a *Agent) noteStandby(ctx context.Context, r *round.Round) {
	v := &r.View
	if r.Op != nil || v.Data.State != policy.DataMember || v.Data.ClusterID != v.Cluster.ID ||
		v.Data.MemberID == a.files.Standby() {
		return
	}
	m, ok := r.Membership.ByID(v.Data.MemberID)
	if !ok || !m.Learner || m.Name == "" {
		return
	}
	a.notingStandby.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("standby")
		err := a.files.SetStandby(m.ID)
		if err != nil {
			a.log.Error("standby not recorded", "error", err)
		}
		return struct{}{}, err
	})
}
