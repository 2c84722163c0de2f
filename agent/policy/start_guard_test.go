// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestTheStartGuardIsSetOnlyOnAHostWithoutAMember(t *testing.T) {
	t.Parallel()
	spare := func() View {
		var v View
		v.Self = Self{ID: "h2", PeerURL: "http://p2", Mode: Manage, Drives: true}
		v.Cluster = Cluster{
			Reachable: true, Listed: true, Fresh: true, ID: 7,
			Members: []Member{{ID: 1, PeerURL: "http://p1"}},
		}
		v.Unit.State, v.Data.State = UnitInactive, DataEmpty
		return v
	}
	for what, c := range map[string]struct {
		change func(*View)
		want   StartGuard
	}{
		"a spare":                {func(*View) {}, GuardSet},
		"with a failed unit":     {func(v *View) { v.Unit.State = UnitFailed }, GuardSet},
		"with a restarting unit": {func(v *View) { v.Unit.State = UnitActivating }, GuardSet},
		"with a starting unit, and etcd did not answer in this round": {func(v *View) {
			v.Unit.State, v.Cluster.Fresh = UnitActivating, false
		}, GuardUnchanged},
		"with a unit that starts for its join": {func(v *View) {
			v.Unit.State, v.Op = UnitActivating, &Op{Kind: KindJoin, Host: "h2"}
		}, GuardUnchanged},
		"with a starting unit, and listed as a member": {func(v *View) {
			v.Unit.State, v.Self.PeerURL = UnitActivating, "http://p1"
		}, GuardUnchanged},
		"without a known cluster, and with a starting unit": {func(v *View) {
			v.Cluster, v.Unit.State = Cluster{}, UnitActivating
		}, GuardUnchanged},
		"with a running etcd without membership": {func(v *View) { v.Unit.State = UnitActive }, GuardUnchanged},
		"with the data of a former member": {func(v *View) {
			v.Data.State, v.Data.MemberID = DataMember, 9
		}, GuardSet},
		"that only observes":           {func(v *View) { v.Self.Mode = Observe }, GuardUnchanged},
		"that has never had a cluster": {func(v *View) { v.Cluster = Cluster{} }, GuardSet},
		"that bootstraps a cluster": {func(v *View) {
			v.Cluster, v.Bootstrap.Requested = Cluster{}, true
		}, GuardCleared},
		"that has a bootstrap request, and was a member of a cluster": {func(v *View) {
			v.Cluster, v.Bootstrap.Requested = Cluster{}, true
			v.Data.State, v.Data.MemberID = DataMember, 9
		}, GuardUnchanged},
		"etcd did not answer in this round": {func(v *View) { v.Cluster.Fresh = false }, GuardUnchanged},
		"whose etcd was stopped for its request": {func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkMaintenance, Stopped: true, Begun: true}}
		}, GuardUnchanged},
		"whose etcd runs during its maintenance": {func(v *View) {
			v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 1
			v.Asked = &Asked{Request: Request{Work: WorkMaintenance, Stopped: true, Seen: true, Begun: true}}
		}, GuardUnchanged},
		"whose etcd runs and whose released maintenance ends": {func(v *View) {
			v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 1
			v.Self.PeerURL = "http://p1"
			v.Asked = &Asked{Request: Request{
				Work: WorkMaintenance, Stopped: true, Seen: true, Ended: true, Begun: true,
			}, Over: true}
		}, GuardCleared},
		"a member according to an earlier round": {func(v *View) {
			v.Cluster.Fresh, v.Data.State, v.Data.MemberID = false, DataMember, 1
		}, GuardUnchanged},
		"while the joining host is unknown": {func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordOp}}
		}, GuardUnchanged},
		"that no voter answers": {func(v *View) {
			v.Cluster.Reachable, v.Cluster.ExpectedID = false, 7
		}, GuardUnchanged},
		"that no voter answers, with data": {func(v *View) {
			v.Cluster.Reachable, v.Data.State = false, DataMember
		}, GuardUnchanged},
		"that reaches another cluster": {func(v *View) { v.Cluster.ExpectedID = 8 }, GuardUnchanged},
		"whose etcd runs":              {func(v *View) { v.Unit.State = UnitActive }, GuardUnchanged},
		"with unknown data":            {func(v *View) { v.Data.State = DataUnknown }, GuardUnchanged},
		"that joins":                   {func(v *View) { v.Op = &Op{Host: "h2"} }, GuardUnchanged},
		"that creates a cluster":       {func(v *View) { v.Bootstrap.Requested = true }, GuardUnchanged},
		"while another host joins":     {func(v *View) { v.Op = &Op{Host: "h3"} }, GuardSet},
		"a learner that was just added": {func(v *View) {
			v.Cluster.Members[0].PeerURL = "http://p2"
		}, GuardUnchanged},
		"a learner with old data": {func(v *View) {
			v.Cluster.Members[0].PeerURL, v.Data.State, v.Data.MemberID = "http://p2", DataMember, 9
		}, GuardUnchanged},
		"a member by its data": {func(v *View) {
			v.Data.State, v.Data.MemberID = DataMember, 1
		}, GuardCleared},
	} {
		v := spare()
		c.change(&v)
		if got := Decide(v).Notes.StartGuard; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

func TestAStepDeclaresItsStartGuardBeforeItBegins(t *testing.T) {
	t.Parallel()
	ours := map[StepKind]StartGuard{
		StepStartUnit: GuardCleared, StepStopForRecovery: GuardSet, StepCopyData: GuardSet, StepLayAside: GuardSet,
	}
	for _, step := range Steps() {
		for _, w := range []Work{WorkMaintenance, WorkReboot, WorkCommand, WorkRestart} {
			want := ours[step.Kind]
			if step.Kind == StepTakeDown && w == WorkMaintenance {
				want = GuardSet
			}
			v := View{Asked: &Asked{Request: Request{Work: w, Begun: true}}}
			if got := guardOf(v, Step{Kind: step.Kind}, RequestNote{}, GuardCleared); got != want {
				t.Errorf("%s for %s: %d, want %d", step.Kind, w, got, want)
			}
		}
	}
}

func TestTheStartGuardIsClearedBeforeTheStepThatEndsItsPurpose(t *testing.T) {
	t.Parallel()
	old := Data{State: DataMember, ClusterID: 7}
	planned := View{Recovery: &Recovery{Old: 7, New: 8, GivenUp: true}, Data: old}
	moved := View{Recovery: &Recovery{Old: 7, New: 8, GivenUp: true}, Data: Data{State: DataEmpty}}
	for what, c := range map[string]struct {
		v       View
		step    Step
		request RequestChange
		guard   StartGuard
		want    StartGuard
	}{
		"a request, of a member":  {View{}, Step{Kind: StepEndOp}, RequestEnding, GuardCleared, GuardCleared},
		"a request, of no member": {View{}, Step{Kind: StepEndOp}, RequestEnding, GuardSet, GuardUnchanged},
		"a pending request":       {View{}, Step{Kind: StepEndOp}, RequestRetried, GuardCleared, GuardUnchanged},
		"an abandoned plan": {
			planned, Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}, RequestStays, GuardUnchanged, GuardCleared,
		},
		"an abandoned plan without data": {
			moved, Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}, RequestStays, GuardUnchanged, GuardUnchanged,
		},
		"a completed plan": {
			planned, Step{Kind: StepEndRecovery, Outcome: Recovered}, RequestStays, GuardUnchanged, GuardUnchanged,
		},
	} {
		if got := guardOf(c.v, c.step, RequestNote{Change: c.request}, c.guard); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
