// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"
)

// external changes a view so that the host's etcd is managed externally.
func external(base func() View, change ...func(v *View)) func() View {
	return func() View {
		v := base()
		v.Self.Drives = false
		for _, c := range change {
			c(&v)
		}
		return v
	}
}

func unreadable(v *View) { v.Data = Data{Detail: "permission denied"} }

func TestAnExternallyManagedEtcdIsOnlyObserved(t *testing.T) {
	t.Parallel()
	play(t, external(restingVoter, unreadable), []scene{
		{"it is idle", nil, StepNone, Idle},
		{"its etcd is down", func(v *View) {
			v.Unit.State, v.Cluster.Members[0].Live = UnitInactive, false
		}, StepNone, MemberDown},
	})
	play(t, external(slowLeader), []scene{{"an unhealthy leader transfers leadership", nil, StepLeaderStepsDown, ""}})
	spare := external(spareView)()
	for work, want := range map[Work]bool{
		WorkMaintenance: true, WorkReboot: true, WorkRestart: false, WorkCommand: false,
	} {
		v := external(restingVoter)()
		if MayTakeDown(v, work) != want || !MayTakeDown(restingVoter(), work) || !MayTakeDown(spare, work) {
			t.Errorf("MayTakeDown is wrong for %s", work)
		}
	}
	d := Decide(external(restingVoter)())
	if list := d.Cautions(); len(list) != 1 || list[0].Code != EtcdExternal || EtcdExternal.Info().Remedy == "" {
		t.Errorf("the cautions are %v", list)
	}
	if list := Decide(restingVoter()).Cautions(); len(list) != 0 {
		t.Errorf("the cautions for an etcd that this agent runs are %v", list)
	}
}

func TestAHostThatCannotStartItsEtcdDoesNotJoin(t *testing.T) {
	t.Parallel()
	play(t, external(spareView), []scene{
		{"it does not begin a join", nil, StepNone, EtcdExternal},
		{"in observe mode, it reports no step", func(v *View) {
			v.Self.Mode = Observe
		}, StepNone, EtcdExternal},
		{"the state of its etcd is unknown", func(v *View) { v.Unit.State = UnitUnknown }, StepNone, UnitNotKnown},
	})
	play(t, external(joinView), []scene{
		{"a join that has begun waits", func(v *View) { v.Unit.State = UnitInactive }, StepNone, EtcdExternal},
		{"a rollback ends if etcd does not run", func(v *View) {
			v.Op.Phase, v.Unit.State = PhaseRollback, UnitInactive
			v.Cluster.Members = v.Cluster.Members[:2]
		}, StepEndOp, ""},
	})
}

func TestAHostWithAnExternallyManagedEtcdHasOperations(t *testing.T) {
	t.Parallel()
	play(t, external(askedView, unreadable), []scene{
		{"it takes the lock", nil, StepTakeLock, ""},
		{"it takes the lock for a reboot", func(v *View) { v.Asked.Work = WorkReboot }, StepTakeLock, ""},
		{"another voter is down", func(v *View) {
			v.Cluster.Members[1].Live = false
		}, StepNone, QuorumAtRisk},
		{"a restart is requested", func(v *View) { v.Asked.Work = WorkRestart }, StepNone, EtcdExternal},
		{"a command is requested", func(v *View) { v.Asked.Work = WorkCommand }, StepNone, EtcdExternal},
		{"the state of its etcd is unknown", func(v *View) {
			v.Unit.State = UnitUnknown
		}, StepNone, UnitNotKnown},
	})
	play(t, external(turnView, unreadable), []scene{
		{"it is safe to touch, and runs", nil, StepSetPhase, ""},
		{"it leads", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
		}, StepTransferLeadership, ""},
		{
			"another voter's host has not reported", func(v *View) { v.Hosts[0].Answered = false }, StepNone,
			HealthAwaited,
		},
		{"an operator has stopped it before", func(v *View) { v.Unit.State = UnitInactive }, StepSetPhase, ""},
	})
	play(t, external(downView, unreadable, func(v *View) { v.Asked.Stopped = false }), []scene{
		{"the external manager has stopped it", nil, StepNone, InMaintenance},
		{"it still runs", running(nil), StepNone, InMaintenance},
		{"it still runs, and another voter fails", running(func(v *View) {
			v.Cluster.Members[1].Live = false
		}), StepSetPhase, ""},
		{"it still runs, and was elected", running(func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
		}), StepTransferLeadership, ""},
		{"it still runs, and the machine is to reboot", running(func(v *View) {
			v.Asked.Work = WorkReboot
		}), StepReboot, ""},
		{"the work is over, and it was not started", func(v *View) { v.Asked.Over = true }, StepNone, EtcdExternal},
		{"the work is over, and it was not started for an hour", func(v *View) {
			v.Asked.Over, v.Op.WrittenFor = true, time.Hour
		}, StepNone, NotBack},
		{"the work is over, and it runs again", running(func(v *View) { v.Asked.Over = true }), StepSetPhase, ""},
	})
	play(t, external(backView, unreadable), []scene{
		{"it has served for long enough", nil, StepEndOp, ""},
		{"it was stopped again", func(v *View) { v.Unit.State = UnitInactive }, StepNone, EtcdExternal},
	})
}

// running changes a view of an operation so that the external manager has not stopped etcd yet.
func running(change func(v *View)) func(v *View) {
	return func(v *View) {
		v.Unit.State, v.Cluster.Members[2] = UnitActive, voter(3, "n3")
		v.Cluster.Members[2].Leader = false
		if change != nil {
			change(v)
		}
	}
}

func TestNoStepStartsOrStopsAnExternallyManagedEtcd(t *testing.T) {
	t.Parallel()
	bases := map[string]func() View{
		"spare": spareView, "join": joinView, "resting": restingVoter, "asked": askedView, "turn": turnView,
		"down": downView, "back": backView, "standby": standbyView,
	}
	states := []UnitState{
		UnitUnknown, UnitMissing, UnitInactive, UnitActivating, UnitActive, UnitDeactivating, UnitFailed,
	}
	drives := 0
	for name, base := range bases {
		for _, state := range states {
			for _, data := range []DataState{DataUnknown, DataEmpty, DataRemains, DataMember} {
				v := base()
				v.Unit.State, v.Data.State = state, data
				if Decide(v).Step.Kind.Info().Drives {
					drives++
				}
				v.Self.Drives = false
				if d := Decide(v); d.Step.Kind.Info().Drives {
					t.Errorf("%s, %q, %q: %s", name, state, data, d.Step)
				}
			}
		}
	}
	if drives < 20 || !slices.ContainsFunc(Steps(), func(s StepInfo) bool { return s.Drives }) {
		t.Errorf("only %d of these views lead to such a step if the agent runs etcd", drives)
	}
}

func TestARestartOfAnExternallyManagedEtcdEnds(t *testing.T) {
	t.Parallel()
	for _, work := range []Work{WorkRestart, WorkCommand} {
		v := turnView()
		v.Self.Drives, v.Asked.Work = false, work
		d := awaitExternalStop(v)
		if d.Step.Kind != StepEndOp || d.Step.Outcome != EtcdExternal || d.Step.Why != v.externalReason().Text {
			t.Errorf("a %s: %+v", work, d)
		}
	}
}
