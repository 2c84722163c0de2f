// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAHostIsAtWorkWhileItsCommandMayRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command HookState
		phase   OpPhase // empty if no voter answers
		over    bool
		want    RequestState
	}{
		"etcd is being stopped":         {HooksDue, PhaseReady, false, RequestStopping},
		"the command is about to begin": {HooksDue, PhaseDown, false, RequestWorking},
		"the command is about to begin, and an operator ends the request": {
			HooksDue, PhaseDown, true,
			RequestReturning,
		},
		"it is starting": {HooksStarting, PhaseDown, false, RequestWorking},
		"it runs":        {HooksRunning, PhaseDown, false, RequestWorking},
		"the command runs, and an operator ends the request": {
			HooksRunning, PhaseDown, true,
			RequestWorking,
		},
		"the command runs, and no voter answers": {HooksRunning, "", false, RequestWorking},
		"it is done": {
			HooksDone, PhaseDown, false,
			RequestReturning,
		},
		"it has failed": {
			HooksFailed, PhaseDown, false,
			RequestReturning,
		},
		"the command is done, and no voter answers":       {HooksDone, "", false, RequestReturning},
		"the command has not begun, and no voter answers": {HooksDue, "", false, RequestReturning},
		"etcd is back": {
			HooksDone, PhaseBack, false,
			RequestReturning,
		},
	} {
		v := threeVoters()
		v.Asked = &Asked{
			Request: Request{Work: WorkCommand, Program: "upgrade", Stopped: true, Begun: true}, Over: c.over,
		}
		v.Asked.Command.State = c.command
		v.Unit.State = UnitInactive
		if v.Cluster.Reachable = c.phase != ""; v.Cluster.Reachable {
			v.Op = &Op{Kind: KindCycle, Host: v.Self.ID, Phase: c.phase}
		}
		if got := StateOf(v); got != c.want {
			t.Errorf("%s: it is %s, want %s", name, got, c.want)
		}
	}
}

func TestARequestIsSafeOnlyWhileEtcdIsDownForIt(t *testing.T) {
	t.Parallel()
	in := func(phase OpPhase) func(*View) {
		return func(v *View) { v.Op = &Op{Kind: KindCycle, Host: v.Self.ID, Phase: phase} }
	}
	taken := func(edit func(*View)) func(*View) {
		return func(v *View) {
			v.Unit.State, v.Asked.Stopped = UnitInactive, true
			edit(v)
		}
	}
	unreached := func(v *View) { v.Cluster = Cluster{} }
	for what, c := range map[string]struct {
		edit func(*View)
		want RequestState
	}{
		"there is no request":         {func(v *View) { v.Asked = nil }, RequestWaiting},
		"its operation has not begun": {func(*View) {}, RequestWaiting},
		"another host is taken down":  {func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "n2"} }, RequestWaiting},
		"this host joins": {
			func(v *View) { v.Op = &Op{Kind: KindJoin, Host: v.Self.ID} }, RequestWaiting,
		},
		"its operation has begun": {in(PhaseBegun), RequestStopping},
		"etcd is down for it":     {taken(in(PhaseDown)), RequestSafe},
		"etcd is on its way back": {in(PhaseBack), RequestReturning},
		"it is over, in its operation": {
			func(v *View) { in(PhaseDown)(v); v.Asked.Over = true }, RequestReturning,
		},
		"it is over, and etcd was stopped for it": {taken(func(v *View) { v.Asked.Over = true }), RequestReturning},
		"it is over before its operation":         {func(v *View) { v.Asked.Over = true }, RequestWaiting},
		"no voter answers, and etcd is down":      {taken(unreached), RequestSafe},
		"no voter answers, and it still runs": {
			taken(func(v *View) { unreached(v); v.Unit.State = UnitActive }), RequestWaiting,
		},
		"no voter answers, and it is stopping": {
			taken(func(v *View) { unreached(v); v.Unit.State = UnitDeactivating }), RequestWaiting,
		},
		"no voter answers, and an operator has stopped it": {
			func(v *View) { unreached(v); v.Unit.State = UnitInactive }, RequestWaiting,
		},
		"its record was deleted": {
			taken(func(v *View) { v.Asked.RecordDeleted = true }), RequestSafe,
		},
		"etcd was stopped, and the operation was released": {taken(func(*View) {}), RequestWaiting},
	} {
		v := threeVoters()
		v.Asked = &Asked{Request: Request{Work: WorkMaintenance, By: "root", Begun: true}}
		c.edit(&v)
		if got := StateOf(v); got != c.want {
			t.Errorf("%s: it is %s, want %s", what, got, c.want)
		}
	}
}
