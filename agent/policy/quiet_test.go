// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// quietView returns the view of the first of three healthy voters.
func quietView() View {
	v := threeVoters()
	v.Hosts = []Host{ready("n1", RoleVoter), ready("n2", RoleVoter), ready("n3", RoleVoter)}
	v.Health.State, v.Cluster.StableFor, v.HostsFresh = health.OK, time.Hour, true
	v.Queue = &Queue{Hosts: 4}
	return v
}

func TestAClusterIsQuietOnlyWithNothingInProgress(t *testing.T) {
	t.Parallel()
	if d := Decide(quietView()); !d.Quiet {
		t.Fatalf("three healthy voters are not quiet: %v, %+v", d.Reasons, d.Notes)
	}
	active := map[string][]func(*View){
		"this host is unhealthy": {func(v *View) { v.Health.State = health.Warm }},
		"this host has a request": {
			func(v *View) { v.Asked = &Asked{} },
			func(v *View) { v.Removal = &Removal{} },
		},
		"the lock is held":          {func(v *View) { v.Lock.Held = true }},
		"an operation is in flight": {func(v *View) { v.Op = &Op{Kind: KindJoin, Host: "n4"} }},
		"a rollout runs":            {func(v *View) { v.Rollout = &Rollout{Runs: true} }},
		"a record cannot be read": {func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordPause, Key: "pause"}}
		}},
		"the members have changed": {func(v *View) { v.Cluster.StableFor = time.Second }},
		"a member is unhealthy or recovered only recently": {
			func(v *View) { v.Cluster.Members[2].Live = false },
			func(v *View) { v.Cluster.Members[2].Errors = true },
			func(v *View) { v.Cluster.Members[2].LiveFor = time.Second },
			func(v *View) { v.Cluster.Members[2].LagKnown = false },
			func(v *View) { v.Cluster.Members[2].BehindFor = 1 },
			func(v *View) { v.Cluster.Members[2].AgentGoneFor = 1 },
		},
		"a host has a request or is in an operation": {
			func(v *View) { v.Hosts[1].Wants = WorkRestart },
			func(v *View) { v.Hosts[1].InOperation = true },
		},
		"a host cannot reach a member": {
			func(v *View) { v.Hosts[1].MemberLostFor = 1 },
			func(v *View) { v.Hosts[1].Sees = []record.Reachability{{MemberID: 3, LostSince: lostOn}} },
			func(v *View) { v.Hosts[1].Sees = []record.Reachability{{MemberID: 3}} },
		},
	}
	if len(active) != len(activities()) {
		t.Errorf("%d rows for %d activities", len(active), len(activities()))
	}
	for _, u := range activities() {
		if len(active[u.name]) == 0 {
			t.Errorf("%s: no row covers it", u.name)
		}
		for i, edit := range active[u.name] {
			v := quietView()
			edit(&v)
			if !u.holds(v) {
				t.Errorf("%s, %d: the activity is not detected", u.name, i)
			}
			if Decide(v).Quiet {
				t.Errorf("%s, %d: it is quiet", u.name, i)
			}
		}
	}
}

func TestAClusterIsQuietExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	v := quietView()
	v.Cluster.StableFor = v.Limits.Settle
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].LiveFor = v.Limits.Settle
	}
	for _, u := range activities() {
		if u.holds(v) {
			t.Errorf("it is not quiet: %s", u.name)
		}
	}
}

func TestAHostWithSomethingToDoIsNotQuiet(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*View){
		"a spare":                           func(v *View) { *v = spareView() },
		"one that reaches no cluster":       func(v *View) { v.Cluster = Cluster{} },
		"one whose etcd has failed":         func(v *View) { v.Unit.State = UnitFailed },
		"one that has to rewrite the queue": func(v *View) { v.Queue = nil },
	} {
		v := quietView()
		edit(&v)
		if d := Decide(v); d.Quiet {
			t.Errorf("%s: it is quiet: %v", what, d.Reasons)
		}
	}
}
