// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// holdName is the file in the state directory whose presence keeps etcd's unit from starting, by
// ConditionPathExists= in the unit's drop-in. etcd must start after a boot without quorumd, so its
// unit is enabled; but on a host that holds no member of the cluster, an etcd that starts by itself
// would make a cluster of its own, or come back as a member that was removed.
const holdName = "etcd.hold"

const holdText = `quorumd: this host holds no member of its cluster, so etcd is not to start by itself.
quorumd removes this file when the host joins. To start etcd by hand all the same, remove it.
`

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
	joining := v.Op != nil && v.Op.Host == v.Self.ID
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
func (a *Agent) noteHold(ctx context.Context, r *round) {
	want := wantHold(r.view)
	if want == holdAsIs || a.files.held() == (want == holdBack) {
		return
	}
	a.holding.refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		err := a.files.setHeld(want == holdBack)
		if err != nil {
			a.log.Error("not noted whether etcd may start by itself", "error", err)
		}
		return struct{}{}, err
	})
}

func (f *stateFiles) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hold
}

func (f *stateFiles) setHeld(held bool) error {
	defer f.turn()()
	path := filepath.Join(f.state, holdName)
	if held {
		if err := f.disk.Write(path, []byte(holdText), true); err != nil {
			return err
		}
	} else if err := f.disk.Remove(path); err != nil {
		return fmt.Errorf("cannot let etcd start: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = held
	return nil
}
