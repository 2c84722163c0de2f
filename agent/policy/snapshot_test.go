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
		"the standby answers":                   {func(*View) {}, 4},
		"the standby lags exactly by the limit": {func(v *View) { v.Cluster.Members[3].Lag = 100 }, 4},
		"the standby lags":                      {func(v *View) { v.Cluster.Members[3].Lag = 101 }, 3},
		"the learner is still joining":          {func(v *View) { v.Cluster.Members[3].Standby = false }, 3},
		"the standby is down":                   {func(v *View) { v.Cluster.Members[3].Live = false }, 3},
		"there is no standby":                   {func(v *View) { v.Cluster.Members = v.Cluster.Members[:3] }, 3},
		"the follower with the faster disk is unhealthy": {func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:3]
			v.Hosts[2].Health = health.Slow
		}, 2},
		"only the leader answers": {func(v *View) {
			for i := range 3 {
				v.Cluster.Members[i+1].Live = false
			}
		}, 0},
		"the leader is the only voter":                {func(v *View) { v.Cluster.Members = v.Cluster.Members[:1] }, 1},
		"the cluster is unreachable":                  {func(v *View) { v.Cluster.Reachable = false }, 0},
		"the endpoints belong to a different cluster": {func(v *View) { v.Cluster.ID, v.Cluster.ExpectedID = 1, 2 }, 0},
	} {
		v := fourMembers()
		c.change(&v)
		got, why := SnapshotSource(v)
		if got.ID != c.want || (got.ID == 0) != (why != "") {
			t.Errorf("%s: %d, %q", name, got.ID, why)
		}
	}
}
