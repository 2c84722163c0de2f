// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

// requestView returns the view of voter n2 with a maintenance request whose operation has not begun.
func requestView() View {
	v := spareView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n2", "n2", peerPrefix+"n2"
	v.Cluster.Fresh, v.HostsFresh = true, true
	v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 2
	v.Asked = &Asked{Request: Request{Work: WorkMaintenance, By: "root"}, RebootFor: Never}
	return v
}

func TestARequestEndsWhenItIsOverAndItsOperationIsGone(t *testing.T) {
	t.Parallel()
	began := func(v *View) { v.Asked.Seen, v.Asked.Begun = true, true }
	own := func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", SameBoot: true} }
	over := func(v *View) { began(v); v.Asked.Seen, v.Asked.Ended, v.Asked.Over = false, true, true }
	down := func(v *View) { v.Asked.Stopped, v.Unit.State = true, UnitInactive }
	released := func(v *View) { began(v); v.Asked.Released = true }
	rolling := func(v *View) {
		v.Asked.Work, v.Asked.Rollout, v.Rollout = WorkRestart, "r1", &Rollout{ID: "r1", Runs: true}
	}
	for _, c := range []struct {
		when   string
		change func(v *View)
		want   RequestNote
	}{
		{"its operation has not begun", func(*View) {}, RequestNote{}},
		{"its operation is in flight", own, RequestNote{Change: RequestSeen}},
		{"its operation is in flight, and was observed", func(v *View) { own(v); began(v) }, RequestNote{}},
		{"its operation is in flight, and the request is over", func(v *View) { own(v); over(v) }, RequestNote{}},
		{"this host joins meanwhile", func(v *View) { own(v); v.Op.Kind = KindJoin }, RequestNote{}},
		{"another host is in its operation", func(v *View) { own(v); v.Op.Host = "n1" }, RequestNote{}},
		{"its record was deleted", func(v *View) { began(v); v.Asked.RecordDeleted = true }, RequestNote{}},
		{"its operation was released", released, releasedNote()},
		{"its operation was released, and etcd is down for it", func(v *View) { released(v); down(v) }, RequestNote{}},
		{"its operation was released, and etcd was started by hand", func(v *View) {
			released(v)
			v.Asked.Stopped = true
		}, RequestNote{}},
		{"a restart that has started etcd was released", func(v *View) {
			released(v)
			v.Asked.Stopped, v.Asked.Work = true, WorkRestart
		}, releasedNote()},
		{"it is over", over, overNote()},
		{"it is over, and its operation was released after that", func(v *View) {
			over(v)
			v.Asked.Seen = true
		}, overNote()},
		{"it is over, and the etcd that was stopped for it runs", func(v *View) {
			over(v)
			v.Asked.Stopped = true
		}, overNote()},
		{"it is over, and this host has the lock", func(v *View) {
			over(v)
			v.Lock = Lock{Known: true, Held: true, Mine: true}
		}, RequestNote{}},
		{"it is over, and the lock's holder is unreadable", func(v *View) {
			over(v)
			v.Unreadable = []Unreadable{{Kind: RecordLock}}
		}, RequestNote{}},
		{"it is over, and etcd is down for it", func(v *View) { over(v); down(v) }, RequestNote{}},
		{"it is over, and the host is no longer a member", func(v *View) {
			over(v)
			down(v)
			v.Cluster.Members = v.Cluster.Members[:1]
		}, overNote()},
		{"the work was a reboot, and the machine has rebooted", func(v *View) {
			began(v)
			v.Asked.Seen, v.Asked.Work, v.Asked.OtherBoot, v.Asked.Over = false, WorkReboot, true, true
		}, overNote()},
		{"the machine has rebooted in its maintenance", func(v *View) {
			began(v)
			v.Asked.Seen, v.Asked.OtherBoot = false, true
		}, RequestNote{}},
		{"an operator has rebooted the machine before its operation", func(v *View) {
			v.Asked.Work, v.Asked.External, v.Asked.Over = WorkReboot, true, true
			v.Asked.Begun, v.Asked.OtherBoot = false, true
		}, ends(Cancelled, "the machine was rebooted before the operation began")},
		{"its rollout runs", rolling, RequestNote{}},
		{"its rollout has stopped", func(v *View) { rolling(v); v.Rollout.Runs = false }, haltedNote()},
		{"another rollout runs", func(v *View) { rolling(v); v.Rollout.ID = "r2" }, haltedNote()},
		{"its rollout is gone", func(v *View) { rolling(v); v.Rollout = nil }, haltedNote()},
		{"another cluster answers, which has no such rollout", func(v *View) {
			rolling(v)
			v.Rollout, v.Cluster.ExpectedID = nil, v.Cluster.ID+1
		}, RequestNote{}},
		{"its rollout has stopped after it began", func(v *View) {
			rolling(v)
			own(v)
			began(v)
			v.Rollout = nil
		}, RequestNote{}},
		{"its rollout has stopped before it began, although its disk records the beginning", func(v *View) {
			rolling(v)
			v.Asked.Begun, v.Rollout = true, nil
		}, haltedNote()},
		{"its rollout has stopped, and its record was deleted", func(v *View) {
			rolling(v)
			began(v)
			v.Asked.RecordDeleted, v.Rollout = true, nil
		}, RequestNote{}},
		{"its rollout has stopped, and etcd is down for it", func(v *View) {
			rolling(v)
			down(v)
			v.Asked.Begun, v.Rollout = true, nil
		}, RequestNote{}},
	} {
		v := requestView()
		c.change(&v)
		if _, member := v.member(); member && c.want.Change == RequestEnds { // from then on, etcd starts at every boot
			c.want.Guard = GuardCleared
		}
		if got := Decide(v).Notes.Request; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.when, got, c.want)
		}
		for what, unseen := range map[string]func(*View){
			"no voter answers":                 func(v *View) { v.Cluster.Reachable = false },
			"etcd was not asked in this round": func(v *View) { v.Cluster.Fresh = false },
			"the operation is unreadable":      func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordOp}} },
		} {
			unsure := v
			unseen(&unsure)
			if got := Decide(unsure).Notes.Request; got != (RequestNote{}) {
				t.Errorf("%s, and %s: %+v", c.when, what, got)
			}
		}
	}
}

func TestARequestEndsWithItsOperationUnlessNothingWasDone(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[ReasonCode]RequestChange{
		Cycled: RequestEnding, Cancelled: RequestEnding, HookFailed: RequestEnding, CommandFailed: RequestEnding,
		UnitStopped: RequestRetried, UnitBusy: RequestRetried,
	} {
		v := requestView()
		v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", SameBoot: true}
		if got := noteRequest(v, Step{Kind: StepEndOp, Outcome: outcome}).Change; got != want {
			t.Errorf("%s: %d, want %d", outcome, got, want)
		}
		if v.Op.Kind = KindRemove; noteRequest(v, Step{Kind: StepEndOp, Outcome: outcome}) != (RequestNote{}) {
			t.Errorf("the outcome %s of a removal changes the request", outcome)
		}
	}
	v := requestView()
	v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseBegun, SameBoot: true, Token: 7}
	v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 7, ValidFor: v.Limits.LockTTL}
	v.Asked.Ended, v.Asked.Over = true, true
	if d := Decide(v); d.Step.Outcome != Cancelled || d.Notes.Request.Change != RequestEnding {
		t.Errorf("cancelled before anything was done: %+v, %+v", d.Step, d.Notes)
	}
}

func TestAHostMakesARequestWhenARolloutReachesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when   string
		change func(v *View)
		want   RequestChange
	}{
		{"the rollout has reached this host", func(*View) {}, RequestTurn},
		{"the work is a reboot", func(v *View) { v.Rollout.Work = WorkReboot }, RequestTurn},
		{"the work is a command", func(v *View) { v.Rollout.Work = WorkCommand }, RequestTurn},
		{"the work is of a newer quorumd", func(v *View) { v.Rollout.Work = "defragment" }, RequestTooNew},
		{"the work is maintenance, which no rollout requests", func(v *View) {
			v.Rollout.Work = WorkMaintenance
		}, RequestTooNew},
		{
			"the host was taken down, which the rollout does not record",
			func(v *View) { v.Rollout.Due = false }, RequestAgain,
		},
		{"the leader is waiting as well, and goes last", func(v *View) {
			v.Rollout.Waiting = []string{"n1", "n2"}
		}, RequestTurn},
		{"the rollout is done with this host", func(v *View) { v.Rollout.Waiting = []string{"n1"} }, RequestStays},
		{"another host has a request already", func(v *View) {
			v.Rollout.Waiting, v.Hosts[0].Wants = []string{"n1", "n2"}, WorkRestart
		}, RequestStays},
		{"the rollout does not run", func(v *View) { v.Rollout.Runs = false }, RequestStays},
		{"there is no rollout", func(v *View) { v.Rollout = nil }, RequestStays},
		{"the hosts were not read in this round", func(v *View) { v.HostsFresh = false }, RequestStays},
		{"an operation is in flight", func(v *View) { v.Op = &Op{Kind: KindJoin, Host: "n3"} }, RequestStays},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root"} }, RequestStays},
		{"the pause is unreadable", func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordPause}}
		}, RequestStays},
		{"this host only observes", func(v *View) { v.Self.Mode = Observe }, RequestStays},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, RequestStays},
		{"another cluster answers", func(v *View) { v.Cluster.ExpectedID = v.Cluster.ID + 1 }, RequestStays},
	} {
		v := requestView()
		v.Asked, v.Rollout = nil, &Rollout{
			ID: "r1", Work: WorkRestart, Runs: true, Due: true, Waiting: []string{"n2"},
		}
		c.change(&v)
		if got := Decide(v).Notes.Request; got != (RequestNote{Change: c.want}) {
			t.Errorf("%s: %+v, want %d", c.when, got, c.want)
		}
	}
}

func TestAHostIsNotTakenDownForAHaltedRollout(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		rollout   *Rollout
		continues bool
	}{
		"it runs": {&Rollout{ID: "r1", Runs: true}, true}, "it is paused": {&Rollout{ID: "r1"}, false},
		"it is over": {nil, false}, "another rollout runs": {&Rollout{ID: "r2", Runs: true}, false},
	} {
		for _, mine := range []bool{false, true} {
			v := askedView()
			v.Asked.Work, v.Asked.Rollout, v.Asked.Begun, v.Rollout = WorkRestart, "r1", false, c.rollout
			want := StepTakeLock
			if mine {
				v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 7, ValidFor: time.Minute}
				want = StepBeginCycle
			}
			if d := Decide(v); (d.Step.Kind == want) != c.continues {
				t.Errorf("%s, this host has the lock: %t: %s %+v", what, mine, d.Step, d.Reasons)
			}
		}
	}
}

func releasedNote() RequestNote {
	return ends(Cancelled, "its operation was released")
}
func overNote() RequestNote { return ends(Cycled, "its operation has ended") }

func haltedNote() RequestNote {
	return ends(Cancelled, "the rollout that requested it does not continue")
}
