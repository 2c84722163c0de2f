// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// fourMembers returns a view of a cluster of a leader, two followers and a standby.
func fourMembers() View {
	v := View{}
	v.Cluster.Reachable, v.Limits.PromoteLag = true, 100
	for i, role := range []Role{RoleVoter, RoleVoter, RoleVoter, RoleStandby} {
		id := uint64(i + 1)
		url := "http://n" + string(rune('1'+i))
		v.Cluster.Members = append(v.Cluster.Members, Member{
			ID: id, PeerURL: url, Live: true, LagKnown: true, Leader: i == 0,
			Learner: role == RoleStandby, Standby: role == RoleStandby,
		})
		v.Hosts = append(v.Hosts, Host{
			ID: url, PeerURL: url, Role: role, Health: health.OK, P99: time.Duration(5-i) * time.Millisecond,
			Stores: true,
		})
	}
	return v
}

func TestASnapshotIsTakenOnTheHostWithTheLowestCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*View)
		want   uint64
	}{
		"on the standby":                       {func(*View) {}, 4},
		"on a standby at the limit":            {func(v *View) { v.Cluster.Members[3].Lag = 100 }, 4},
		"not on a lagging standby":             {func(v *View) { v.Cluster.Members[3].Lag = 101 }, 3},
		"not on a joining learner":             {func(v *View) { v.Cluster.Members[3].Standby = false }, 3},
		"not on a standby that is down":        {func(v *View) { v.Cluster.Members[3].Live = false }, 3},
		"on the follower with the faster disk": {func(v *View) { v.Cluster.Members = v.Cluster.Members[:3] }, 3},
		"not on the unhealthy follower": {func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:3]
			v.Hosts[2].Health = health.Slow
		}, 2},
		"not on a leader with followers": {func(v *View) {
			for i := range 3 {
				v.Cluster.Members[i+1].Live = false
			}
		}, 0},
		"on a leader without followers":   {func(v *View) { v.Cluster.Members = v.Cluster.Members[:1] }, 1},
		"on no unreachable member":        {func(v *View) { v.Cluster.Reachable = false }, 0},
		"on no member of another cluster": {func(v *View) { v.Cluster.ID, v.Cluster.ExpectedID = 1, 2 }, 0},
	} {
		v := fourMembers()
		c.change(&v)
		got, why := SnapshotSource(v)
		if got.ID != c.want || (got.ID == 0) != (why != "") {
			t.Errorf("%s: %d, %q", name, got.ID, why)
		}
	}
}
