// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// threeVoters is the view of n1 in a cluster at rest.
func threeVoters() View {
	v := voterView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Cluster.Members = []Member{voter(1, "n1"), voter(2, "n2"), voter(3, "n3")}
	return v
}

func TestAnUnansweringVoterIsNamedWithTheCommandToRun(t *testing.T) {
	t.Parallel()
	v := threeVoters()
	v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 312*time.Second
	r := Decide(v).Reasons[0]
	want := "voter n3 has not answered for 5m12s: 2 of 3 voters are live, fault tolerance 0"
	if r.Code != VoterNotLive || r.Text != want {
		t.Errorf("%s: %q, want %q", r.Code, r.Text, want)
	}
	if got := Remedy(v, r.Code); !strings.Contains(got, "quorumctl member remove n3 --reason '<why>'") {
		t.Errorf("remedy: %s", got)
	}
	v.Cluster.Members[2].Name = ""
	if got := Remedy(v, r.Code); !strings.Contains(got, "quorumctl member remove 3 --reason '<why>'") {
		t.Errorf("remedy for a member without a name: %s", got)
	}
	v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"), voter(5, "n5"))
	v.Cluster.Members[2].Name = "n3"
	if got, want := Decide(v).Reasons[0].Text,
		"voter n3 has not answered for 5m12s: 4 of 5 voters are live, fault tolerance 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	v.Cluster.Members[4].Live = false
	if got, want := Decide(v).Reasons[0].Text,
		"voters n3, n5 have not answered for 5m12s: 3 of 5 voters are live, fault tolerance 0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestASpareReportsADeadVoter(t *testing.T) {
	t.Parallel()
	v := spareView()
	v.Target.Standbys = 0
	v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
	v.Cluster.Members[2].Live = false
	if got := Decide(v).Reasons[0]; got.Code != VoterNotLive || !strings.Contains(got.Text, "n4") {
		t.Errorf("%s: %s", got.Code, got.Text)
	}
}

func TestAJoiningLearnerIsNoStandby(t *testing.T) {
	t.Parallel()
	v := joinView()
	if n := Standbys(v); n != 0 {
		t.Errorf("%d standbys while %s of %s is in flight", n, v.Op.Kind, v.Op.HostName)
	}
	v.Op = nil
	if n := Standbys(v); n != 1 {
		t.Errorf("%d standbys once it has joined", n)
	}
	v.Cluster.Members[2].Name = ""
	if n := Standbys(v); n != 0 {
		t.Errorf("%d standbys, and the learner has never started", n)
	}
}

func TestAReinstalledHostNamesItsOldMemberWithTheCommandToRun(t *testing.T) {
	t.Parallel()
	v := threeVoters()
	v.Cluster.Members[0].Live = false
	v.Unit, v.Data = Unit{State: UnitInactive}, Data{State: DataEmpty}
	r := Decide(v).Reasons[0]
	want := "this host is listed as voter n1 (1), but its data directory is empty: that member cannot come back"
	if r.Code != MemberLost || r.Text != want {
		t.Errorf("%s: %q, want %q", r.Code, r.Text, want)
	}
	if got := Remedy(v, r.Code); !strings.Contains(got,
		"on another host: quorumctl member remove n1 --reason '<why>'") {
		t.Errorf("remedy: %s", got)
	}
}

func TestAVoterWaitsOnlyForItsOwnRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*View)
		want ReasonCode
	}{
		{"a voter at rest", func(*View) {}, ""},
		{"a voter with a slow disk", func(v *View) { v.Health = Health{State: health.Slow, Text: "48 ms"} }, ""},
		{"a voter next to a dead one", func(v *View) { v.Cluster.Members[2].Live = false }, ""},
		{"a voter with a restart request", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkRestart, By: "root", Begun: true}}
		}, CycleQueued},
		{"a voter with another host's identity", func(v *View) { v.Self.Conflict = "n9 has its name" }, HostConflict},
	} {
		v := threeVoters()
		c.edit(&v)
		if got := Decide(v).Waiting; got != c.want {
			t.Errorf("%s waits for %q, want %q", c.name, got, c.want)
		}
	}
	v := spareView()
	v.Health = Health{State: health.Slow, Qualified: true, Text: "48 ms"}
	if got := Decide(v).Waiting; got != HealthBad {
		t.Errorf("a spare with a slow disk waits for %q", got)
	}
}

func TestAHostWithAClusterIsNotAdvisedToBootstrap(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*View){
		"it has seen the cluster":             func(v *View) { v.Bootstrap.LastCluster = clusterID },
		"it has been a member":                func(v *View) { v.Bootstrap.Done = true },
		"the configuration names the cluster": func(v *View) { v.Cluster.ExpectedID = clusterID },
		"the cluster's data is here": func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		},
		"the cluster's member list was just read": func(v *View) { v.Cluster.Listed = true },
	} {
		v := spareView()
		v.Cluster = Cluster{Error: "refused"}
		if r := Decide(v).Reasons[0]; !strings.Contains(Remedy(v, r.Code), "bootstrap") {
			t.Errorf("a host without a cluster is not advised to bootstrap: %s", Remedy(v, r.Code))
		}
		edit(&v)
		for _, r := range Decide(v).Reasons {
			if strings.Contains(Remedy(v, r.Code), "bootstrap") {
				t.Errorf("%s, and it reports: %s", what, Remedy(v, r.Code))
			}
		}
	}
}
