// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// askedView returns the view of n3, one of three healthy voters, with a maintenance request.
func askedView() View {
	v := spareView()
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts[2] = ready("n3", RoleVoter)
	v.Hosts[2].Wants, v.Hosts[2].AskedAt = WorkMaintenance, 1000
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: Never}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3, Free: 100 << 30, FreeKnown: true}
	v.Self.MemberID = 3
	v.Cluster.ExpectedID = clusterID
	v.Limits.TransferTimeout, v.Limits.ReturnStable, v.Limits.ReturnMax = 30*time.Second, 10*time.Second, 10*time.Minute
	v.Asked = &Asked{
		Request: Request{Work: WorkMaintenance, By: "root", Reason: "new disk", Begun: true}, RebootFor: Never,
	}
	return v
}

// downView is askedView after the operation has stopped n3's etcd.
func downView() View {
	v := askedView()
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n3"}
	v.Op = &Op{
		Kind: KindCycle, Host: "n3", HostName: "n3", Phase: PhaseDown, Token: 7, MemberID: 3, SameBoot: true,
		Elapsed: time.Hour,
	}
	v.Unit.State = UnitInactive
	v.Cluster.Members[2].Live = false
	v.Cluster.Members[2].LiveFor, v.Cluster.Members[2].SteadyFor = 0, 0
	v.Asked.Stopped = true
	return v
}

// turnView is askedView during the operation, before etcd is stopped.
func turnView() View {
	v := downView()
	v.Unit.State = UnitActive
	v.Cluster.Members[2] = voter(3, "n3")
	v.Cluster.Members[2].Leader = false
	v.Op.Phase = PhaseReady
	v.Asked.Stopped, v.Asked.Seen = false, true
	for i := range v.Hosts {
		v.Hosts[i].Answered = true
	}
	return v
}

// backView is askedView during the operation, when etcd is running again.
func backView() View {
	v := turnView()
	v.Op.Phase = PhaseBack
	v.Asked.Over = true
	return v
}

func TestASettlingHostReportsTheRemainingTime(t *testing.T) {
	t.Parallel()
	limits := Limits{Settle: 30 * time.Second, Cooldown: time.Minute}
	for _, c := range []struct {
		stable, idle time.Duration
		want         string
	}{
		{25 * time.Second, time.Hour, "5s of the settle period of 30s remain"},
		{time.Hour, 56800 * time.Millisecond, "3.2s of the cooldown of 1m remain"},
		{time.Second, 58 * time.Second, "29s of the settle period of 30s remain"},
		{25 * time.Second, 10 * time.Second, "50s of the cooldown of 1m remain"},
		{time.Hour, time.Hour, ""},
	} {
		v := View{Limits: limits, Cluster: Cluster{StableFor: c.stable}, IdleFor: c.idle}
		if got, holds := settling(v); got != c.want || holds != (c.want != "") {
			t.Errorf("stable for %s, idle for %s: %q, want %q", c.stable, c.idle, got, c.want)
		}
	}
}

func TestAVoterIsTakenDownOnlyIfTheOthersTolerateItsLoss(t *testing.T) {
	t.Parallel()
	play(t, askedView, []scene{
		{"the others tolerate its loss", nil, StepTakeLock, ""},
		{"it has the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
		}, StepBeginCycle, ""},
		{"there is no request", func(v *View) { v.Asked = nil }, StepNone, Idle},
		{"its operation was released", func(v *View) { v.Asked.Released = true }, StepNone, Idle},
		{"it ended before it began", func(v *View) { v.Asked.Over = true }, StepNone, Idle},
		{"it is unhealthy itself", func(v *View) {
			v.Health.State, v.Hosts[2].Health = health.Failed, health.Failed
		}, StepTakeLock, ""},
		{"it does not answer itself", func(v *View) { v.Cluster.Members[2].Live = false }, StepTakeLock, ""},
		{"it only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "rack move"}
		}, StepNone, Paused},
		{"its disk hangs", func(v *View) { v.Health.Hangs = true }, StepNone, HealthBad},
		{"another voter does not answer", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, QuorumAtRisk},
		{"another voter reports errors", func(v *View) { v.Cluster.Members[1].Errors = true }, StepNone, QuorumAtRisk},
		{"another voter is slow", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, QuorumAtRisk},
		{
			"another voter has no health state",
			func(v *View) { v.Hosts[1].Health = health.Unknown },
			StepNone,
			QuorumAtRisk,
		},
		{"another voter's quorumd is gone", func(v *View) { v.Hosts = v.Hosts[1:] }, StepNone, QuorumAtRisk},
		{"two voters are unhealthy, and it is one of them", func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Slow, health.Slow
		}, StepNone, CommonCause},
		{"there are two voters", func(v *View) { v.Cluster.Members = v.Cluster.Members[1:] }, StepNone, QuorumAtRisk},
		{"there are four voters", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
			v.Hosts = append(v.Hosts, ready("n4", RoleVoter))
		}, StepNone, QuorumAtRisk},
		{"it is the only voter", func(v *View) { v.Cluster.Members = v.Cluster.Members[2:] }, StepNone, QuorumAtRisk},
		{"etcd is to keep running", func(v *View) {
			v.Asked.KeepRunning, v.Cluster.Members[1].Live = true, false
		}, StepTakeLock, ""},
		{"it has a restart request, and an operator has stopped it", func(v *View) {
			v.Asked.Work, v.Unit.State = WorkRestart, UnitInactive
		}, StepNone, UnitStopped},
		{"a learner is catching up", func(v *View) {
			m := voter(4, "n4")
			m.Learner, m.Lag = true, 5000
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepNone, LearnerUnsettled},
		{"there is a standby", func(v *View) {
			m := voter(4, "n4")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepTakeLock, ""},
		{"the membership has just changed", func(v *View) { v.Cluster.StableFor = time.Second }, StepNone, Settling},
		{"another host has just come back", func(v *View) { v.IdleFor = time.Second }, StepNone, Settling},
		{"another host's operation is in progress", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown}
		}, StepNone, OperationInFlight},
		{"another agent holds the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Holder: "n2"}
		}, StepNone, LockHeld},
		{"another host has an older request", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt, v.IdleFor = WorkReboot, 999, 61*time.Second
		}, StepNone, CycleQueued},
		{"another host has an older request and does not begin", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt, v.Asked.WaitedFor = WorkReboot, 999, time.Hour
		}, StepTakeLock, ""},
		{"another host has a slightly older request", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt = WorkReboot, 999
		}, StepNone, CycleQueued},
		{"another host has a newer request", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt, v.IdleFor = WorkReboot, 1001, 61*time.Second
		}, StepTakeLock, ""},
		{"the membership has just changed, and the machine goes down anyway", func(v *View) {
			v.Cluster.StableFor, v.Asked.Hurried = time.Second, true
		}, StepTakeLock, ""},
		{"another host has just come back, and the machine goes down anyway", func(v *View) {
			v.IdleFor, v.Asked.Hurried = time.Second, true
		}, StepTakeLock, ""},
		{"another host has an older request, and the machine goes down anyway", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt, v.Asked.Hurried = WorkReboot, 999, true
		}, StepTakeLock, ""},
		{"another voter does not answer, and the machine goes down anyway", func(v *View) {
			v.Cluster.Members[1].Live, v.Asked.Hurried = false, true
		}, StepNone, QuorumAtRisk},
		{"its etcd has failed while it waits", func(v *View) {
			v.Unit.State, v.IdleFor = UnitFailed, 0
		}, StepStartUnit, ""},
		{"it has the lock, and another voter does not answer", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
			v.Cluster.Members[1].Live = false
		}, StepReleaseLock, ""},
	})
}

func TestAVoterTransfersLeadershipAndStopsInItsOperation(t *testing.T) {
	t.Parallel()
	play(t, turnView, []scene{
		{"maintenance", nil, StepTakeDown, ""},
		{"restart", func(v *View) { v.Asked.Work = WorkRestart }, StepRestartUnit, ""},
		{"restart, and its disk does not record the operation yet", func(v *View) {
			v.Asked.Work, v.Asked.Seen = WorkRestart, false
		}, StepNone, StepFailed},
		{"restart, and an operator has stopped it before anything was done", func(v *View) {
			v.Asked.Work, v.Op.Phase, v.Unit.State = WorkRestart, PhaseBegun, UnitInactive
		}, StepEndOp, ""},
		{"reboot", func(v *View) { v.Asked.Work = WorkReboot }, StepTakeDown, ""},
		{"etcd is to keep running", func(v *View) { v.Asked.KeepRunning = true }, StepSetPhase, ""},
		{"it leads", func(v *View) { v.Cluster.Members[2].Leader = true }, StepTransferLeadership, ""},
		{"it leads, and a transfer has failed", func(v *View) {
			v.Cluster.Members[2].Leader = true
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "timeout"}
		}, StepTransferLeadership, ""},
		{"it leads, transfers keep failing, and an operator waits", func(v *View) {
			v.Cluster.Members[2].Leader, v.Op.WrittenFor = true, time.Minute
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "timeout"}
		}, StepTakeDown, ""},
		{"it leads, transfers keep failing, and no operator waits", func(v *View) {
			v.Cluster.Members[2].Leader, v.Op.WrittenFor, v.Asked.Work = true, 40*time.Second, WorkRestart
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "timeout"}
		}, StepNone, LeadershipNotTransferred},
		{"another voter's quorumd has not reported since this one was ready", func(v *View) {
			v.Hosts[1].Answered = false
		}, StepNone, HealthAwaited},
		{"another voter's quorumd has not reported, and the machine goes down within seconds", func(v *View) {
			v.Hosts[1].Answered, v.Asked.Hurried = false, true
		}, StepTakeDown, ""},
		{"another voter's quorumd has not reported, and this host is not ready yet", func(v *View) {
			v.Hosts[1].Answered, v.Op.Phase = false, PhaseBegun
		}, StepSetPhase, ""},
		{"another voter's quorumd has not reported, and this host is a standby", func(v *View) {
			v.Hosts[1].Answered, v.Cluster.Members[2].Learner = false, true
		}, StepTakeDown, ""},
		{"the others reported long ago, before a veto delayed the operation", func(v *View) {
			v.Op.WrittenFor = time.Hour
		}, StepSetPhase, ""},
		{"the others reported long ago, and this host leads", func(v *View) {
			v.Op.WrittenFor, v.Cluster.Members[2].Leader = time.Hour, true
		}, StepSetPhase, ""},
		{"the others reported long ago, and the machine goes down within seconds", func(v *View) {
			v.Op.WrittenFor, v.Asked.Hurried = time.Hour, true
		}, StepTakeDown, ""},
		{"a spare's quorumd has not reported", func(v *View) {
			v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
		}, StepTakeDown, ""},
		{"another voter has failed since", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, QuorumAtRisk},
		{"another voter has failed before anything was done", func(v *View) {
			v.Cluster.Members[1].Live, v.Op.Phase = false, PhaseBegun
		}, StepEndOp, ""},
		{"another voter has just failed", func(v *View) {
			v.Cluster.Members[1].Live, v.Op.WrittenFor = false, v.Limits.TransferTimeout
		}, StepNone, QuorumAtRisk},
		{"hooks are due", func(v *View) { v.Op.Phase, v.Asked.Before.State = PhaseBegun, HooksDue }, StepRunHooks, ""},
		{"hooks have just started", func(v *View) {
			v.Op.Phase, v.Asked.Before = PhaseBegun, Hooks{State: HooksDue, Launched: true}
		}, StepNone, HookRunning},
		{"hooks run", func(v *View) {
			v.Op.Phase, v.Asked.Before.State = PhaseBegun, HooksRunning
		}, StepNone, HookRunning},
		{"a hook has failed", func(v *View) {
			v.Op.Phase, v.Asked.Before.State = PhaseBegun, HooksFailed
		}, StepEndOp, ""},
		{"the hooks have run", func(v *View) {
			v.Op.Phase, v.Asked.Before.State = PhaseBegun, HooksDone
		}, StepSetPhase, ""},
		{"there are no hooks", func(v *View) { v.Op.Phase = PhaseBegun }, StepSetPhase, ""},
		{"etcd is down already, and the machine is to reboot", func(v *View) {
			v.Asked.Work, v.Unit.State = WorkReboot, UnitInactive
		}, StepSetPhase, ""},
		{"its lock is gone", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"its lock is a new one", func(v *View) { v.Lock.Token = 8 }, StepSetPhase, ""},
		{"it is cancelled", func(v *View) { v.Asked.Over = true }, StepEndOp, ""},
		{"the request is gone", func(v *View) { v.Asked = nil }, StepEndOp, ""},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{} }, StepNone, Paused},
		{"another host has its ID", func(v *View) {
			v.Self.Conflict = "another agent runs with this host's ID"
		}, StepNone, HostConflict},
		// no host removes the learner before this operation ends
		{"a learner was added since, and has never started", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: 4, PeerURL: "n4", Learner: true})
		}, StepTakeDown, ""},
		{"etcd is stopping", func(v *View) { v.Unit.State = UnitDeactivating }, StepNone, Stopping},
		{"it is cancelled, and etcd is stopping", func(v *View) {
			v.Asked.Over, v.Unit.State = true, UnitDeactivating
		}, StepNone, Stopping},
		{"it is cancelled, and the restart is in progress", func(v *View) {
			v.Asked.Work, v.Asked.Over, v.Unit.State = WorkRestart, true, UnitActivating
		}, StepSetPhase, ""},
		{"it is cancelled, and the restart has failed", func(v *View) {
			v.Asked.Work, v.Asked.Over, v.Unit.State = WorkRestart, true, UnitFailed
		}, StepStartUnit, ""},
		{"etcd is down already: the operation is recorded first", func(v *View) {
			v.Op.Phase, v.Unit.State = PhaseBegun, UnitFailed
		}, StepSetPhase, ""},
		{"etcd is down already: its start guard is set", func(v *View) { v.Unit.State = UnitFailed }, StepTakeDown, ""},
		{"another voter has failed, and etcd is recorded as stopped", func(v *View) {
			v.Cluster.Members[1].Live, v.Op.Phase, v.Asked.Stopped = false, PhaseBegun, true
		}, StepNone, QuorumAtRisk},
	})
}

func TestAnOperationMakesWayIfTheOthersDoNotTolerateTheLossForLong(t *testing.T) {
	t.Parallel()
	v := turnView()
	v.Cluster.Members[1].Live, v.Op.WrittenFor = false, v.Limits.TransferTimeout+time.Second
	why := "voter n2 does not answer a linearizable read"
	want := Step{Kind: StepSetPhase, Phase: PhaseBegun, MemberID: 3, Why: why}
	if got := Decide(v).Step; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	v.Op.Phase, v.Op.WrittenFor = PhaseBegun, 0
	if got := Decide(v).Step; got != (Step{Kind: StepEndOp, Outcome: QuorumAtRisk, Why: why}) {
		t.Errorf("then %+v", got)
	}
	v.Op.Phase, v.Asked.Stopped = PhaseReady, true
	if got := Decide(v).Step; got.Kind == StepSetPhase {
		t.Errorf("with an etcd that is recorded as stopped: %+v", got)
	}
	v.Op.WrittenFor = v.Limits.TransferTimeout + time.Second
	for work, kind := range map[Work]StepKind{
		WorkReboot: StepStartUnit, WorkCommand: StepStartUnit, WorkRestart: StepStartUnit, WorkMaintenance: StepNone,
	} {
		v.Asked.Work = work
		if got := Decide(v).Step; got.Kind != kind {
			t.Errorf("with a running etcd that is recorded as stopped for %s: %+v", work, got)
		}
	}
	v.Asked.Work, v.Asked.External = WorkReboot, true
	if got := Decide(v).Step; got.Kind != StepNone {
		t.Errorf("with a running etcd that is recorded as stopped for an external reboot: %+v", got)
	}
}

func TestARestartedEtcdIsNotStoppedOnOutdatedReports(t *testing.T) {
	t.Parallel()
	for work, kind := range map[Work]StepKind{
		WorkReboot: StepSetPhase, WorkCommand: StepSetPhase, WorkMaintenance: StepTakeDown,
	} {
		v := turnView()
		v.Asked.Work, v.Op.Phase = work, PhaseDown
		for i := range v.Hosts {
			v.Hosts[i].Answered = false
		}
		got := Decide(v).Step
		if got.Kind != kind || kind == StepSetPhase && got.Phase != PhaseReady {
			t.Errorf("for %s: %+v", work, got)
		}
	}
}

func TestATakenDownHostStaysDownUntilItsWorkIsDone(t *testing.T) {
	t.Parallel()
	play(t, downView, []scene{
		{"maintenance", nil, StepNone, InMaintenance},
		{"overdue maintenance", func(v *View) { v.Asked.Overdue = true }, StepNone, MaintenanceOverdue},
		{"finished maintenance", func(v *View) { v.Asked.Over = true }, StepStartUnit, ""},
		{"finished maintenance, but the disk is new", func(v *View) {
			v.Asked.Over, v.Data = true, Data{State: DataEmpty}
		}, StepNone, DataUnusable},
		{"finished maintenance, without the lock", func(v *View) {
			v.Asked.Over, v.Lock = true, Lock{Known: true}
		}, StepStartUnit, ""},
		{"finished maintenance, while the cluster is paused", func(v *View) {
			v.Asked.Over, v.Pause = true, &Pause{}
		}, StepStartUnit, ""},
		{"finished maintenance, without a quorum", func(v *View) {
			v.Asked.Over, v.Op, v.Cluster = true, nil, Cluster{ExpectedID: clusterID}
		}, StepStartUnit, ""},
		{"finished maintenance, after its operation was released", func(v *View) {
			v.Asked.Over, v.Op = true, nil
		}, StepStartUnit, ""},
		{"without a quorum", func(v *View) {
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepNone, InMaintenance},
		{"without a quorum, for too long", func(v *View) {
			v.Asked.Overdue = true
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepNone, MaintenanceOverdue},
		{"across a reboot", func(v *View) { v.Op.SameBoot, v.Asked.OtherBoot = false, true }, StepNone, InMaintenance},
		{"a reboot that is due", func(v *View) { v.Asked.Work = WorkReboot }, StepReboot, ""},
		{"a reboot that was just requested", func(v *View) {
			v.Asked.Work, v.Asked.RebootFor = WorkReboot, time.Second
		}, StepNone, RebootAwaited},
		{"an external reboot", func(v *View) {
			v.Asked.Work, v.Asked.External = WorkReboot, true
		}, StepNone, RebootAwaited},
		{"a finished reboot", func(v *View) {
			v.Asked.Work, v.Op.SameBoot = WorkReboot, false
		}, StepStartUnit, ""},
		{"a finished reboot, without a quorum", func(v *View) {
			v.Asked.Work, v.Asked.OtherBoot = WorkReboot, true
			v.Op, v.Cluster = nil, Cluster{ExpectedID: clusterID}
		}, StepStartUnit, ""},
		{"a finished reboot, after which an operator has stopped it", func(v *View) {
			v.Asked.Work, v.Asked.OtherBoot, v.Op.SameBoot, v.Unit.Ran = WorkReboot, true, false, true
		}, StepNone, UnitStopped},
		{"a finished reboot, after which an operator has stopped it, without a quorum", func(v *View) {
			v.Asked.Work, v.Asked.OtherBoot, v.Unit.Ran = WorkReboot, true, true
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepNone, UnitStopped},
		{"a cancelled reboot", func(v *View) {
			v.Asked.Work, v.Asked.Over, v.Unit.Ran = WorkReboot, true, true
		}, StepStartUnit, ""},
		{"a reboot whose operation was released", func(v *View) {
			v.Asked.Work, v.Asked.Released, v.Op, v.Unit.Ran = WorkReboot, true, nil, true
		}, StepStartUnit, ""},
		{"a reboot that was not requested yet, and no voter answers any more", func(v *View) {
			v.Asked.Work = WorkReboot
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepStartUnit, ""},
		{"a reboot that was just requested, and no voter answers any more", func(v *View) {
			v.Asked.Work, v.Asked.RebootFor = WorkReboot, v.Limits.TransferTimeout
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepNone, RebootAwaited},
		{"a requested reboot that has not happened, and no voter answers any more", func(v *View) {
			v.Asked.Work, v.Asked.RebootFor = WorkReboot, v.Limits.TransferTimeout+1
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepStartUnit, ""},
		{"a reboot that was not requested yet, and voters deny this host access", func(v *View) {
			v.Asked.Work = WorkReboot
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID, Denied: true}, Lock{}
		}, StepNone, RebootAwaited},
		{"an external reboot, and no voter answers any more", func(v *View) {
			v.Asked.Work, v.Asked.External = WorkReboot, true
			v.Op, v.Cluster, v.Lock = nil, Cluster{ExpectedID: clusterID}, Lock{}
		}, StepNone, RebootAwaited},
		{"maintenance whose operation was released", func(v *View) {
			v.Asked.Released, v.Op, v.Lock = true, nil, Lock{Known: true}
		}, StepNone, InMaintenance},
		{"an interrupted restart", func(v *View) { v.Asked.Work = WorkRestart }, StepStartUnit, ""},
		{"finished, but an operator has stopped etcd since it was started", func(v *View) {
			v.Asked.Over, v.Asked.Stopped = true, false
		}, StepNone, UnitStopped},
		{"rebooted, but an operator stops it before its operation is over", func(v *View) {
			v.Asked.Work, v.Asked.Stopped, v.Op.SameBoot = WorkReboot, false, false
		}, StepNone, UnitStopped},
		{"the request is gone", func(v *View) { v.Asked = nil }, StepNone, UnitStopped},
		{"finished, and etcd runs already", func(v *View) {
			v.Asked.Over, v.Unit.State = true, UnitActive
		}, StepStartUnit, ""},
		{"the end of its work is not recorded yet", func(v *View) { v.Op.Phase = PhaseReady }, StepSetPhase, ""},
	})
}

func TestAHostIsBackOnceItsMemberIsHealthyForAWhile(t *testing.T) {
	t.Parallel()
	play(t, backView, []scene{
		{"it has been healthy for long enough", nil, StepEndOp, ""},
		{"it does not serve", func(v *View) { v.Cluster.Members[2].Live = false }, StepNone, Returning},
		{"it is behind", func(v *View) { v.Cluster.Members[2].Lag = 101 }, StepNone, Returning},
		{"it reports errors", func(v *View) { v.Cluster.Members[2].Errors = true }, StepNone, Returning},
		{"it has served for a moment", func(v *View) {
			v.Cluster.Members[2].LiveFor = time.Second
		}, StepNone, Returning},
		{"its disk is slow", func(v *View) { v.Health.State = health.Slow }, StepNone, Returning},
		{"its disk has been slow for an hour", func(v *View) {
			v.Health.State, v.Op.WrittenFor = health.Slow, time.Hour
		}, StepNone, NotBack},
		{"an operator has stopped it again", func(v *View) { v.Unit.State = UnitInactive }, StepNone, UnitStopped},
		{"an operator has stopped it again after its restart", func(v *View) {
			v.Asked, v.Unit.State = &Asked{Request: Request{Work: WorkRestart, Begun: true}}, UnitInactive
		}, StepNone, UnitStopped},
		{"it has failed again", func(v *View) { v.Unit.State = UnitFailed }, StepStartUnit, ""},
		{"it has just started", func(v *View) { v.Op.Phase = PhaseDown }, StepSetPhase, ""},
		{"a finished restart", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkRestart, Begun: true}}
			v.Op.Restarted = true
		}, StepEndOp, ""},
		{"hooks are due", func(v *View) { v.Asked.After.State = HooksDue }, StepRunHooks, ""},
		{"hooks have just started", func(v *View) {
			v.Asked.After = Hooks{State: HooksDue, Launched: true}
		}, StepNone, HookRunning},
		{"hooks run", func(v *View) { v.Asked.After.State = HooksRunning }, StepNone, HookRunning},
		{"a hook has failed", func(v *View) { v.Asked.After.State = HooksFailed }, StepNone, HookFailed},
		{"a hook has failed, and an operator ends the request", func(v *View) {
			v.Asked.After.State, v.Asked.Waived = HooksFailed, true
		}, StepEndOp, ""},
		{"it is still recorded as stopped after a boot", func(v *View) {
			v.Asked.Stopped, v.Unit.State = true, UnitInactive
		}, StepStartUnit, ""},
		{"the request has changed meanwhile", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkReboot, Begun: true}, RebootFor: Never}
		}, StepEndOp, ""},
		{"a reboot was cancelled before the machine went down", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkReboot, Ended: true, Begun: true}, RebootFor: Never, Over: true}
		}, StepEndOp, ""},
		{"a reboot was cancelled after the machine had rebooted", func(v *View) {
			v.Asked, v.Op.SameBoot = &Asked{
				Request: Request{Work: WorkReboot, Ended: true, Begun: true}, RebootFor: Never, Over: true,
			}, false
		}, StepEndOp, ""},
		{"it was removed meanwhile", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepEndOp, ""},
		{"the lock is gone", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
	})
}

func TestASpareHasNothingToStopInItsOperation(t *testing.T) {
	t.Parallel()
	spare := func() View {
		v := spareView()
		v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
		v.Limits.TransferTimeout = 30 * time.Second
		v.Asked = &Asked{
			Request: Request{Work: WorkMaintenance, By: "root", Reason: "new disk", Begun: true}, RebootFor: Never,
		}
		v.Hosts[2].Wants = WorkMaintenance
		return v
	}
	turn := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7}
			v.Op = &Op{Kind: KindCycle, Host: "n3", HostName: "n3", Phase: PhaseDown, Token: 7, SameBoot: true}
			change(v)
		}
	}
	play(t, spare, []scene{
		{"it is queued", nil, StepTakeLock, ""},
		{"it does not join meanwhile", func(v *View) {
			v.Cluster.Members, v.IdleFor = v.Cluster.Members[:2], 0
		}, StepNone, Settling},
		{"its operation may begin", turn(func(*View) {}), StepNone, InMaintenance},
		{"it may reboot", turn(func(v *View) { v.Asked.Work = WorkReboot }), StepReboot, ""},
		{"it has no etcd to restart", turn(func(v *View) { v.Asked.Work = WorkRestart }), StepEndOp, ""},
		{"it is over", turn(func(v *View) { v.Asked.Over = true }), StepEndOp, ""},
		{"its learner has never started", turn(func(v *View) {
			v.Asked.Work = WorkRestart
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: 9, PeerURL: v.Self.PeerURL, Learner: true})
		}), StepEndOp, ""},
	})
}

func TestOnlyTheNextQueuedHostWatchesTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	wants := func(v *View, i int, at int64) { v.Hosts[i].Wants, v.Hosts[i].AskedAt = WorkReboot, at }
	turn := func(v *View, host string) { v.Op = &Op{Kind: KindCycle, Host: host, HostName: host, Phase: PhaseDown} }
	for _, c := range []struct {
		name   string
		change func(v *View)
		again  time.Duration
		behind string
	}{
		{
			"the first, in the operation of a host without a report", func(v *View) { turn(v, "n2") }, lookSoon, "n2",
		},
		{"the first, in the operation of the one with an older request", func(v *View) {
			wants(v, 0, 999)
			turn(v, "n1")
		}, lookSoon, "n1"},
		{"the second, in the operation of another host", func(v *View) {
			wants(v, 0, 999)
			turn(v, "n2")
		}, 0, ""},
		{"the third, in the operation of the first", func(v *View) {
			wants(v, 0, 998)
			wants(v, 1, 999)
			turn(v, "n1")
		}, 0, ""},
		{"the one before has ended its operation, and has not reported yet", func(v *View) {
			wants(v, 0, 999)
		}, lookSoon / 2, "n1"},
		{"the one before has not reported yet, and this host rests", func(v *View) {
			wants(v, 0, 999)
			v.Resting, v.HostsFresh = true, true
		}, 0, ""},
		{"the first, during the cooldown", func(v *View) {
			v.IdleFor = v.Limits.Cooldown - 2*time.Second
		}, 2 * time.Second, ""},
		{"the first, at the end of the cooldown", func(v *View) {
			v.IdleFor = v.Limits.Cooldown - time.Millisecond
		}, lookSoon / 10, ""},
		{"the first, and another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, 0, ""},
	} {
		v := askedView()
		v.Cluster.Members, v.Hosts = append([]Member(nil), v.Cluster.Members...), append([]Host(nil), v.Hosts...)
		c.change(&v)
		if d := Decide(v); d.Again != c.again || strings.Join(d.Behind, ",") != c.behind {
			t.Errorf("%s: it observes again after %s, behind %q, want %s, behind %q: %v", c.name, d.Again, d.Behind,
				c.again, c.behind, d.Reasons)
		}
	}
}
