// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// hold is whether the unit is to be held back.
type hold int

const (
	holdAsIs hold = iota // it cannot be told now
	holdBack
	holdNot
)

// wantHold tells from a view whether etcd may start by itself. It holds back only a unit that does
// not run, on the word of the cluster; or on a host that has no data and never knew a cluster, which
// may reboot before there is one. It lets go only where the data of a listed member lie: until a join has
// started etcd, which lets go as well, the unit's environment is not that of the join.
func wantHold(v policy.View) hold {
	member := slices.ContainsFunc(v.Cluster.Members, func(m policy.Member) bool {
		return v.Data.State == policy.DataMember && m.ID == v.Data.MemberID
	})
	listed := slices.ContainsFunc(v.Cluster.Members, func(m policy.Member) bool { return m.PeerURL == v.Self.PeerURL })
	unknown := slices.ContainsFunc(v.Unreadable, func(u policy.Unreadable) bool { return u.Kind == policy.RecordOp })
	joining := unknown || v.Op != nil && v.Op.Host == v.Self.ID
	down := v.Unit.State == policy.UnitInactive || v.Unit.State == policy.UnitFailed
	bare := v.Data.State == policy.DataEmpty && v.Cluster.ExpectedID == 0
	switch {
	case v.Asked != nil && v.Asked.Stopped: // by what was asked
		return holdAsIs
	case v.Self.Mode != policy.Manage || v.Cluster.Foreign() || v.Data.State == policy.DataUnknown:
		return holdAsIs
	case v.Cluster.Reachable && member, v.Bootstrap.Requested && bare && !v.Cluster.Reachable:
		return holdNot
	case v.Cluster.Reachable && listed:
		return holdAsIs
	case down && !joining && !v.Bootstrap.Requested && (v.Cluster.Reachable || bare):
		return holdBack
	}
	return holdAsIs
}

// noteHold brings the file in line with what the round has seen, beside the loop: the disk may hang.
func (a *Agent) noteHold(ctx context.Context, r *round.Round) {
	want := wantHold(r.View)
	if want == holdAsIs || a.files.Held() == (want == holdBack) {
		return
	}
	a.holding.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(ctx context.Context) (struct{}, error) {
		a.opt.noting("guard")
		err := a.files.SetHeld(ctx, want == holdBack)
		if err != nil {
			a.log.Error("not noted whether etcd may start by itself", "error", err)
		}
		return struct{}{}, err
	})
}
