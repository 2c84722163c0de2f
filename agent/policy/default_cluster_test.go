// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

const (
	strayMember  = 0x8e9e05c52164694d
	strayCluster = 0xcdf818194e3a8c32
	strayURL     = "http://localhost:2380"
)

// strayView returns the view of a spare whose etcd has created a cluster of its own although a cluster exists.
func strayView() View {
	v := spareView()
	v.Unit.State = UnitActive
	v.Data = Data{State: DataMember, MemberID: strayMember, ClusterID: strayCluster}
	return v
}

func TestAClusterThatEtcdCreatedByDefaultIsNamed(t *testing.T) {
	t.Parallel()
	silent := func(v *View) { v.Cluster = Cluster{Fresh: true} }
	itself := func(v *View) {
		v.Cluster.ID, v.Cluster.ExpectedID = strayCluster, strayCluster
		v.Cluster.Members = []Member{{ID: strayMember, Name: "default", PeerURL: strayURL, Live: true}}
	}
	for what, c := range map[string]struct {
		change func(v *View)
		stray  bool
	}{
		"next to a cluster":   {func(*View) {}, true},
		"while etcd is down":  {func(v *View) { v.Unit.State = UnitFailed }, true},
		"without a cluster":   {silent, true},
		"its cluster answers": {itself, true},
		"its host is configured with localhost": {func(v *View) {
			itself(v)
			v.Self.PeerURL = strayURL
		}, false},
		"this cluster has grown from the default cluster": {func(v *View) {
			itself(v)
			v.Cluster.Members[0].PeerURL = v.Self.PeerURL
		}, false},
		"this host has belonged to the default cluster, which does not answer": {func(v *View) {
			silent(v)
			v.Cluster.ExpectedID = strayCluster
		}, false},
		"another member's data": {func(v *View) { v.Data.MemberID = 1 }, false},
		"the cluster lists a member with the default ID": {func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: strayMember, PeerURL: peerPrefix + "n9"})
		}, true},
	} {
		v := strayView()
		c.change(&v)
		d := Decide(v)
		named := len(d.Reasons) == 1 && d.Reasons[0].Code == DefaultCluster
		if named != c.stray {
			t.Errorf("%s: %+v", what, d.Reasons)
		}
		if c.stray && (d.Step.Kind != StepNone || d.Notes.StartGuard == GuardSet || what == "its cluster answers" &&
			(d.Notes.Self.ClusterAnswered || d.Notes.Self.Member)) {
			t.Errorf("%s: it takes step %v and records %+v", what, d.Step, d.Notes)
		}
		answers := what == "next to a cluster" || what == "while etcd is down" || what == "its cluster answers"
		r := AgainstBootstrap(v, "/data", "/seen")
		if c.stray && !answers && (r == nil || r.Code != DefaultCluster) {
			t.Errorf("%s: the refusal of a bootstrap is %+v", what, r)
		}
	}
}

func TestClustersThatEtcdCreatedByDefaultAreNoCopiesOfOneMember(t *testing.T) {
	t.Parallel()
	const byDefault = "clusters that etcd made by default"
	stray := func(name string) HostRemains {
		return HostRemains{
			HostID: name, Host: name, Cluster: "prod", PeerURL: "http://" + name + ":2380", ClusterID: strayCluster,
			MemberID: strayMember, InData: []ListedMember{{ID: strayMember, Name: "default", PeerURL: strayURL}},
		}
	}
	running := func(r HostRemains) HostRemains { // its database is open, so the member list cannot be read
		r.InData = nil
		return r
	}
	grown := func(r HostRemains) HostRemains {
		r.InData[0].PeerURL = r.PeerURL
		return r
	}
	real := stray("n9")
	real.ClusterID, real.MemberID, real.InData = 7, 9, []ListedMember{{ID: 9, Name: "n9", PeerURL: real.PeerURL}}
	for what, c := range map[string]struct {
		all  []HostRemains
		name string // the name of the doubt
	}{
		"on all hosts":                {[]HostRemains{stray("n1"), stray("n2"), stray("n3")}, byDefault},
		"on all hosts, and etcd runs": {[]HostRemains{running(stray("n1")), running(stray("n2"))}, byDefault},
		"on one, next to a survivor":  {[]HostRemains{real, stray("n1")}, byDefault},
		"a former member and a copy":  {[]HostRemains{grown(stray("n1")), grown(stray("n2"))}, "the same data twice"},
		"one that runs, alone":        {[]HostRemains{running(stray("n1"))}, "the voters are unknown"},
	} {
		p := PlanRecovery(c.all, RecoveryChoice{Cluster: "prod"})
		if p.Doubt == nil || p.Doubt.Name != c.name {
			t.Errorf("%s: %+v", what, p.Doubt)
		} else if c.name == byDefault && (strings.Contains(p.Doubt.String(), "copy") ||
			!strings.Contains(p.Doubt.String(), "n1") || !strings.Contains(p.Doubt.Remedy, "quorumctl bootstrap")) {
			t.Errorf("%s: %s", what, p.Doubt)
		}
	}
}
