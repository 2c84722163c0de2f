// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// own is what a list of vetoes must hold, in this order: each code, and whether it is the host's own affair.
type own struct {
	code ReasonCode
	own  bool
}

func TestWhatKeepsAHostBackIsAskedInThisOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list []veto
		want []own
	}{
		"from joining": {vetoes(), []own{
			{NoQuorum, false},
			{ClusterUnreachable, false},
			{ClusterIDMismatch, true},
			{HostConflict, true},
			{MaintenanceOverdue, true},
			{InMaintenance, true},
			{CycleQueued, true},
			{VoterNotLive, true},
			{TargetMet, false},
			{VersionUnknown, true},
			{VersionUnsafe, true},
			{VersionIncompatible, true},
			{HealthUnknown, true},
			{NotQualified, true},
			{HealthBad, true},
			{ClockUnknown, true},
			{ClockSkew, true},
			{SpaceLow, true},
			{UnitUnusable, true},
			{UnitBusy, true},
			{DataUnusable, true},
			{BackingOff, true},
			{StepStuck, true},
			{OperationInFlight, false},
			{LockHeld, false},
			{CommonCause, false},
			{LearnerPresent, false},
			{Settling, false},
			{NotMyTurn, false},
			{EvenVoters, false},
		}},
		"from being taken down": {cycleVetoes(), []own{
			{HostConflict, true},
			{UnitUnusable, true},
			{UnitStopped, true},
			{UnitBusy, true},
			{OperationInFlight, false},
			{LockHeld, false},
			{CommonCause, false},
			{QuorumAtRisk, false},
			{LearnerUnsettled, false},
			{Settling, false},
			{CycleQueued, false},
		}},
		"from removing a member": {removalVetoes(), []own{
			{HostConflict, true},
			{MemberLive, false},
			{QuorumAtRisk, false},
			{OperationInFlight, false},
			{LockHeld, false},
			{Settling, false},
		}},
		"from nothing": {cautions(), []own{{VersionUnsafe, true}, {UnitDisabled, true}}},
	} {
		var got []own
		for _, v := range c.list {
			got = append(got, own{v.code, v.own})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("what keeps a host %s is\n%v\nand shall be\n%v", name, got, c.want)
		}
	}
}

func TestEveryReasonIsDeclared(t *testing.T) {
	t.Parallel()
	all := []ReasonCode{
		AtRest, ModeObserve, Paused, StepStuck, ClusterUnreachable, NoQuorum, PermissionDenied, ClusterIDMismatch,
		HostConflict, TargetMet, HealthUnknown, NotQualified, HealthBad, CommonCause, VersionUnknown,
		VersionUnsafe, VersionIncompatible, ClockUnknown, ClockSkew, SpaceLow, SpaceNotKnown, UnitUnusable,
		UnitNotKnown, UnitDisabled, UnitBusy, UnitStopped, DataUnusable, DataNotKnown, BackingOff, VoterNotLive,
		Settling, LearnerPresent, EvenVoters, OperationInFlight, LockHeld, NotMyTurn, LearnerBehind,
		LearnerNotSteady, LearnerNotStarted, LearnerStalled, JoinTooLong, HealthLost, HostRebooted, Orphaned,
		Disowned, Joined, ClusterExists, Starting, MemberDown, MemberLost, StepFailed, QuorumAtRisk,
		LearnerUnsettled, CycleQueued, InMaintenance, MaintenanceOverdue, RebootAwaited, VerdictAwaited,
		LeaderStays, HookRunning, HookFailed, CommandRunning, CommandFailed, Stopping, Returning, NotBack, Cycled,
		Withdrawn, RecordUnreadable, MemberLive, Removed,
	}
	for _, code := range all {
		if info := code.Info(); info.Code != code || info.Meaning == "" {
			t.Errorf("%s is declared as %+v", code, info)
		}
	}
	if len(Reasons()) != len(all) {
		t.Errorf("%d reasons are declared, and %d known here", len(Reasons()), len(all))
	}
	if got := ReasonCode("DANCE").Info(); got != (ReasonInfo{Code: "DANCE"}) {
		t.Errorf("a code that nobody has declared gives %+v", got)
	}
	if got := because(spareView(), vetoLockHeld); !slices.Equal(got.Reasons, []Reason{{Code: LockHeld}}) {
		t.Errorf("a veto that does not hold any more is told as %+v", got)
	}
}

// forgotten is a host in its turn, the record of which somebody has deleted.
func forgotten() View {
	v := downView()
	v.Op, v.Asked.Noted = nil, true
	v.Lock = Lock{Known: true}
	return v
}

func TestATurnWhoseRecordIsGoneIsRecordedAgain(t *testing.T) {
	t.Parallel()
	failed := func(change func(*View)) func(*View) { // its etcd, which is not held back
		return func(v *View) {
			v.Asked.Stopped, v.Unit.State = false, UnitFailed
			change(v)
		}
	}
	play(t, forgotten, []scene{
		{"the lock is free", nil, StepTakeLock, ""},
		{"it has the lock", func(v *View) { v.Lock.Held, v.Lock.Mine = true, true }, StepRecordAgain, ""},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, StepNone, InMaintenance},
		{"another agent holds the lock", func(v *View) {
			v.Lock.Held, v.Lock.Holder = true, "n1"
		}, StepNone, InMaintenance},
		{"another host's operation is in flight", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown}
		}, StepNone, InMaintenance},
		{"the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "move"}
		}, StepNone, InMaintenance},
		{"the pause cannot be read", func(v *View) {
			v.Unreadable = []Unreadable{{RecordPause, "/quorumd/pause", "not JSON"}}
		}, StepNone, InMaintenance},
		{"its disk hangs", func(v *View) { v.Health.Hangs = true }, StepNone, InMaintenance},
		{"its etcd has failed, and the lock is another's", failed(func(v *View) {
			v.Lock.Held, v.Lock.Holder = true, "n1"
		}), StepStartUnit, ""},
		{"an orphaned join keeps it from that", failed(func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded, OrphanedFor: time.Hour}
			v.Cluster.Members[2].Live = true
		}), StepTakeLock, ""},
		{"it has nothing else to do, and waits", func(v *View) {
			v.Data, v.Lock.Held, v.Lock.Holder = Data{State: DataEmpty}, true, "n1"
		}, StepNone, LockHeld},
		{"nobody answers", func(v *View) { v.Cluster.Reachable = false }, StepNone, InMaintenance},
		{"it is asked to remove a member, too", func(v *View) {
			v.Removal = &Removal{MemberID: 2, By: "root", Reason: "in the bin", Live: true}
		}, StepTakeLock, ""},
	})
	for _, c := range []struct {
		name  string
		hosts []Host
		op    *Op
		want  string
	}{
		{"nobody says so", []Host{{ID: "n1"}, {ID: "n3"}}, nil, ""},
		{"this host says so", []Host{{ID: "n3", Turn: true}}, nil, ""},
		{"another says so", []Host{{ID: "n1"}, {ID: "n2", Turn: true}}, nil, "n2"},
		{"its record is there", []Host{{ID: "n2", Turn: true}}, &Op{Host: "n2"}, ""},
		{"another's record is there", []Host{{ID: "n2", Turn: true}}, &Op{Host: "n1"}, "n2"},
	} {
		h, found := turnElsewhere(View{Self: Self{ID: "n3"}, Hosts: c.hosts, Op: c.op})
		if h.ID != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, h.ID, found)
		}
	}
}

func TestWhatWaitsForARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  RecordKind
		holds bool
		hint  string
	}{
		{RecordOp, true, "quorumctl op release --force --reason '<why>' deletes it"},
		{RecordPause, true, "quorumctl resume deletes it"},
		{RecordRollout, false, "quorumctl rollout abort deletes it"},
		{RecordLock, false, "if it stays: etcdctl del KEY"},
		{RecordHost, false, "restart quorumd there, as new as here; if there is no such host: etcdctl del KEY"},
		{"dance", true, ""},
	} {
		u := Unreadable{c.kind, "KEY", "not JSON"}
		if got := u.info(); got.kind != c.kind || got.holds != c.holds {
			t.Errorf("%s: %+v", c.kind, got)
		}
		if got := u.Hint(); got != c.hint {
			t.Errorf("%s: %q, want %q", c.kind, got, c.hint)
		}
		if got := (View{Unreadable: []Unreadable{u}}).holdsAll(); got != c.holds {
			t.Errorf("%s keeps everything back: %v", c.kind, got)
		}
	}
	host := Unreadable{RecordHost, "/quorumd/hosts/n9", "not JSON"}
	pause := Unreadable{RecordPause, "/quorumd/pause", "too long"}
	of := func(list ...Unreadable) func(*View) { return func(v *View) { v.Unreadable = list } }
	mine := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
			change(v)
		}
	}
	play(t, spareView, []scene{
		{"that of a host", of(host), StepTakeLock, ""},
		{"that of a pause", of(pause), StepNone, RecordUnreadable},
		{"that of a rollout", of(Unreadable{RecordRollout, "/quorumd/rollout", "no end"}), StepTakeLock, ""},
		{"that of a new kind", of(Unreadable{"dance", "/quorumd/dance", "new"}), StepNone, RecordUnreadable},
		{"both, the weightier one is named", of(host, pause), StepNone, RecordUnreadable},
		{"both, the other way around", of(pause, host), StepNone, RecordUnreadable},
		{"three of hosts", of(host, host, host), StepTakeLock, ""},
		{"that of a host, and nothing is to do", func(v *View) {
			of(host)(v)
			v.Health.State = health.Slow
		}, StepNone, HealthBad},
		{"that of a pause, and nothing is to do", func(v *View) {
			of(pause)(v)
			v.Health.State = health.Slow
		}, StepNone, RecordUnreadable},
		{"under a lock with nothing to do under it", mine(func(v *View) {
			of(pause)(v)
			v.Health.State = health.Slow
		}), StepReleaseLock, ""},
	})
	play(t, downView, []scene{
		{"what was stopped comes back all the same", func(v *View) {
			of(pause)(v)
			v.Asked.Over = true
		}, StepStartUnit, ""},
		{"what comes after does not", func(v *View) {
			of(pause)(v)
			v.Asked.Work = WorkReboot
		}, StepNone, RecordUnreadable},
	})
}

func TestWhatIsToldBesideAReasonIsACaution(t *testing.T) {
	t.Parallel()
	d := Decision{Reasons: []Reason{
		{VersionUnsafe, "first"}, {UnitDisabled, "second"}, {LockHeld, "third"}, {VersionUnsafe, "fourth"},
	}}
	if got := d.Cautions(); !slices.Equal(got, []Reason{{UnitDisabled, "second"}, {VersionUnsafe, "fourth"}}) {
		t.Errorf("got %v", got)
	}
	play(t, spareView, []scene{
		{"what was said is not said again", func(v *View) { v.Self.Etcd = v36(11) }, StepNone, VersionUnsafe},
		{"a unit that is not there is not called disabled", func(v *View) {
			v.Unit = Unit{State: UnitMissing, NotAtBoot: true, Detail: "etcd.service is not-found"}
		}, StepNone, UnitUnusable},
	})
}
