// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestAResizePlanNamesEachStepAndWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	const leaves = " leaves: proxies stop using it, its member is removed, etcd is stopped and its data is moved aside"
	alone := "one voter tolerates no failure: if its disk fails, a snapshot is all that is left"
	for name, c := range map[string]struct {
		voters   int
		change   func(v *View)
		steps    []PlanStep
		warnings []string
	}{
		"smaller": {3, func(*View) {}, []PlanStep{
			{Text: "n5" + leaves, Change: PlanLeaves, Host: "n5", Voters: 4, Tolerance: 1, Final: true},
			{Text: "n4" + leaves, Change: PlanLeaves, Host: "n4", Voters: 3, Tolerance: 1, Final: true},
		}, nil},
		"smaller, with a doubt about another voter": {3, func(v *View) {
			v.Cluster.Members[1].Errors = true
		}, []PlanStep{
			{
				Text:   "n5" + leaves,
				Change: PlanLeaves, Host: "n5", Voters: 4, Tolerance: 1, Final: true,
				WaitsFor: "voter n2 reports errors",
			},
			{
				Text:   "n4" + leaves,
				Change: PlanLeaves, Host: "n4", Voters: 3, Tolerance: 1, Final: true,
				WaitsFor: "voter n2 reports errors",
			},
		}, nil},
		"smaller, with a doubt about a voter that leaves": {3, func(v *View) {
			v.Hosts[3].Health = health.Slow
		}, []PlanStep{
			{Text: "n4" + leaves, Change: PlanLeaves, Host: "n4", Voters: 4, Tolerance: 1, Final: true},
			{Text: "n5" + leaves, Change: PlanLeaves, Host: "n5", Voters: 3, Tolerance: 1, Final: true},
		}, nil},
		"smaller, and no host has an agent": {3, func(v *View) {
			for i := range v.Hosts {
				v.Hosts[i].Manage = false
			}
		}, []PlanStep{
			{
				Text: "a voter leaves as soon as its host is in mode manage and in no operation", Change: PlanLeaves,
				Voters: 4, Tolerance: 1, Final: true,
				WaitsFor: "no voter's host runs quorumd in mode manage; quorumctl explain on the hosts shows why",
			},
		}, nil},
		"to one, and the leader's host is unhealthy with the slowest disk": {1, func(v *View) {
			v.Cluster.Members, v.Hosts = v.Cluster.Members[:3], v.Hosts[:3]
			v.Hosts[0].Health = health.Slow
		}, []PlanStep{
			{
				Text:   "leadership is transferred from n1 to n2, then n1" + leaves,
				Change: PlanLeaves, Host: "n1", NewLeader: "n2",
				Voters: 2, Tolerance: 0, Final: true,
			},
			{Text: "n3" + leaves, Change: PlanLeaves, Host: "n3", Voters: 1, Tolerance: 0, Final: true},
		}, []string{alone}},
		"from two to one, and only one host has an agent": {1, func(v *View) {
			v.Cluster.Members, v.Hosts = v.Cluster.Members[:2], v.Hosts[1:2]
		}, []PlanStep{{
			Text: "n2" + leaves, Change: PlanLeaves, Host: "n2", Voters: 1, Final: true,
			WaitsFor: "voter n1 has no quorumd that reports its health state",
		}}, []string{alone}},
		"to one voter, which is the current size": {
			1, func(v *View) { v.Cluster.Members = v.Cluster.Members[:1] }, nil, nil,
		},
		"from two to one": {1, func(v *View) {
			v.Cluster.Members, v.Hosts = v.Cluster.Members[:2], v.Hosts[:2]
		}, []PlanStep{{Text: "n2" + leaves, Change: PlanLeaves, Host: "n2", Voters: 1, Final: true}}, []string{alone}},
		"larger": {7, func(v *View) { v.Hosts = append(v.Hosts, ready("n6", RoleSpare)) }, []PlanStep{
			{
				Text:   "n6 joins as a learner, catches up and becomes a voter",
				Change: PlanJoins, Host: "n6", Voters: 6, Tolerance: 2,
			},
			{
				Text: "another host joins as a learner, catches up and becomes a voter", Change: PlanJoins,
				Voters: 7, Tolerance: 3,
				WaitsFor: "no other host is ready; quorumctl explain on the hosts shows why",
			},
		}, nil},
		"to the largest": {9, func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(6, "n6"), voter(7, "n7"), voter(8, "n8"))
			v.Hosts = append(v.Hosts, ready("n6", RoleVoter), ready("n7", RoleVoter), ready("n8", RoleVoter),
				ready("n9", RoleSpare))
		}, []PlanStep{
			{
				Text:   "n9 joins as a learner, catches up and becomes a voter",
				Change: PlanJoins, Host: "n9", Voters: 9, Tolerance: 4,
			},
		}, []string{"every write waits for 5 of 9 voters"}},
	} {
		v := resized()
		c.change(&v)
		steps, warnings := ResizePlan(v, c.voters)
		if !slices.Equal(steps, c.steps) || !slices.Equal(warnings, c.warnings) {
			t.Errorf("%s: %+v, %q", name, steps, warnings)
		}
	}
}

func TestThePlanOfAResizeIsWhatHostsThenDecide(t *testing.T) {
	t.Parallel()
	v := resized()
	steps, _ := ResizePlan(v, 1)
	if len(steps) != 4 {
		t.Fatalf("%d steps, want 4: %+v", len(steps), steps)
	}
	v.Target.Voters, v.Target.WithoutSnapshot = 1, true
	for n, step := range steps {
		list := leavers(v)
		if !strings.Contains(step.Text, list[0].Name+" leaves") || step.Voters != 4-n ||
			step.Tolerance != Tolerance(4-n, 4-n) || !step.Final {
			t.Errorf("step %d is %+v, and %s leaves next", n+1, step, list[0].Name)
		}
		_, v = PlanStep{}.leave(v)
	}
	v = resized()
	v.Target.Voters = 5
	v.Hosts = append(v.Hosts, ready("n6", RoleSpare))
	steps, warnings := ResizePlan(v, 9)
	if len(steps) != 4 || !strings.HasPrefix(steps[0].Text, "n6 joins") || steps[0].WaitsFor != "" ||
		steps[1].WaitsFor == "" || len(warnings) != 1 {
		t.Errorf("%+v %v", steps, warnings)
	}
	if steps, _ = ResizePlan(resized(), 5); len(steps) != 0 {
		t.Errorf("five voters become five in %+v", steps)
	}
}
