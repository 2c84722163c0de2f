// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAnEtcdIsHeldBackOnlyOnAHostWithoutAMember(t *testing.T) {
	t.Parallel()
	spare := func() View {
		var v View
		v.Self = Self{ID: "h2", PeerURL: "http://p2", Mode: Manage}
		v.Cluster = Cluster{
			Reachable: true, Listed: true, Fresh: true, ID: 7,
			Members: []Member{{ID: 1, PeerURL: "http://p1"}},
		}
		v.Unit.State, v.Data.State = UnitInactive, DataEmpty
		return v
	}
	for what, c := range map[string]struct {
		change func(*View)
		want   Hold
	}{
		"a spare":               {func(*View) {}, HoldBack},
		"whose unit has failed": {func(v *View) { v.Unit.State = UnitFailed }, HoldBack},
		"with the data of a former member": {func(v *View) {
			v.Data.State, v.Data.MemberID = DataMember, 9
		}, HoldBack},
		"that only observes":        {func(v *View) { v.Self.Mode = Observe }, HoldAsIs},
		"that never knew a cluster": {func(v *View) { v.Cluster = Cluster{} }, HoldBack},
		"that is the first of a cluster": {func(v *View) {
			v.Cluster, v.Bootstrap.Requested = Cluster{}, true
		}, HoldNot},
		"that is asked to be the first of a cluster, and has been a member of one": {func(v *View) {
			v.Cluster, v.Bootstrap.Requested = Cluster{}, true
			v.Data.State, v.Data.MemberID = DataMember, 9
		}, HoldAsIs},
		"that has not asked etcd in this round": {func(v *View) { v.Cluster.Fresh = false }, HoldAsIs},
		"whose etcd was stopped for what was asked": {func(v *View) {
			v.Asked = &Asked{Work: WorkMaintenance, Stopped: true}
		}, HoldAsIs},
		"a member of an older look": {func(v *View) {
			v.Cluster.Fresh, v.Data.State, v.Data.MemberID = false, DataMember, 1
		}, HoldAsIs},
		"while it is not known who joins": {func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordOp}}
		}, HoldAsIs},
		"that is cut off": {func(v *View) {
			v.Cluster.Reachable, v.Cluster.ExpectedID = false, 7
		}, HoldAsIs},
		"that is cut off, with data": {func(v *View) {
			v.Cluster.Reachable, v.Data.State = false, DataMember
		}, HoldAsIs},
		"that reaches another cluster": {func(v *View) { v.Cluster.ExpectedID = 8 }, HoldAsIs},
		"whose etcd runs":              {func(v *View) { v.Unit.State = UnitActive }, HoldAsIs},
		"whose data is not known":      {func(v *View) { v.Data.State = DataUnknown }, HoldAsIs},
		"that joins":                   {func(v *View) { v.Op = &Op{Host: "h2"} }, HoldAsIs},
		"that makes a cluster":         {func(v *View) { v.Bootstrap.Requested = true }, HoldAsIs},
		"while another joins":          {func(v *View) { v.Op = &Op{Host: "h3"} }, HoldBack},
		"a learner that was just added": {func(v *View) {
			v.Cluster.Members[0].PeerURL = "http://p2"
		}, HoldAsIs},
		"a learner beside old data": {func(v *View) {
			v.Cluster.Members[0].PeerURL, v.Data.State, v.Data.MemberID = "http://p2", DataMember, 9
		}, HoldAsIs},
		"a member by its data": {func(v *View) {
			v.Data.State, v.Data.MemberID = DataMember, 1
		}, HoldNot},
	} {
		v := spare()
		c.change(&v)
		if got := Decide(v).Notes.Hold; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
