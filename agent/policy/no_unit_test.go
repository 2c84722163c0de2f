// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// noUnit removes etcd's unit from a view but keeps the member, as if a kubelet ran etcd as a static pod.
func noUnit(base func() View) func() View {
	return func() View {
		v := base()
		v.Unit = Unit{State: UnitMissing, NotAtBoot: true, SinceStart: Never, Detail: "etcd.service is not-found"}
		return v
	}
}

// This test checks the promises of contrib/docs/kubernetes.md.
func TestAMemberWithoutAUnitIsObservedAndHasOperations(t *testing.T) {
	t.Parallel()
	play(t, noUnit(restingVoter), []scene{
		{"it is idle", nil, StepNone, Idle},
		{"it is idle in mode observe", func(v *View) { v.Self.Mode = Observe }, StepNone, Idle},
		{
			"a voter that is down is reported",
			func(v *View) { v.Cluster.Members[1].Live = false },
			StepNone,
			VoterNotLive,
		},
	})
	play(t, noUnit(slowLeader), []scene{{"it transfers leadership", nil, StepLeaderStepsDown, ""}})
	play(t, noUnit(askedView), []scene{
		{"it cannot be stopped", nil, StepNone, UnitUnusable},
		{"it cannot be restarted", func(v *View) { v.Asked.Work = WorkRestart }, StepNone, UnitUnusable},
		{"its host cannot be rebooted", func(v *View) { v.Asked.Work = WorkReboot }, StepNone, UnitUnusable},
		{"its operation begins if etcd keeps running", func(v *View) { v.Asked.KeepRunning = true }, StepTakeLock, ""},
		{"etcd keeps running, and another voter is down", func(v *View) {
			v.Asked.KeepRunning, v.Cluster.Members[1].Live = true, false
		}, StepTakeLock, ""},
		{"another host is in its operation", func(v *View) {
			v.Asked.KeepRunning = true
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown, MemberID: 1, Token: 5}
		}, StepNone, OperationInFlight},
	})
	play(t, noUnit(spareView), []scene{{"a spare does not join", nil, StepNone, UnitUnusable}})
}
