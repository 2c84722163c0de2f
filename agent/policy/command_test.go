// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestACommandAndEtcdNeverRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	as := func(base func() View) func() View {
		return func() View {
			v := base()
			v.Asked.Work, v.Asked.Program, v.Asked.Over = WorkCommand, "upgrade", false
			v.Asked.Command = Hooks{State: HooksDue, Text: "upgrade"}
			return v
		}
	}
	state := func(s HookState) func(v *View) { return func(v *View) { v.Asked.Command.State = s } }
	play(t, as(askedView), []scene{
		{"a command is requested", nil, StepTakeLock, ""},
		{"an operator has stopped etcd", func(v *View) { v.Unit.State = UnitInactive }, StepNone, UnitStopped},
		{"an etcd without membership runs here", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
		}, StepNone, UnitBusy},
		{"this host is a spare", func(v *View) {
			v.Cluster.Members, v.Unit.State, v.Data = v.Cluster.Members[:2], UnitInactive, Data{State: DataEmpty}
		}, StepTakeLock, ""},
	})
	play(t, as(turnView), []scene{
		{"its operation is in flight", nil, StepTakeDown, ""},
		{"this host leads", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
		}, StepTransferLeadership, ""},
		{"the command is not installed here", func(v *View) {
			v.Op.Phase, v.Asked.Command.State = PhaseBegun, HooksFailed
		}, StepEndOp, ""},
		{"an operator is stopping etcd", func(v *View) { v.Unit.State = UnitInactive }, StepTakeDown, ""},
		{"etcd has just failed", func(v *View) { v.Unit.State = UnitFailed }, StepTakeDown, ""},
		{"another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, QuorumAtRisk},
	})
	play(t, as(downView), []scene{
		{"etcd is stopped", nil, StepRunCommand, ""},
		{"an etcd that has never served runs here", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Name, v.Unit.State = true, "", UnitActivating
		}, StepEndOp, ""},
		{"the stop is not recorded", func(v *View) { v.Op.Phase = PhaseReady }, StepSetPhase, ""},
		{"etcd is stopping", func(v *View) { v.Unit.State = UnitDeactivating }, StepNone, Stopping},
		{
			"an earlier agent started it, and its state is unknown", state(HooksStarting),
			StepRunCommand, "",
		},
		{"it has just started, and its state is unknown", func(v *View) {
			v.Asked.Command.State, v.Asked.Command.Launched = HooksStarting, true
		}, StepNone, CommandRunning},
		{"it runs", state(HooksRunning), StepNone, CommandRunning},
		{"it runs, and the lock was lost", func(v *View) {
			v.Asked.Command.State, v.Lock = HooksRunning, Lock{Known: true}
		}, StepTakeLock, ""},
		{"it runs, and an operator ends the request", func(v *View) {
			v.Asked.Command.State, v.Asked.Over = HooksRunning, true
		}, StepNone, CommandRunning},
		{"it is starting, and an operator ends the request", func(v *View) {
			v.Asked.Command.State, v.Asked.Over = HooksStarting, true
		}, StepNone, CommandRunning},
		{"it has not begun, and an operator ends the request", func(v *View) {
			v.Asked.Over = true
		}, StepStartUnit, ""},
		{"it runs, and an operator has started etcd", func(v *View) {
			v.Asked.Command.State, v.Unit.State = HooksRunning, UnitActive
		}, StepTakeDown, ""},
		{"it is done", state(HooksDone), StepStartUnit, ""},
		{"it has failed", state(HooksFailed), StepStartUnit, ""},
		{"it runs, and no voter answers", func(v *View) {
			v.Asked.Command.State, v.Op, v.Cluster.Reachable, v.Lock = HooksRunning, nil, false, Lock{}
		}, StepNone, CommandRunning},
		{"it is starting, and no voter answers", func(v *View) {
			v.Asked.Command.State, v.Op, v.Cluster.Reachable, v.Lock = HooksStarting, nil, false, Lock{}
		}, StepNone, CommandRunning},
		{"it has not begun, and no voter answers", func(v *View) {
			v.Op, v.Cluster.Reachable = nil, false
		}, StepStartUnit, ""},
		{"it runs, and its operation was released", func(v *View) {
			v.Asked.Command.State, v.Op, v.Asked.Released, v.Lock = HooksRunning, nil, true, Lock{Known: true}
		}, StepNone, CommandRunning},
		{"it has ended, and its operation was released", func(v *View) {
			v.Asked.Command.State, v.Op, v.Asked.Released = HooksDone, nil, true
		}, StepStartUnit, ""},
	})
}

func TestAnOperationEndsWithItsCommandsOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		state   HookState
		phase   OpPhase
		outcome ReasonCode
	}{
		{"it is done", HooksDone, PhaseBack, Cycled},
		{"it has failed", HooksFailed, PhaseBack, CommandFailed},
		{"it did not run", HooksDue, PhaseBack, CommandFailed},
		{"it is not installed, and nothing was stopped", HooksFailed, PhaseBegun, CommandFailed},
		{"it is cancelled, and nothing was stopped", HooksDue, PhaseBegun, Cancelled},
	} {
		v := backView()
		v.Op.Phase = c.phase
		v.Asked.Work, v.Asked.Program, v.Asked.Command = WorkCommand, "upgrade",
			Hooks{State: c.state, Text: "upgrade: exit status 7"}
		d := Decide(v)
		if d.Step.Kind != StepEndOp || d.Step.Outcome != c.outcome {
			t.Errorf("%s: %s, %s", c.name, d.Step.Kind, d.Step.Outcome)
		}
		if c.outcome == CommandFailed && !strings.Contains(d.Step.Why, "upgrade") {
			t.Errorf("%s: it does not name the program: %q", c.name, d.Step.Why)
		}
	}
}
