// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestAnEtcdIsHeldBackOnlyOnAHostWithoutAMember(t *testing.T) {
	t.Parallel()
	spare := func() policy.View {
		var v policy.View
		v.Self = policy.Self{ID: "h2", PeerURL: "http://p2", Mode: policy.Manage}
		v.Cluster = policy.Cluster{
			Reachable: true, Listed: true, ID: 7,
			Members: []policy.Member{{ID: 1, PeerURL: "http://p1"}},
		}
		v.Unit.State, v.Data.State = policy.UnitInactive, policy.DataEmpty
		return v
	}
	for what, c := range map[string]struct {
		change func(*policy.View)
		want   hold
	}{
		"a spare":               {func(*policy.View) {}, holdBack},
		"whose unit has failed": {func(v *policy.View) { v.Unit.State = policy.UnitFailed }, holdBack},
		"with the data of a former member": {func(v *policy.View) {
			v.Data.State, v.Data.MemberID = policy.DataMember, 9
		}, holdBack},
		"that only observes":        {func(v *policy.View) { v.Self.Mode = policy.Observe }, holdAsIs},
		"that never knew a cluster": {func(v *policy.View) { v.Cluster = policy.Cluster{} }, holdBack},
		"that is the first of a cluster": {func(v *policy.View) {
			v.Cluster, v.Bootstrap.Requested = policy.Cluster{}, true
		}, holdNot},
		"that is cut off": {func(v *policy.View) {
			v.Cluster.Reachable, v.Cluster.ExpectedID = false, 7
		}, holdAsIs},
		"that is cut off, with data": {func(v *policy.View) {
			v.Cluster.Reachable, v.Data.State = false, policy.DataMember
		}, holdAsIs},
		"that reaches another cluster": {func(v *policy.View) { v.Cluster.ExpectedID = 8 }, holdAsIs},
		"whose etcd runs":              {func(v *policy.View) { v.Unit.State = policy.UnitActive }, holdAsIs},
		"whose data is not known":      {func(v *policy.View) { v.Data.State = policy.DataUnknown }, holdAsIs},
		"that joins":                   {func(v *policy.View) { v.Op = &policy.Op{Host: "h2"} }, holdAsIs},
		"that makes a cluster":         {func(v *policy.View) { v.Bootstrap.Requested = true }, holdAsIs},
		"while another joins":          {func(v *policy.View) { v.Op = &policy.Op{Host: "h3"} }, holdBack},
		"a learner that was just added": {func(v *policy.View) {
			v.Cluster.Members[0].PeerURL = "http://p2"
		}, holdAsIs},
		"a learner beside old data": {func(v *policy.View) {
			v.Cluster.Members[0].PeerURL, v.Data.State, v.Data.MemberID = "http://p2", policy.DataMember, 9
		}, holdAsIs},
		"a member by its data": {func(v *policy.View) {
			v.Data.State, v.Data.MemberID = policy.DataMember, 1
		}, holdNot},
	} {
		v := spare()
		c.change(&v)
		if got := wantHold(v); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
