// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// unrecordedView returns the view of voter n1 before its disk records anything.
func unrecordedView() View {
	v := voterView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Cluster.Listed, v.Cluster.Fresh, v.Self.MemberID = true, true, 0
	return v
}

func TestWhatAHostRecordsAboutAnAnsweringCluster(t *testing.T) {
	t.Parallel()
	member := SelfNote{ClusterAnswered: true, Member: true, MemberID: 1}
	answered := SelfNote{ClusterAnswered: true}
	known := func(v *View) { v.Self.ClusterID, v.Self.MemberID = clusterID, 1 }
	learns := func(v *View) { v.Cluster.Members[0].Learner = true }
	gone := func(v *View) { v.Data.MemberID = 9 }
	for name, c := range map[string]struct {
		change []func(v *View)
		want   SelfNote
	}{
		"nothing is recorded": {nil, member},
		"the cluster is recorded": {
			[]func(v *View){func(v *View) { v.Bootstrap.LastCluster = clusterID }}, SelfNote{Member: true, MemberID: 1},
		},
		"a different cluster is recorded": {[]func(v *View){func(v *View) { v.Bootstrap.LastCluster = 9 }}, member},
		"this host is creating the cluster": {
			[]func(v *View){func(v *View) { v.Bootstrap.Requested, v.Bootstrap.Listed = true, true }},
			SelfNote{Member: true, MemberID: 1},
		},
		"this host has a request to create a different cluster": {
			[]func(v *View){func(v *View) { v.Bootstrap.Requested = true }}, member,
		},
		"the cluster lists this host": {
			[]func(v *View){func(v *View) { v.Bootstrap.Listed = true }}, member,
		},
		"the observation was carried over": {
			[]func(v *View){func(v *View) { v.Cluster.Fresh = false }}, SelfNote{},
		},
		"no member list was read": {
			[]func(v *View){func(v *View) { v.Cluster.Listed = false }}, SelfNote{},
		},
		"only the member list was read": {
			[]func(v *View){func(v *View) { v.Cluster.Reachable = false }}, answered,
		},
		"the member is recorded": {[]func(v *View){known}, answered},
		"a different member is recorded": {
			[]func(v *View){known, func(v *View) { v.Self.MemberID = 2 }}, member,
		},
		"a member of another cluster is recorded": {
			[]func(v *View){known, func(v *View) { v.Self.ClusterID = 9 }}, member,
		},
		"it is no longer a member": {[]func(v *View){known, gone}, SelfNote{ClusterAnswered: true, Member: true}},
		"it was never a member":    {[]func(v *View){gone}, answered},
		"its data is gone": {
			[]func(v *View){known, func(v *View) { v.Data.State = DataEmpty }}, answered,
		},
		"its data is another cluster's": {
			[]func(v *View){func(v *View) { v.Data.ClusterID = 9 }}, answered,
		},
		"the endpoints belong to a different cluster": {
			[]func(v *View){func(v *View) { v.Cluster.ExpectedID = 9 }}, answered,
		},
		"a host has published its failure domain": {
			[]func(v *View){known, func(v *View) { v.Cluster.Members[1].Domain = "a" }},
			SelfNote{ClusterAnswered: true, Domains: true},
		},
		"a host's failure domain is unchanged": {[]func(v *View){known, func(v *View) {
			v.Cluster.Members[1].Domain, v.Cluster.Members[1].NotedDomain = "a", "a"
		}}, answered},
		"a host of another cluster has published its failure domain": {[]func(v *View){func(v *View) {
			v.Cluster.ExpectedID, v.Cluster.Members[1].Domain = 9, "a"
		}}, answered},
		"it is a learner": {[]func(v *View){known, learns}, SelfNote{ClusterAnswered: true, Standby: 1}},
		"it is a recorded learner": {
			[]func(v *View){known, learns, func(v *View) { v.Self.StandbyID = 1 }}, answered,
		},
		"it is a different learner": {
			[]func(v *View){known, learns, func(v *View) { v.Self.StandbyID = 2 }},
			SelfNote{ClusterAnswered: true, Standby: 1},
		},
		"it is a learner that has never started": {
			[]func(v *View){known, learns, func(v *View) { v.Cluster.Members[0].Name = "" }}, answered,
		},
		"it is a learner, and an operation is in flight": {
			[]func(v *View){known, learns, func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "n2"} }}, answered,
		},
		"it is a learner, and the operation is unreadable": {
			[]func(v *View){known, learns, func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordOp}} }}, answered,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := unrecordedView()
			for _, change := range c.change {
				change(&v)
			}
			if got := Decide(v).Notes.Self; got != c.want {
				t.Errorf("the note is %+v, want %+v", got, c.want)
			}
		})
	}
}
