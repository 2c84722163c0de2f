// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAnEtcdIsHeldBackOnlyOnAHostWithoutAMember(t *testing.T) {
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
		"a spare":                           {func(*View) {}, HoldBack},
		"whose unit has failed":             {func(v *View) { v.Unit.State = UnitFailed }, HoldBack},
		"whose unit starts again and again": {func(v *View) { v.Unit.State = UnitActivating }, HoldBack},
		"whose unit starts, and which has not asked etcd in this round": {func(v *View) {
			v.Unit.State, v.Cluster.Fresh = UnitActivating, false
		}, HoldAsIs},
		"whose unit starts for its join": {func(v *View) {
			v.Unit.State, v.Op = UnitActivating, &Op{Kind: KindJoin, Host: "h2"}
		}, HoldAsIs},
		"whose unit starts, and which is added": {func(v *View) {
			v.Unit.State, v.Self.PeerURL = UnitActivating, "http://p1"
		}, HoldAsIs},
		"that knows no cluster, and whose unit starts": {func(v *View) {
			v.Cluster, v.Unit.State = Cluster{}, UnitActivating
		}, HoldAsIs},
		"whose etcd runs, of no member": {func(v *View) { v.Unit.State = UnitActive }, HoldAsIs},
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
		"whose etcd runs while its maintenance goes on": {func(v *View) {
			v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 1
			v.Asked = &Asked{Work: WorkMaintenance, Stopped: true, Seen: true}
		}, HoldAsIs},
		"whose etcd runs and whose maintenance ends, with its operation released": {func(v *View) {
			v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 1
			v.Self.PeerURL = "http://p1"
			v.Asked = &Asked{Work: WorkMaintenance, Stopped: true, Seen: true, Over: true, Ended: true}
		}, HoldNot},
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
		if got := Decide(v).Notes.StartGuard; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

func TestAStepSaysWhatTheStartGuardIsBeforeItBegins(t *testing.T) {
	t.Parallel()
	ours := map[StepKind]StartGuard{
		StepStartUnit: HoldNot, StepStopForRecovery: HoldBack, StepCopyData: HoldBack, StepLayAside: HoldBack,
	}
	for _, step := range Steps() {
		for _, w := range []Work{WorkMaintenance, WorkReboot, WorkCommand, WorkRestart} {
			want := ours[step.Kind]
			if step.Kind == StepTakeDown && w == WorkMaintenance {
				want = HoldBack
			}
			v := View{Asked: &Asked{Work: w}}
			if got := guardOf(v, Step{Kind: step.Kind}, RequestNote{}, HoldNot); got != want {
				t.Errorf("%s for %s: %d, want %d", step.Kind, w, got, want)
			}
		}
	}
}

func TestTheStartGuardGoesBeforeTheStepWithWhichEndsWhatItWasFor(t *testing.T) {
	t.Parallel()
	old := Data{State: DataMember, ClusterID: 7}
	planned := View{Recovery: &Recovery{Old: 7, New: 8, GivenUp: true}, Data: old}
	parted := View{Recovery: &Recovery{Old: 7, New: 8, GivenUp: true}, Data: Data{State: DataEmpty}}
	for what, c := range map[string]struct {
		v       View
		step    Step
		request RequestChange
		hold    StartGuard
		want    StartGuard
	}{
		"a request, of a member":        {View{}, Step{Kind: StepEndOp}, RequestEnding, HoldNot, HoldNot},
		"a request, of no member":       {View{}, Step{Kind: StepEndOp}, RequestEnding, HoldBack, HoldAsIs},
		"a request that is asked still": {View{}, Step{Kind: StepEndOp}, RequestRetried, HoldNot, HoldAsIs},
		"a plan that was given up": {
			planned, Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}, RequestStays, HoldAsIs, HoldNot,
		},
		"a plan that was given up where no data are": {
			parted, Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}, RequestStays, HoldAsIs, HoldAsIs,
		},
		"a plan that was carried out": {
			planned, Step{Kind: StepEndRecovery, Outcome: Recovered}, RequestStays, HoldAsIs, HoldAsIs,
		},
	} {
		if got := guardOf(c.v, c.step, RequestNote{Change: c.request}, c.hold); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
