// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestAVoterIsTakenDownExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	learner := func(change func(m *Member)) func(*View) {
		return func(v *View) {
			m := voter(4, "n4")
			m.Learner, m.Lag = true, v.Limits.PromoteLag+1
			change(&m)
			v.Cluster.Members = append(v.Cluster.Members, m)
		}
	}
	earlier := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt = WorkReboot, 999
			v.IdleFor, v.Asked.WaitedFor = time.Hour, time.Hour
			change(v)
		}
	}
	play(t, askedView, []scene{
		{"another voter is warm", func(v *View) { v.Hosts[1].Health = health.Warm }, StepTakeLock, ""},
		{"another voter has failed", func(v *View) { v.Hosts[1].Health = health.Failed }, StepNone, QuorumAtRisk},
		{"another voter is stalled", func(v *View) { v.Hosts[1].Health = health.Stalled }, StepNone, QuorumAtRisk},
		{"another voter's host is qualifying", func(v *View) {
			v.Hosts[1].Health = health.Qualifying
		}, StepNone, QuorumAtRisk},
		{"a learner is catching up, exactly at the limit", learner(func(m *Member) { m.Lag-- }), StepTakeLock, ""},
		{"a learner is catching up, beyond the limit", learner(func(*Member) {}), StepNone, LearnerUnsettled},
		{"a learner is dead", learner(func(m *Member) { m.Live = false }), StepTakeLock, ""},
		{"a learner's lag is unknown", learner(func(m *Member) { m.LagKnown = false }), StepTakeLock, ""},
		{"a learner has never started", learner(func(m *Member) { m.Name = "" }), StepNone, LearnerUnsettled},
		{"its own learner is catching up", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Lag = true, 5000
		}, StepTakeLock, ""},
		{"its own learner has never started", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Name = true, ""
		}, StepNone, LearnerUnsettled},
		{"it has waited just long enough for the host before it", earlier(func(v *View) {
			v.Asked.WaitedFor = v.Limits.Cooldown + 2*v.Limits.LockTTL
		}), StepTakeLock, ""},
		{"it waits for the host before it", earlier(func(v *View) {
			v.Asked.WaitedFor = v.Limits.Cooldown + 2*v.Limits.LockTTL - 1
		}), StepNone, CycleQueued},
		{"it waits for two hosts before it, twice as long as the second", earlier(func(v *View) {
			v.Hosts[1].Wants, v.Hosts[1].AskedAt = WorkReboot, 998
			v.Asked.WaitedFor = v.Limits.Cooldown + 4*v.Limits.LockTTL - 1
		}), StepNone, CycleQueued},
		{"it has not published its request", earlier(func(v *View) {
			v.Hosts[2].Wants, v.Asked.WaitedFor = "", 0
		}), StepNone, CycleQueued},
		{"it has not published its request, and has waited", earlier(func(v *View) {
			v.Hosts[2].Wants = ""
		}), StepTakeLock, ""},
		{"it has not published its request, and no other host has one", func(v *View) {
			v.Hosts[2].Wants = ""
		}, StepTakeLock, ""},
		{"it is resting, and has not read the hosts", func(v *View) { v.Resting = true }, StepNone, CycleQueued},
		{
			"it is resting, and has read the hosts",
			func(v *View) { v.Resting, v.HostsFresh = true, true }, StepTakeLock, "",
		},
		{"its unit is unknown", func(v *View) { v.Unit = Unit{Detail: "no bus"} }, StepNone, UnitNotKnown},
		{"its unit is unknown, and etcd is to keep running", func(v *View) {
			v.Unit, v.Asked.KeepRunning = Unit{Detail: "no bus"}, true
		}, StepTakeLock, ""},
		{"its unit is missing, and it is no member", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
			v.Unit, v.Data = Unit{State: UnitMissing, Detail: "no unit"}, Data{State: DataEmpty}
		}, StepTakeLock, ""},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, StepNone, HostConflict},
		{"a spare holds the lock, and a veto applies", func(v *View) {
			v.Cluster.Members, v.Data = v.Cluster.Members[:2], Data{State: DataEmpty}
			v.Unit.State, v.IdleFor = UnitInactive, 0
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
		}, StepReleaseLock, ""},
		{"a learner that never started is removed meanwhile", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members,
				Member{ID: 4, PeerURL: "http://n4", Learner: true, DownFor: time.Hour})
		}, StepTakeLock, ""},
		{"an orphaned join is rolled back meanwhile", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded, OrphanedFor: time.Hour}
		}, StepTakeLock, ""},
		{"an orphaned join is rolled back under the lock", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded, OrphanedFor: time.Hour}
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
		}, StepRollBack, ""},
		{"its etcd has failed, and its operation may begin now", func(v *View) {
			v.Unit.State = UnitFailed
		}, StepTakeLock, ""},
		{"the first in the queue, and another host's operation has no record", func(v *View) {
			v.Hosts[1].InOperation = true
		}, StepNone, OperationInFlight},
		{"the second in the queue, and another host's operation has no record", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt, v.Hosts[1].InOperation = WorkReboot, 999, true
		}, StepNone, OperationInFlight},
		{"the first, and the lock is held", func(v *View) {
			v.Lock.Held, v.Lock.Holder = true, "n2"
		}, StepNone, LockHeld},
		{"the first, in the last moment of the cooldown", func(v *View) {
			v.IdleFor = v.Limits.Cooldown - 1
		}, StepNone, Settling},
		{"the cluster is paused, and its etcd has failed while it waits", func(v *View) {
			v.Pause, v.Unit.State, v.IdleFor = &Pause{By: "root", Reason: "move"}, UnitFailed, 0
		}, StepNone, Paused},
	})
}

func TestAHostOperationContinuesExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	leads := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
			v.Failed, v.Asked.Work = FailedStep{Kind: StepTransferLeadership, Text: "timeout"}, WorkRestart
			change(v)
		}
	}
	begun := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Op.Phase = PhaseBegun
			change(v)
		}
	}
	play(t, turnView, []scene{
		{"the others' reports are just recent enough", func(v *View) {
			v.Op.WrittenFor = v.Limits.TransferTimeout
		}, StepTakeDown, ""},
		{"the others' reports are too old", func(v *View) {
			v.Op.WrittenFor = v.Limits.TransferTimeout + 1
		}, StepSetPhase, ""},
		{"transfers have failed for just as long as they may", leads(func(v *View) {
			v.Op.WrittenFor = v.Limits.TransferTimeout
		}), StepTransferLeadership, ""},
		{"transfers have failed for longer", leads(func(v *View) {
			v.Op.WrittenFor = v.Limits.TransferTimeout + 1
		}), StepNone, LeadershipNotTransferred},
		{"transfers have failed for twice as long", leads(func(v *View) {
			v.Op.WrittenFor = 2 * v.Limits.TransferTimeout
		}), StepNone, LeadershipNotTransferred},
		{"transfers have failed for more than twice as long", leads(func(v *View) {
			v.Op.WrittenFor = 2*v.Limits.TransferTimeout + 1
		}), StepSetPhase, ""},
		{"more than twice as long, and the machine goes down within seconds", leads(func(v *View) {
			v.Op.WrittenFor, v.Asked.Hurried = 2*v.Limits.TransferTimeout+1, true
		}), StepSetPhase, ""},
		{"twice as long, and the machine goes down within seconds", leads(func(v *View) {
			v.Op.WrittenFor, v.Asked.Hurried = 2*v.Limits.TransferTimeout, true
		}), StepNone, LeadershipNotTransferred},
		{"the first voter's quorumd has not reported", func(v *View) {
			v.Hosts[0].Answered = false
		}, StepNone, HealthAwaited},
		{"no other voter's quorumd has reported", func(v *View) {
			v.Hosts[0].Answered, v.Hosts[1].Answered = false, false
		}, StepNone, HealthAwaited},
		{"this host itself has not reported", func(v *View) { v.Hosts[2].Answered = false }, StepTakeDown, ""},
		{"it leads, and the first stops next", leads(func(v *View) {
			v.Hosts[0].Wants = WorkReboot
		}), StepTransferLeadership, ""},
		{"another voter has failed, and hooks run", begun(func(v *View) {
			v.Cluster.Members[1].Live, v.Asked.Before = false, Hooks{State: HooksRunning, Text: "drain"}
		}), StepNone, QuorumAtRisk},
		{"a hook reports its failure", begun(func(v *View) {
			v.Asked.Before = Hooks{State: HooksFailed, Text: "drain: exit status 1"}
		}), StepEndOp, ""},
		{"hooks report that they run", begun(func(v *View) {
			v.Asked.Before = Hooks{State: HooksRunning, Text: "drain"}
		}), StepNone, HookRunning},
		{"another host is in an operation without a record", begun(func(v *View) {
			v.Hosts[1].InOperation = true
		}), StepEndOp, ""},
		{"another host is in an operation without a record, and this one is ready", func(v *View) {
			v.Hosts[1].InOperation = true
		}, StepSetPhase, ""},
		{"another host is in an operation without a record, and this one is going down", func(v *View) {
			v.Hosts[1].InOperation, v.Asked.Stopped = true, true
		}, StepNone, OperationInFlight},
		{"two look unhealthy, and this one is ready", func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Failed, health.Failed
		}, StepNone, CommonCause},
		{"two look unhealthy", begun(func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Failed, health.Failed
		}), StepEndOp, ""},
		{"a learner is catching up", begun(func(v *View) {
			m := voter(4, "n4")
			m.Learner, m.Lag = true, 5000
			v.Cluster.Members = append(v.Cluster.Members, m)
		}), StepEndOp, ""},
		{"the membership has just changed", func(v *View) { v.Cluster.StableFor = 0 }, StepTakeDown, ""},
		{"its unit is unknown", func(v *View) { v.Unit = Unit{Detail: "no bus"} }, StepNone, UnitNotKnown},
		{"its etcd is starting", func(v *View) { v.Unit.State = UnitActivating }, StepNone, Starting},
	})
	play(t, downView, []scene{
		{"a reboot was requested exactly at the limit", func(v *View) {
			v.Asked.Work, v.Asked.RebootFor = WorkReboot, v.Limits.TransferTimeout
		}, StepNone, RebootAwaited},
		{"a reboot was requested beyond the limit", func(v *View) {
			v.Asked.Work, v.Asked.RebootFor = WorkReboot, v.Limits.TransferTimeout+1
		}, StepReboot, ""},
		{"its record differs from the request", func(v *View) { v.Asked.RecordDiffers = true }, StepSetPhase, ""},
		{"it is over, and the data is another member's", func(v *View) {
			v.Asked.Over, v.Data.MemberID = true, 9
		}, StepNone, DataUnusable},
		{"it is over, and the data is unknown", func(v *View) {
			v.Asked.Over, v.Data = true, Data{}
		}, StepNone, DataUnusable},
		{"it is over, and the version is unknown", func(v *View) {
			v.Asked.Over, v.Self.Etcd = true, Version{}
		}, StepNone, VersionUnknown},
		{"it is over, and its start has just failed", func(v *View) {
			v.Asked.Over, v.Unit.State, v.Unit.SinceStart = true, UnitFailed, v.Limits.StartRetry-1
		}, StepNone, Starting},
		{"it is over, and its start has failed just long enough ago", func(v *View) {
			v.Asked.Over, v.Unit.State, v.Unit.SinceStart = true, UnitFailed, v.Limits.StartRetry
		}, StepStartUnit, ""},
		{"it is over, and etcd was to keep running", func(v *View) {
			v.Asked.Over, v.Asked.KeepRunning, v.Unit.State, v.Asked.Stopped = true, true, UnitActive, false
		}, StepEndOp, ""},
	})
	play(t, backView, []scene{
		{"it has served for just long enough", func(v *View) {
			v.Cluster.Members[2].LiveFor, v.Cluster.Members[2].SteadyFor = v.Limits.ReturnStable, v.Limits.ReturnStable
		}, StepEndOp, ""},
		{"it has not been steady for long enough", func(v *View) {
			v.Cluster.Members[2].SteadyFor = v.Limits.ReturnStable - 1
		}, StepNone, Returning},
		{"it is behind exactly by the limit", func(v *View) { v.Cluster.Members[2].Lag = 100 }, StepEndOp, ""},
		{"it has not come back within exactly the limit", func(v *View) {
			v.Health.State, v.Op.WrittenFor = health.Failed, v.Limits.ReturnMax
		}, StepNone, Returning},
		{"it has not come back beyond the limit", func(v *View) {
			v.Health.State, v.Op.WrittenFor = health.Failed, v.Limits.ReturnMax+1
		}, StepNone, NotBack},
		{"a hook reports that it runs", func(v *View) {
			v.Asked.After = Hooks{State: HooksRunning, Text: "fill"}
		}, StepNone, HookRunning},
	})
}

func TestAMembersEtcdIsStartedExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	failed := func() View {
		v := restingVoter()
		v.Unit = Unit{State: UnitFailed, EnvReady: true, SinceStart: v.Limits.StartRetry, Detail: "exit status 1"}
		v.Cluster.Members[0].Live, v.Cluster.Members[0].Version = false, Version{}
		return v
	}
	play(t, failed, []scene{
		{"its last start is just long enough ago", nil, StepStartUnit, ""},
		{"its last start is too recent", func(v *View) { v.Unit.SinceStart-- }, StepNone, Starting},
		{
			"the remaining time is reported",
			func(v *View) { v.Unit.SinceStart = 1740 * time.Millisecond },
			StepNone,
			Starting,
		},
		{"its version is too old for the others", func(v *View) {
			v.Self.Etcd = Version{3, 4, 40}
		}, StepNone, VersionIncompatible},
		{"it may be the last member of an upgrade", func(v *View) {
			v.Self.Etcd = Version{3, 5, 35}
		}, StepStartUnit, ""},
		{"its version is the likely cause of its last exit", func(v *View) {
			v.Self.Etcd, v.Unit.SinceStart = Version{3, 5, 35}, time.Second
		}, StepNone, Starting},
		{"it is starting", func(v *View) { v.Unit.State = UnitActivating }, StepNone, Starting},
		{"an operator has stopped it, and no voter answers", func(v *View) {
			v.Unit.State, v.Cluster = UnitInactive, Cluster{ExpectedID: clusterID, Error: "refused"}
		}, StepNone, UnitStopped},
		{"no voter answers, and its membership is unknown", func(v *View) {
			v.Cluster, v.Self.MemberID = Cluster{ExpectedID: clusterID, Error: "refused"}, 9
		}, StepNone, NoQuorum},
		{"it was removed, and runs", func(v *View) {
			v.Unit.State, v.Unit.Since, v.Cluster.Members = UnitActivating, time.Hour, v.Cluster.Members[1:]
		}, StepStopUnit, ""},
		{"it was removed, and its data was read at the same time", func(v *View) {
			v.Unit.State, v.Unit.Since, v.Cluster.Members = UnitActive, time.Hour, v.Cluster.Members[1:]
			v.Data.Age, v.Cluster.StableFor = time.Minute, time.Minute
		}, StepNone, UnitBusy},
		{"it was removed, and was starting when its data was read", func(v *View) {
			v.Unit.State, v.Unit.Since, v.Cluster.Members = UnitActive, time.Minute, v.Cluster.Members[1:]
			v.Data.Age = time.Minute
		}, StepNone, UnitBusy},
		{"it does not answer, and its unit is unknown", func(v *View) {
			v.Unit, v.Cluster.Members[0].Live = Unit{Detail: "no bus"}, false
		}, StepNone, UnitNotKnown},
		{"it does not answer, and its data is another member's", func(v *View) {
			v.Unit.State, v.Cluster.Members[0].Live, v.Data.MemberID = UnitInactive, false, 2
		}, StepNone, UnitStopped},
		{"its learner does not answer, and its data is gone", func(v *View) {
			v.Target.Voters, v.Target.Standbys = 2, 1
			v.Unit.State, v.Data = UnitInactive, Data{State: DataEmpty}
			v.Cluster.Members[0].Learner, v.Cluster.Members[0].Live = true, false
		}, StepNone, MemberLost},
	})
}

func TestAClusterIsBootstrappedExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	asked := func() View {
		v := spareView()
		v.Bootstrap.Requested = true
		v.Cluster, v.Clock, v.Hosts, v.Lock = Cluster{Error: "refused"}, Clock{}, nil, Lock{}
		return v
	}
	made := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: 1, MemberID: 1, Free: 1 << 40, FreeKnown: true}
			change(v)
		}
	}
	play(t, asked, []scene{
		{"its first start has failed", func(v *View) { v.Unit.State = UnitFailed }, StepWriteEnv, ""},
		{"it is stopping", func(v *View) { v.Unit.State = UnitDeactivating }, StepNone, Starting},
		{"its etcd has failed just long enough ago", func(v *View) {
			v.Unit = Unit{State: UnitFailed, EnvReady: true, SinceStart: v.Limits.StartRetry}
		}, StepStartUnit, ""},
		{"its etcd has just failed", func(v *View) {
			v.Unit = Unit{State: UnitFailed, EnvReady: true, SinceStart: v.Limits.StartRetry - 1, Detail: "exit 1"}
		}, StepNone, Starting},
		{"its unit is missing", func(v *View) {
			v.Unit = Unit{State: UnitMissing, EnvReady: true, Detail: "no unit"}
		}, StepNone, UnitUnusable},
		{"it was created, and the version is unknown", made(func(v *View) {
			v.Self.Etcd = Version{}
		}), StepNone, VersionUnknown},
		{"it was created, and the version is too old", made(func(v *View) {
			v.Self.Etcd = v36(11)
		}), StepNone, VersionUnsafe},
		{"it was created, and has crashed", made(func(v *View) {
			v.Unit.State, v.Unit.Ran = UnitFailed, true
		}), StepStartUnit, ""},
		{"it was created, and answers", made(func(v *View) {
			v.Cluster = Cluster{Reachable: true, ID: 1, Members: []Member{voter(1, "n3")}}
		}), StepFinishBootstrap, ""},
		{"it was created, has failed, and only the member list can be read", made(func(v *View) {
			v.Unit.State, v.Self.MemberID = UnitFailed, 1
			v.Cluster.Listed, v.Cluster.ExpectedID = true, 1
		}), StepNone, NoQuorum},
		{"another cluster answers", func(v *View) { v.Cluster = spareView().Cluster }, StepFinishBootstrap, ""},
	})
}

func TestARemovalContinuesExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	play(t, removalView, []scene{
		{"it is requested", nil, StepTakeLock, ""},
		{"this host has the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true}
		}, StepBeginRemoval, ""},
		{"the voter is silent for just long enough", func(v *View) {
			v.Cluster.Members[2].DownFor = v.Limits.LockTTL
		}, StepTakeLock, ""},
		{"the voter is not silent for long enough", func(v *View) {
			v.Cluster.Members[2].DownFor = 12340 * time.Millisecond
		}, StepNone, MemberLive},
		{"the member list has just settled", func(v *View) { v.Cluster.StableFor = v.Limits.Settle }, StepTakeLock, ""},
		{
			"the member list has not settled",
			func(v *View) { v.Cluster.StableFor = v.Limits.Settle - 1 },
			StepNone,
			Settling,
		},
		{"the member list has not settled, and the remaining time is reported", func(v *View) {
			v.Cluster.StableFor = 5270 * time.Millisecond
		}, StepNone, Settling},
		{"too few are left", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, QuorumAtRisk},
		{"the voter answers, and another is slow", func(v *View) {
			aliveAgain(v)
			v.Removal.Live, v.Hosts[1].Health = true, health.Failed
		}, StepNone, QuorumAtRisk},
		{"the voter is the only one", func(v *View) {
			aliveAgain(v)
			v.Removal.Live, v.Cluster.Members = true, v.Cluster.Members[2:]
		}, StepNone, QuorumAtRisk},
		{"its request has expired", func(v *View) { v.Removal.Expired = true }, StepNone, VoterNotLive},
		{"the member is removed", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepTakeLock, ""},
		{"no quorum answers", func(v *View) {
			v.Cluster.Reachable, v.Cluster.Listed = false, true
		}, StepNone, NoQuorum},
		{
			"the endpoints belong to a different cluster",
			func(v *View) { v.Cluster.ExpectedID = 9 }, StepNone, ClusterIDMismatch,
		},
		{"this host holds the lock, and a veto applies", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true}
			v.Cluster.Members[1].Live = false
		}, StepReleaseLock, ""},
		{"its own etcd has failed meanwhile", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
			v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3}
			v.Unit.State, v.Cluster.StableFor = UnitFailed, 0
		}, StepStartUnit, ""},
		{"another host's join is orphaned meanwhile", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded, OrphanedFor: time.Hour}
		}, StepTakeLock, ""},
		{"a learner has never started meanwhile", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"),
				Member{ID: 8, PeerURL: "http://n8", Learner: true, DownFor: time.Hour})
			v.Cluster.StableFor = 0
		}, StepTakeLock, ""},
		{"it has a request meanwhile", func(v *View) {
			aliveAgain(v)
			v.Asked = &Asked{
				Request: Request{Work: WorkRestart, By: "root", Reason: "new", Begun: true}, RebootFor: Never,
			}
		}, StepTakeLock, ""},
		{"it may join meanwhile", func(v *View) {
			aliveAgain(v)
			v.Target.Standbys = 1
		}, StepTakeLock, ""},
	})
	inFlight := func() View {
		v := removalView()
		inRemoval(&v, PhaseBegun)
		return v
	}
	play(t, inFlight, []scene{
		{"it has begun", nil, StepSetPhase, ""},
		{"its lock is gone", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"its lock is a new one", func(v *View) { v.Lock.Token = 6 }, StepSetPhase, ""},
		{"the voter answers again", aliveAgain, StepEndOp, ""},
		{"it leads", leads, StepTransferLeadership, ""},
		{"it leads, and transfers have failed for just as long as they may", func(v *View) {
			leads(v)
			v.Failed, v.Op.WrittenFor = FailedStep{
				Kind: StepTransferLeadership,
				Text: "timeout",
			}, v.Limits.TransferTimeout
		}, StepTransferLeadership, ""},
		{"it leads, and transfers have failed for longer", func(v *View) {
			leads(v)
			v.Failed, v.Op.WrittenFor = FailedStep{
				Kind: StepTransferLeadership,
				Text: "timeout",
			}, v.Limits.TransferTimeout+1
		}, StepEndOp, ""},
		{
			"it leads, and the operation's record is old", func(v *View) { leads(v); v.Op.WrittenFor = time.Hour },
			StepTransferLeadership, "",
		},
		{"the removal may be sent to etcd", func(v *View) { v.Op.Phase = PhaseRemoving }, StepRemoveMember, ""},
		{"the removal may be sent, the voter answers, and another is slow", func(v *View) {
			aliveAgain(v)
			v.Op.Phase, v.Hosts[1].Health = PhaseRemoving, health.Slow
		}, StepRemoveMember, ""},
		{"the member is removed", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepEndOp, ""},
		{"it was not requested", func(v *View) { v.Removal = nil }, StepEndOp, ""},
		{"its request has expired", func(v *View) { v.Removal.Expired = true }, StepEndOp, ""},
	})
	for _, c := range []struct {
		name    string
		removal Removal
		change  func(v *View)
		want    ReasonCode
	}{
		{"a dead voter", Removal{MemberID: 9}, func(*View) {}, ""},
		{"a voter that is silent for a moment", Removal{MemberID: 9}, func(v *View) {
			v.Cluster.Members[2].DownFor = 1
		}, ""},
		{"a live voter", Removal{MemberID: 9}, aliveAgain, MemberLive},
		{"a live voter that may be removed", Removal{MemberID: 9, Live: true}, aliveAgain, ""},
		{"a dead voter that is needed", Removal{MemberID: 9}, func(v *View) {
			v.Cluster.Members[1].Live = false
		}, QuorumAtRisk},
		{"a dead learner", Removal{MemberID: 9}, func(v *View) { v.Cluster.Members[2].Learner = true }, ""},
		{"a different voter than requested before", Removal{MemberID: 1}, func(*View) {}, MemberLive},
	} {
		v := removalView()
		c.change(&v)
		r := AgainstRemoval(v, c.removal, false)
		if (r == nil) != (c.want == "") || r != nil && (r.Code != c.want || r.Text == "" || r.Hint == "") {
			t.Errorf("%s: %+v, want %q", c.name, r, c.want)
		}
	}
}
