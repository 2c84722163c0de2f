// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestADefragmentationAndEtcdNeverRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	as := func(base func() View) func() View {
		return func() View {
			v := base()
			v.Asked.Work, v.Asked.Over = WorkDefrag, false
			v.Asked.Command = Hooks{State: HooksDue, Text: "defragmentation"}
			return v
		}
	}
	state := func(s HookState) func(v *View) { return func(v *View) { v.Asked.Command.State = s } }
	play(t, as(askedView), []scene{
		{"it is requested", nil, StepTakeLock, ""},
		{"an operator has stopped etcd", func(v *View) { v.Unit.State = UnitInactive }, StepNone, UnitStopped},
	})
	play(t, as(turnView), []scene{
		{"its operation is in flight", nil, StepTakeDown, ""},
		{"another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, QuorumAtRisk},
	})
	play(t, as(downView), []scene{
		{"etcd is stopped", nil, StepDefragment, ""},
		{"etcd is stopping", func(v *View) { v.Unit.State = UnitDeactivating }, StepNone, Stopping},
		{"the database is being compacted", state(HooksRunning), StepNone, Defragmenting},
		{"an operator has started etcd meanwhile", func(v *View) {
			v.Asked.Command.State, v.Unit.State = HooksRunning, UnitActive
		}, StepTakeDown, ""},
		{"an operator ends the request meanwhile", func(v *View) {
			v.Asked.Command.State, v.Asked.Over = HooksRunning, true
		}, StepNone, Defragmenting},
		{"no voter answers meanwhile", func(v *View) {
			v.Asked.Command.State, v.Op, v.Cluster.Reachable, v.Lock = HooksRunning, nil, false, Lock{}
		}, StepNone, Defragmenting},
		{"it is done", state(HooksDone), StepStartUnit, ""},
		{"it has failed", state(HooksFailed), StepStartUnit, ""},
		{"the member was removed", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepEndOp, ""},
	})
}

func TestTheOldDatabaseIsDeletedOnceTheMemberIsHealthyAndThenTheOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		state   HookState
		change  func(v *View)
		step    StepKind
		outcome ReasonCode
	}{
		{"it is done", HooksDone, nil, StepDeleteOld, ""},
		{"it has failed", HooksFailed, nil, StepDeleteOld, ""},
		{"the old database is deleted", HooksDone, func(v *View) { v.Asked.OldDeleted = true }, StepEndOp, Cycled},
		{"it has failed, and nothing is left", HooksFailed, func(v *View) {
			v.Asked.OldDeleted = true
		}, StepEndOp, DefragFailed},
		{"the old database cannot be deleted", HooksDone, func(v *View) {
			v.Failed.Kind = StepDeleteOld
		}, StepEndOp, Cycled},
		{"it did not run", HooksDue, nil, StepEndOp, DefragFailed},
		{"the member has just started", HooksDone, func(v *View) { v.Cluster.Members[2].LiveFor = 0 }, StepNone, ""},
		{"the member does not serve", HooksDone, func(v *View) { v.Cluster.Members[2].Live = false }, StepNone, ""},
		{"the member reports errors", HooksDone, func(v *View) { v.Cluster.Members[2].Errors = true }, StepNone, ""},
	} {
		v := backView()
		v.Asked.Work, v.Asked.Command = WorkDefrag, Hooks{State: c.state, Text: "380 MiB before, 161 MiB after"}
		if c.change != nil {
			c.change(&v)
		}
		d := Decide(v)
		if d.Step.Kind != c.step || d.Step.Outcome != c.outcome {
			t.Errorf("%s: %s, %s, want %s, %s", c.name, d.Step.Kind, d.Step.Outcome, c.step, c.outcome)
		}
		if c.outcome == Cycled && d.Step.Why != "380 MiB before, 161 MiB after" {
			t.Errorf("%s: the outcome does not name the sizes: %q", c.name, d.Step.Why)
		}
	}
}

func TestADefragmentationIsWorthItIfItFreesMuchOrTheQuotaIsNear(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		size, inUse, quota int64
		want               bool
	}{
		{500 * mib, 300 * mib, 0, true},
		{500 * mib, 301 * mib, 0, false}, // 199 MiB free
		{501 * mib, 301 * mib, 0, false}, // 39.9 %
		{80 * mib, 48 * mib, 100 * mib, true},
		{80 * mib, 49 * mib, 100 * mib, false}, // 31 MiB free
		{79 * mib, 40 * mib, 100 * mib, false}, // 79 % of the quota
		{80 * mib, 48 * mib, 0, false},
		{0, 0, 2048 * mib, false},
		{10 * mib, 20 * mib, 0, false}, // etcd measures the two sizes at different times
	} {
		if got := (Database{c.size, c.inUse, c.quota}).WorthDefrag(); got != c.want {
			t.Errorf("%d of %d MiB in use, quota %d MiB: %t", c.inUse/mib, c.size/mib, c.quota/mib, got)
		}
	}
}

func TestARolloutSkipsHostsThatAreNotWorthADefragmentation(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	hosts := []RolloutHost{
		{ID: "a", Name: "n1", Manage: true, Member: true, Database: Database{Size: 600 * mib, InUse: 100 * mib}},
		{ID: "b", Name: "n2", Manage: true, Member: true, Database: Database{Size: 300 * mib, InUse: 288 * mib}},
		{ID: "c", Name: "n3", Manage: true, Member: true},
		{ID: "d", Name: "n4", Manage: true},
	}
	chosen, refused := RolloutHosts(hosts, nil, WorkDefrag, "")
	if refused != nil || len(chosen) != 3 || chosen[0].Skipped || !chosen[1].Skipped || !chosen[2].Skipped {
		t.Fatalf("%+v, %v", chosen, refused)
	}
	for i, want := range []string{
		"worth it: 500 MiB of 600 MiB is free", "skipped: 12 MiB of 300 MiB is free",
		"skipped: its etcd has not answered",
	} {
		if got := DefragText(chosen[i]); got != want {
			t.Errorf("%s: %q, want %q", chosen[i].Name, got, want)
		}
	}
	for name, want := range map[string]string{
		"n2": "a defragmentation of n2 is not worth the restart: 12 MiB of 300 MiB is free", "n3": "has not answered",
		"n4": "n4 has no member",
	} {
		_, refused := RolloutHosts(hosts, []string{name}, WorkDefrag, "")
		if refused == nil || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	hosts[1].Forced = true
	if chosen, refused := RolloutHosts(hosts, []string{"n2"}, WorkDefrag, ""); refused != nil || chosen[0].Skipped ||
		DefragText(chosen[0]) != "forced: 12 MiB of 300 MiB is free" {
		t.Errorf("forced: %+v, %v", chosen, refused)
	}
}
