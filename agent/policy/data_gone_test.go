// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// emptiedView returns the view of a host whose maintenance is over and whose data is gone.
func emptiedView() View {
	v := downView()
	v.Asked.Over, v.Asked.Ended, v.Asked.Seen, v.Asked.OverFor = true, true, true, time.Minute
	v.Unit.Since = time.Hour
	v.Data = Data{State: DataEmpty, Free: 100 << 30, FreeKnown: true, Mount: "/var/lib/etcd"}
	v.Self.DataMount, v.Self.ClusterID = "/var/lib/etcd", clusterID
	v.Cluster.Members[2].DownFor = time.Hour
	v.Cluster.Listed, v.Cluster.Fresh = true, true
	return v
}

// lostView is emptiedView after the operation has ended with MEMBER_LOST.
func lostView() View {
	v := emptiedView()
	v.Asked, v.Op, v.Lock = nil, nil, Lock{Known: true}
	v.Hosts[2].Wants, v.Hosts[2].AskedAt = "", 0
	v.Self.LostID = 3
	return v
}

// inOwnPlace is lostView while the host replaces its own member.
func inOwnPlace() View {
	v := lostView()
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n3"}
	v.Op = &Op{
		Kind: KindReplace, Host: "n3", HostName: "n3", Target: RoleVoter, Phase: PhaseBegun, Token: 7, Replaces: 3,
		PeerURL: peerPrefix + "n3", SameBoot: true, Elapsed: time.Second,
	}
	return v
}

func standbyFour(v *View) {
	m, h := voter(4, "n4"), ready("n4", RoleStandby)
	m.Learner, m.Standby = true, true
	h.Waiting = VoterNotLive
	v.Cluster.Members, v.Hosts = append(v.Cluster.Members, m), append(v.Hosts, h)
}

func TestAHostGivesUpAMemberWhoseDataIsGoneOnceThatIsRecorded(t *testing.T) {
	t.Parallel()
	noted := func(v *View) { v.Self.LostID = 3 }
	play(t, emptiedView, []scene{
		{"its disk does not record it yet", nil, StepNone, MemberLost},
		{"its disk records it", noted, StepEndOp, ""},
		{"no write-ahead log is left", func(v *View) { noted(v); v.Data.State = DataRemains }, StepEndOp, ""},
		{
			"another host has the lock",
			func(v *View) { noted(v); v.Lock = Lock{Known: true, Held: true} },
			StepNone,
			LockHeld,
		},
		{"the lock is free", func(v *View) { noted(v); v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"an operator still works there", func(v *View) {
			v.Asked.Over, v.Asked.Ended, v.Asked.OverFor = false, false, 0
		}, StepNone, InMaintenance},
		{"the cluster is paused", func(v *View) { noted(v); v.Pause = &Pause{By: "root"} }, StepNone, Paused},
		{"its old disk is back", func(v *View) {
			noted(v)
			v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
		}, StepEndOp, ""},
		{"the work was a reboot", func(v *View) {
			noted(v)
			v.Asked.Work, v.Asked.Ended, v.Asked.OtherBoot, v.Op.SameBoot = WorkReboot, false, true, false
		}, StepEndOp, ""},
		{"the work is a restart", func(v *View) {
			noted(v)
			v.Asked.Work, v.Asked.Over, v.Asked.Ended, v.Asked.OverFor = WorkRestart, false, false, 0
		}, StepEndOp, ""},
	})
	v := emptiedView()
	if d := Decide(v); d.Notes.Self.Lost != 3 {
		t.Errorf("it records that %x is lost", d.Notes.Self.Lost)
	}
	noted(&v)
	d := Decide(v)
	if d.Step.Outcome != MemberLost || d.Step.Guard != GuardSet || d.Notes.Request.Change != RequestEnding {
		t.Errorf("it takes step %+v, and the request %d", d.Step, d.Notes.Request.Change)
	}
}

func TestUnreadableOrOutdatedDataDoesNotCountAsGone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(v *View){
		"the file system of the data is not known": func(v *View) { v.Self.DataMount = "" },
		"its file system is not mounted":           func(v *View) { v.Data.Mount = "/" },
		"it cannot be read":                        func(v *View) { v.Data.State = DataUnreadable },
		"it was not read":                          func(v *View) { v.Data.State = DataUnknown },
		"it was read before etcd was down":         func(v *View) { v.Data.Age, v.Asked = v.Unit.Since+1, nil },
		"it was read during the work":              func(v *View) { v.Data.Age = v.Asked.OverFor },
		"the work has only just ended":             func(v *View) { v.Asked.OverFor = time.Second },
		"another member's data is there":           func(v *View) { v.Data.State, v.Data.MemberID = DataMember, 9 },
		"its member answers":                       func(v *View) { v.Cluster.Members[2].Live = true },
		"its etcd runs":                            func(v *View) { v.Unit.State = UnitActive },
		"its disk records another member":          func(v *View) { v.Self.MemberID = 8 },
		"the cluster is a different one":           func(v *View) { v.Cluster.ID++ },
		"the program of its command may have started": func(v *View) {
			v.Asked.Work, v.Asked.Over = WorkCommand, false
		},
		"it is a learner": func(v *View) { v.Cluster.Members[2].Learner = true },
	} {
		v := emptiedView()
		change(&v)
		v.Data = v.Data.Mounted(v.Self)
		if d := Decide(v); d.Notes.Self.Lost != 0 || d.Step.Outcome == MemberLost {
			t.Errorf("%s: it would give up its member: %+v", name, d.Step)
		}
	}
}

func TestAnUnmountedDataDirectoryDoesNotCountAsEmpty(t *testing.T) {
	t.Parallel()
	self := Self{MemberID: 3, DataMount: "/var/lib/etcd"}
	for _, state := range []DataState{DataEmpty, DataRemains} {
		d := Data{State: state, Mount: "/"}.Mounted(self)
		if d.State != DataUnknown || !strings.Contains(d.Detail, "/var/lib/etcd") {
			t.Errorf("%s on another file system is %s: %s", state, d.State, d.Detail)
		}
	}
	for name, d := range map[string]Data{
		"on the recorded mount": {State: DataEmpty, Mount: "/var/lib/etcd"},
		"the mount is unknown":  {State: DataEmpty},
		"with a member's data":  {State: DataMember, Mount: "/"},
	} {
		if got := d.Mounted(self); got != d {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if d := (Data{State: DataEmpty, Mount: "/"}).Mounted(Self{DataMount: "/x"}); d.State != DataEmpty {
		t.Error("a host that was never a member waits for a file system")
	}
}

func TestAHostReplacesItsOwnLostMember(t *testing.T) {
	t.Parallel()
	mine := func(v *View) { v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute} }
	play(t, lostView, []scene{
		{"the lock is free", nil, StepTakeLock, ""},
		{"repair is off", func(v *View) { v.Limits.DeadGrace = 0 }, StepTakeLock, ""},
		{"the lock is its own", mine, StepBeginReplace, ""},
		{"another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, MemberLost},
		{"its disk is not qualified", func(v *View) { v.Health.Qualified = false }, StepNone, MemberLost},
		{
			"its disk is not qualified, and it has the lock",
			func(v *View) { mine(v); v.Health.Qualified = false }, StepReleaseLock, "",
		},
		{"it is not qualified, and a standby is ready", func(v *View) {
			v.Health.Qualified = false
			standbyFour(v)
		}, StepTakeLock, ""},
		{"a standby is there and is not ready", func(v *View) {
			standbyFour(v)
			v.Cluster.Members[3].SteadyFor = 0
		}, StepNone, MemberLost},
		{"its old disk is back", func(v *View) {
			v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
		}, StepTakeLock, ""},
		{"its old disk is back, and another voter is down", func(v *View) {
			v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
			v.Cluster.Members[1].Live = false
		}, StepNone, MemberLost},
		{"the members' data may differ", func(v *View) { v.Cluster.Intact = false }, StepNone, EtcdCorrupt},
		{"there is a surplus voter", func(v *View) {
			v.Target.Voters = 1
		}, StepNone, MemberLost},
	})
	v := lostView()
	mine(&v)
	if d := Decide(v); d.Step.Target != RoleVoter || d.Step.MemberID != 3 {
		t.Errorf("it begins %+v", d.Step)
	}
	standbyFour(&v)
	if d := Decide(v); d.Step.Target != RoleSpare || !strings.Contains(d.Step.Text(), "own member") {
		t.Errorf("with a standby it begins with %+v: %s", d.Step, d.Step.Text())
	}
}

func TestAHostRemovesItsOwnLostMemberAndJoins(t *testing.T) {
	t.Parallel()
	removing := func(v *View) { v.Op.Phase = PhaseRemoving }
	gone := func(v *View) {
		v.Op.Phase = PhaseRemoving
		v.Cluster.Members = v.Cluster.Members[:2]
	}
	play(t, inOwnPlace, []scene{
		{"no removal was sent to etcd yet", nil, StepSetPhase, ""},
		{"the removal may be sent to etcd", removing, StepRemoveMember, ""},
		{"it answers", func(v *View) { v.Cluster.Members[2].Live = true }, StepEndOp, ""},
		{"its disk records no loss", func(v *View) { v.Self.LostID = 0 }, StepEndOp, ""},
		{"the removal lasts too long", func(v *View) { removing(v); v.Op.Elapsed = time.Hour }, StepRollBack, ""},
		{"another voter's health is unknown", func(v *View) {
			removing(v)
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Failed }, StepEndOp, ""},
		{"its member is removed", gone, StepAddLearner, ""},
		{"its member is removed, and its old disk is back", func(v *View) {
			gone(v)
			v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
		}, StepMoveDataAside, ""},
		{"its member is removed, and a standby votes instead", func(v *View) {
			gone(v)
			v.Op.Target = RoleSpare
		}, StepEndOp, ""},
	})
	v := inOwnPlace()
	if d := Decide(v); d.Notes.Repair {
		t.Error("it counts as ejected by another host")
	}
	removing(&v)
	v.Op.Phase, v.Op.WrittenFor = PhaseRollback, time.Hour
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome == Joined {
		t.Errorf("after the rollback, it ends with %+v", d.Step)
	}
}

func TestAHostWithALostMemberKeepsTheStartGuard(t *testing.T) {
	t.Parallel()
	v := lostView()
	for name, data := range map[string]Data{
		"it is empty":      v.Data,
		"its disk is back": {State: DataMember, ClusterID: clusterID, MemberID: 3, Mount: "/var/lib/etcd"},
	} {
		for _, state := range []UnitState{UnitInactive, UnitFailed} {
			w := v
			w.Data, w.Unit.State = data, state
			d := Decide(w)
			if d.Notes.StartGuard != GuardSet || d.Step.Kind == StepStartUnit {
				t.Errorf("%s and its unit is %s: the guard is %d, and it does %s", name, state, d.Notes.StartGuard,
					d.Step)
			}
		}
	}
}

func TestTheOthersReportAMemberDeadThatItsHostReportsLost(t *testing.T) {
	t.Parallel()
	v := lostView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.LostID = "n1", "n1", peerPrefix+"n1", 0
	v.Op = &Op{Kind: KindCycle, Host: "n3", HostName: "n3", Phase: PhaseDown, MemberID: 3}
	m := v.Cluster.Members[2]
	if since, why := v.unattendedFor(m); since != 0 || !strings.Contains(why, "on purpose") {
		t.Errorf("in its operation it has been dead for %s: %s", since, why)
	}
	for _, lost := range []time.Duration{1, time.Minute} {
		v.Hosts[2].MemberLostFor = lost
		if since, why := v.unattendedFor(m); since != lost {
			t.Errorf("it is lost, and has been dead for %s, not %s: %s", since, lost, why)
		}
	}
}

func TestAHostReportsALostMemberOnceItsWorkNeedsNoDataAnyMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work   Work
		change func(v *View)
		lost   bool
	}{
		"the work is over":    {WorkMaintenance, func(v *View) { v.Asked.Over = true }, true},
		"its disk may be out": {WorkMaintenance, func(*View) {}, false},
		"its disk may be out, and only the stop is recorded": {
			WorkMaintenance, func(v *View) { v.Asked.Begun = false }, false,
		},
		"its disk may be out, and only its beginning is recorded": {
			WorkMaintenance, func(v *View) { v.Asked.Stopped = false }, false,
		},
		"the work has not begun": {
			WorkMaintenance, func(v *View) { v.Asked.Begun, v.Asked.Stopped = false, false }, true,
		},
		"its operation was released": {
			WorkMaintenance, func(v *View) { v.Asked.Released = true }, true,
		},
		"there is no request":                               {WorkMaintenance, func(v *View) { v.Asked = nil }, true},
		"a restart needs no data":                           {WorkRestart, func(*View) {}, true},
		"a restart needs none without its operation either": {WorkRestart, func(v *View) { v.Op = nil }, true},
		"the machine has not rebooted":                      {WorkReboot, func(*View) {}, false},
		"the machine has rebooted": {
			WorkReboot, func(v *View) { v.Op.SameBoot = false }, true,
		},
		"the operation of its reboot is not known": {WorkReboot, func(v *View) { v.Op = nil }, false},
		"the operation is another host's": {
			WorkReboot, func(v *View) { v.Op.Host, v.Op.SameBoot = "n1", false }, false,
		},
		"the command runs": {
			WorkCommand, func(v *View) { v.Asked.Command.State = HooksRunning }, false,
		},
		"the command has failed": {WorkCommand, func(v *View) { v.Asked.Command.State = HooksFailed }, true},
	} {
		v := emptiedView()
		v.Asked.Work, v.Asked.Over, v.Asked.Ended = c.work, false, false
		c.change(&v)
		if got := OwnMemberLost(v); got != c.lost {
			t.Errorf("%s: lost %t", name, got)
		}
	}
}

func TestAHostWhoseDataIsGoneIsNotTakenDownExceptForMaintenance(t *testing.T) {
	t.Parallel()
	asked := func() View {
		v := askedView()
		v.Asked.Work, v.Unit.State, v.Data.State = WorkReboot, UnitInactive, DataEmpty
		v.Cluster.Members[2].Live = false
		return v
	}
	play(t, asked, []scene{
		{"a reboot", nil, StepNone, MemberLost},
		{"a restart", func(v *View) { v.Asked.Work = WorkRestart }, StepNone, MemberLost},
		{"maintenance", func(v *View) { v.Asked.Work = WorkMaintenance }, StepTakeLock, ""},
		{"the host has recorded that its data is gone, and the data is back", func(v *View) {
			v.Self.LostID, v.Data.State = 3, DataMember
		}, StepNone, MemberLost},
		{"its data is there", func(v *View) { v.Data.State = DataMember }, StepTakeLock, ""},
		{"its member answers", func(v *View) { v.Cluster.Members[2].Live = true }, StepTakeLock, ""},
		{"its learner has no data yet", func(v *View) { v.Cluster.Members[2].Learner = true }, StepTakeLock, ""},
	})
	v := asked()
	v.Asked = nil
	if text, kept := memberLost(v); kept || text != "" {
		t.Errorf("without a request, it reports: %s", text)
	}
}

func TestAHostWithoutItsDataIsTakenDownOnlyForMaintenance(t *testing.T) {
	t.Parallel()
	v := lostView()
	v.Self.LostID = 0
	for _, work := range Works() {
		r := AgainstRequest(v, false, Request{Work: work, Program: "x"}, true)
		if refused := r != nil && r.Code == MemberLost; refused == (work == WorkMaintenance) {
			t.Errorf("a %s: %+v", work, r)
		}
	}
	v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
	if r := AgainstRequest(v, false, Request{Work: WorkReboot}, true); r != nil {
		t.Errorf("its data is there, and a reboot is refused: %+v", r)
	}
	v = lostView()
	v.Asked = &Asked{Request: Request{Work: WorkReboot}, RebootFor: Never}
	if d := Decide(v); d.Notes.Request.Change != RequestEnds || d.Notes.Request.Code != MemberLost {
		t.Errorf("an earlier request: %+v", d.Notes.Request)
	}
	v.Asked = &Asked{Request: Request{
		Work: WorkMaintenance, Ended: true, Stopped: true, Begun: true,
	}, Over: true, OverFor: time.Minute}
	if d := Decide(v); d.Notes.Request.Change != RequestEnds || d.Notes.Request.Code != MemberLost {
		t.Errorf("an ended request that its disk does not record: %+v", d.Notes.Request)
	}
	v.Asked = nil
	v.Rollout = &Rollout{ID: "r", Work: WorkRestart, Runs: true, Due: true, Waiting: []string{"n3"}}
	v.HostsFresh = true
	if d := Decide(v); d.Notes.Request.Change != RequestStays {
		t.Errorf("a rollout that reaches it: %+v", d.Notes.Request)
	}
}

func TestALostMemberStartedWithItsOldDiskIsLostNoLonger(t *testing.T) {
	t.Parallel()
	v := lostView()
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3, Mount: "/var/lib/etcd"}
	v.Unit.State, v.Cluster.Members[2].Live = UnitActive, true
	if n := Decide(v).Notes.Self; !n.Member || n.MemberID != 3 {
		t.Errorf("it serves, and records %+v", n)
	}
	v.Unit.State, v.Cluster.Members[2].Live = UnitInactive, false
	if n := Decide(v).Notes.Self; n.Member {
		t.Errorf("it does not serve, and records %+v", n)
	}
}

func TestAHostRecordsTheMountOfItsData(t *testing.T) {
	t.Parallel()
	v := restingVoter()
	v.Cluster.Listed, v.Cluster.Fresh, v.Data.Mount = true, true, "/data"
	if n := Decide(v).Notes.Self; n.Mount != "/data" {
		t.Errorf("it records %q", n.Mount)
	}
	v.Self.DataMount = "/data"
	if n := Decide(v).Notes.Self; n.Mount != "" {
		t.Errorf("it records %q again", n.Mount)
	}
}

func TestARolloutStopsAtAHostWithoutItsData(t *testing.T) {
	t.Parallel()
	end := RolloutAfter(RolloutProgress{Host: "n3", Ongoing: true},
		Step{Kind: StepEndOp, Outcome: MemberLost, Why: "gone"})
	if end.HostDone || !strings.Contains(end.Stopped, "n3") {
		t.Errorf("%+v", end)
	}
}

func TestEtcdStartsAfterMaintenanceOnlyOnDataReadSince(t *testing.T) {
	t.Parallel()
	back := func() View {
		v := emptiedView()
		v.Data.State, v.Data.ClusterID, v.Data.MemberID = DataMember, clusterID, 3
		v.Asked.OverFor = 2 * time.Second
		v.Unit.SinceStart = time.Hour
		return v
	}
	silent := func(v *View) {
		v.Cluster.Reachable, v.Cluster.Error, v.Op, v.Lock = false, "no voter answers", nil, Lock{}
	}
	play(t, back, []scene{
		{"it was read since", func(v *View) { v.Data.Age = time.Second }, StepStartUnit, ""},
		{"it was read before", func(v *View) { v.Data.Age = 3 * time.Second }, StepNone, DataNotKnown},
		{"read since, without a quorum", func(v *View) { silent(v); v.Data.Age = time.Second }, StepStartUnit, ""},
		{
			"read before, without a quorum", func(v *View) { silent(v); v.Data.Age = time.Minute },
			StepNone, DataNotKnown,
		},
	})
}

func TestAHostWhoseWorkWasCalledOffDoesNotGiveUpItsMember(t *testing.T) {
	t.Parallel()
	v := emptiedView()
	if !v.givesUp(v.Cluster.Members[2]) {
		t.Fatal("it does not give up its member after the work")
	}
	v.Asked.Recalled, v.Asked.Ended = "no quorum", false
	if v.givesUp(v.Cluster.Members[2]) {
		t.Error("it would give up its member, although its operator may still be working on the disk")
	}
	v.Asked.Ended = true
	if !v.givesUp(v.Cluster.Members[2]) {
		t.Error("it does not give up its member after its operator has ended the work")
	}
}
