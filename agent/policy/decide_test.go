// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	clusterID  = 0xc1
	peerPrefix = "http://10.0.0."
)

// A scene is a change to a view and the expected decision. spareView is the view of n3, a healthy spare that may join a
// cluster of two voters. joinView is n3 in the middle of its join: a learner that is caught up and steady.
func TestASpareJoinsOnlyWithoutAVeto(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"there is no veto", nil, StepTakeLock, ""},
		{"it has the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
		}, StepBeginJoin, ""},
		{"it only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "rack move"}
		}, StepNone, Paused},
		{"a step hangs", func(v *View) { v.Stuck = "start-unit has not come back" }, StepNone, StepStuck},
		{"no voter answers", func(v *View) { v.Cluster = Cluster{Error: "refused"} }, StepNone, ClusterUnreachable},
		{"no voter of a known cluster answers", func(v *View) {
			v.Cluster, v.Bootstrap.LastCluster = Cluster{Error: "refused"}, clusterID
		}, StepNone, NoQuorum},
		{"it belongs to another cluster", func(v *View) { v.Cluster.ExpectedID = 0xbad }, StepNone, ClusterIDMismatch},
		{"another host has its name", func(v *View) {
			v.Self.Conflict = "host x has the same name"
		}, StepNone, HostConflict},
		{"there are enough voters and standbys", func(v *View) {
			s := voter(4, "n4")
			s.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, voter(5, "n5"), s)
		}, StepNone, TargetMet},
		{"there is no health state", func(v *View) {
			v.Health = Health{State: health.Unknown, Text: "no data"}
		}, StepNone, HealthUnknown},
		{
			"there is no health state any more",
			func(v *View) { v.Health.State = health.Unknown },
			StepNone,
			HealthUnknown,
		},
		{"it is qualifying", func(v *View) {
			v.Health = Health{State: health.Qualifying, Text: "12 of 3000"}
		}, StepNone, NotQualified},
		{"its disk is warm", func(v *View) { v.Health.State = health.Warm }, StepNone, HealthBad},
		{"its disk is slow", func(v *View) { v.Health.State = health.Slow }, StepNone, HealthBad},
		{"its etcd's version is unknown", func(v *View) { v.Self.Etcd = Version{} }, StepNone, VersionUnknown},
		{"its etcd is below the safe version", func(v *View) { v.Self.Etcd = v36(11) }, StepNone, VersionUnsafe},
		{"a voter is below the safe version", func(v *View) {
			v.Cluster.Members[1].Version = Version{3, 5, 30}
		}, StepNone, VersionUnsafe},
		{"its etcd is newer than tested", func(v *View) {
			v.Self.Etcd = Version{3, 8, 0}
			for i := range v.Cluster.Members {
				v.Cluster.Members[i].Version = Version{3, 7, 3}
			}
		}, StepNone, VersionUntested},
		{"a voter's etcd is newer than tested", func(v *View) {
			v.Self.Etcd, v.Cluster.Members[1].Version = Version{3, 7, 3}, Version{3, 8, 0}
		}, StepNone, VersionUntested},
		{"a version newer than tested is allowed", func(v *View) {
			v.Limits.AllowUnsafe, v.Self.Etcd = true, Version{3, 8, 0}
			for i := range v.Cluster.Members {
				v.Cluster.Members[i].Version = Version{3, 8, 0}
			}
		}, StepTakeLock, ""},
		{
			"an unsafe version is allowed",
			func(v *View) { v.Limits.AllowUnsafe, v.Self.Etcd = true, v36(11) }, StepTakeLock, "",
		},
		{"its etcd is a minor version newer", func(v *View) { v.Self.Etcd = Version{3, 7, 3} }, StepTakeLock, ""},
		{"its etcd is two minor versions newer", func(v *View) {
			v.Self.Etcd = Version{3, 7, 3}
			v.Cluster.Members[0].Version = Version{3, 5, 35}
		}, StepNone, VersionIncompatible},
		{"its etcd is older", func(v *View) { v.Self.Etcd = Version{3, 5, 35} }, StepNone, VersionIncompatible},
		{"3.6 never joins 3.4, even if an unsafe version is allowed", func(v *View) {
			v.Limits.AllowUnsafe = true
			v.Cluster.Members[0].Version = Version{3, 4, 23}
			v.Cluster.Members[1].Version = Version{3, 4, 23}
		}, StepNone, VersionIncompatible},
		{"its clock offset is unknown", func(v *View) { v.Clock = Clock{} }, StepNone, ClockUnknown},
		{"its clock is behind", func(v *View) { v.Clock.Offset = -6 * time.Second }, StepNone, ClockSkew},
		{"its clock is ahead", func(v *View) { v.Clock.Offset = 6 * time.Second }, StepNone, ClockSkew},
		{"less than two databases of space are free", func(v *View) { v.Data.Free = 2<<30 - 1 }, StepNone, SpaceLow},
		{"the free space is unknown", func(v *View) { v.Data.FreeKnown = false }, StepNone, SpaceNotKnown},
		{"its unit is unknown", func(v *View) {
			v.Unit = Unit{Detail: "the bus does not answer"}
		}, StepNone, UnitNotKnown},
		{"its data was not read", func(v *View) { v.Data.State = DataUnknown }, StepNone, DataNotKnown},
		{"its unit is not installed", func(v *View) {
			v.Unit = Unit{State: UnitMissing, Detail: "etcd.service is not-found"}
		}, StepNone, UnitUnusable},
		{"its unit runs another program", func(v *View) { v.Unit.State = UnitActive }, StepNone, UnitBusy},
		{"its data belongs to another cluster", func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: 9, MemberID: 9, Free: 1 << 40, FreeKnown: true}
		}, StepNone, DataUnusable},
		{"its data cannot be read", func(v *View) {
			v.Data.State = DataUnreadable
			v.Data.Detail = "permission denied"
		}, StepNone, DataUnusable},
		{"its last join failed", func(v *View) { v.Backoff = time.Minute }, StepNone, BackingOff},
		{"another host's operation is in progress", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded}
		}, StepNone, OperationInFlight},
		{"another agent holds the lock", func(v *View) { v.Lock.Held, v.Lock.Holder = true, "n9" }, StepNone, LockHeld},
		{"two members look unhealthy", func(v *View) {
			v.Hosts[0].Health, v.Hosts[1].Health = health.Slow, health.Stalled
		}, StepNone, CommonCause},
		{"one member looks unhealthy", func(v *View) { v.Hosts[0].Health = health.Slow }, StepTakeLock, ""},
		{"a voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, VoterNotLive},
		{"there is a learner", func(v *View) {
			m := voter(4, "n4")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepNone, LearnerPresent},
		{"the membership has just changed", func(v *View) {
			v.Cluster.StableFor = 5 * time.Second
		}, StepNone, Settling},
		{"an operation has just ended", func(v *View) { v.IdleFor = 59 * time.Second }, StepNone, Settling},
		{"a faster host is ready too", func(v *View) {
			v.Hosts[2].P99 = 2 * time.Millisecond
			n0 := ready("n9", RoleSpare)
			n0.P99 = time.Millisecond
			v.Hosts = append(v.Hosts, n0)
		}, StepNone, LowerRanked},
		{"a faster host has not acted for a long time", func(v *View) {
			v.Hosts = append([]Host{ready("n0", RoleSpare)}, v.Hosts...)
			v.PlaceFreeFor = 3 * time.Minute
		}, StepTakeLock, ""},
		{"a faster host cannot reach a voter", func(v *View) {
			n0 := ready("n0", RoleSpare)
			n0.Waiting = VoterNotLive
			v.Hosts = append([]Host{n0}, v.Hosts...)
		}, StepTakeLock, ""},
		{"a faster host is not ready", func(v *View) {
			n0 := ready("n0", RoleSpare)
			n0.Waiting = NotQualified
			v.Hosts = append([]Host{n0}, v.Hosts...)
		}, StepTakeLock, ""},
		{"one voter would become two, and no other host is ready", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:1]
		}, StepNone, EvenVoters},
		{"one voter would become two, and the next host is ready", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:1]
			v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
		}, StepTakeLock, ""},
		{"only the standby is missing", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
		}, StepTakeLock, ""},
		{"it has the lock, but a veto holds", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
			v.Cluster.Members[1].Live = false
		}, StepReleaseLock, ""},
		{"it is a leftover learner that never started", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members,
				Member{ID: 3, PeerURL: peerPrefix + "n3", Learner: true, DownFor: time.Second})
		}, StepTakeLock, ""},
	})
}

func TestAJoinGoesStepByStep(t *testing.T) {
	t.Parallel()
	begun := func(v *View) { // the lock is held, the learner is not yet added
		v.Cluster.Members = v.Cluster.Members[:2]
		v.Op.Phase, v.Op.MemberID = PhaseBegun, 0
		v.Unit = Unit{State: UnitInactive, SinceStart: Never}
		v.Data.State = DataEmpty
	}
	added := func(v *View) { // the learner is added, its etcd not yet started
		v.Op.Phase = PhaseAdded
		v.Cluster.Members[2].Name, v.Cluster.Members[2].Live = "", false
		v.Unit = Unit{State: UnitInactive, SinceStart: Never}
		v.Data.State = DataEmpty
	}
	with := func(changes ...func(*View)) func(*View) {
		return func(v *View) {
			for _, change := range changes {
				change(v)
			}
		}
	}
	play(t, joinView, []scene{
		{"the learner is added", begun, StepAddLearner, ""},
		{"old data is moved aside first", with(begun, func(v *View) {
			v.Data.State, v.Data.MemberID = DataMember, 99
		}), StepMoveDataAside, ""},
		{"another cluster's data is not touched", with(begun, func(v *View) {
			v.Data.State, v.Data.ClusterID = DataMember, 99
		}), StepNone, DataUnusable},
		{"a voter is down before the learner is added", with(begun, func(v *View) {
			v.Cluster.Members[0].Live = false
		}), StepNone, VoterNotLive},
		{"several members look unhealthy", with(begun, func(v *View) {
			v.Hosts[0].Health, v.Hosts[1].Health = health.Slow, health.Slow
		}), StepNone, CommonCause},
		{"etcd still runs here", with(begun, func(v *View) {
			v.Unit.State = UnitDeactivating
		}), StepNone, UnitBusy},
		{"its member ID is recorded", with(added, func(v *View) { v.Op.MemberID = 0 }), StepSetPhase, ""},
		{"its environment is written", added, StepWriteEnv, ""},
		{"it is started", with(added, func(v *View) { v.Unit.EnvReady = true }), StepStartUnit, ""},
		{"a command of a released operation still runs", with(added, func(v *View) {
			v.Unit.EnvReady, v.Asked = true, &Asked{
				Request: Request{Work: WorkCommand}, Released: true,
				Command: Hooks{State: HooksRunning, Text: "upgrade"},
			}
		}), StepNone, CommandRunning},
		{"it is started again, but not at once", with(added, func(v *View) {
			v.Unit.EnvReady, v.Unit.State, v.Unit.SinceStart = true, UnitFailed, time.Second
		}), StepNone, Starting},
		{"an incompatible version is never started", with(added, func(v *View) {
			v.Unit.EnvReady = true
			v.Self.Etcd = Version{3, 8, 0}
		}), StepNone, VersionIncompatible},
		{
			"the host waits for it",
			with(added, func(v *View) { v.Unit.State = UnitActive }),
			StepNone,
			LearnerNotStarted,
		},
		{"it is behind", func(v *View) { v.Cluster.Members[2].Lag = 101 }, StepNone, LearnerBehind},
		{"how far behind is unknown", func(v *View) {
			v.Cluster.Members[2].LagKnown = false
		}, StepNone, LearnerBehind},
		{"it has not been steady", func(v *View) {
			v.Cluster.Members[2].SteadyFor = 29 * time.Second
		}, StepNone, LearnerNotSteady},
		{"it has not been up for long enough", func(v *View) {
			v.Cluster.Members[2].LiveFor = 59 * time.Second
		}, StepNone, LearnerNotSteady},
		{"it was killed after catching up", func(v *View) {
			v.Cluster.Members[2].Live = false
		}, StepNone, LearnerNotStarted},
		{"its health state is unknown", func(v *View) { v.Health.State = health.Unknown }, StepNone, HealthUnknown},
		{"its disk is warm", func(v *View) { v.Health.State = health.Warm }, StepNone, HealthBad},
		{"a voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, VoterNotLive},
		{"no other host would make the number odd", func(v *View) {
			v.Target.Voters = 5
			v.Cluster.Members = []Member{voter(1, "n1"), v.Cluster.Members[2]}
		}, StepNone, EvenVoters},
		{"it is promoted", nil, StepPromote, ""},
		{"as a standby it is done", func(v *View) { v.Op.Target = RoleStandby }, StepEndOp, ""},
		{"the promotion is recorded", func(v *View) { v.Cluster.Members[2].Learner = false }, StepSetPhase, ""},
		{"the new voter has not noticed yet", func(v *View) {
			v.Cluster.Members[2].Learner = false
			v.Op.Phase = PhasePromoted
		}, StepNone, Starting},
		{"it is done", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].ThinksLearner = false, false
			v.Op.Phase = PhasePromoted
		}, StepEndOp, ""},
		{"the target has been met meanwhile", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
		}, StepEndOp, ""},
		{"its unit is unknown", func(v *View) {
			begun(v)
			v.Unit.State = UnitUnknown
			v.Data.State, v.Data.MemberID = DataMember, 99
		}, StepNone, UnitNotKnown},
		{"the remains of a failed first start are moved aside", func(v *View) {
			begun(v)
			v.Data.State = DataRemains
		}, StepMoveDataAside, ""},
		{"its version is unknown at the start", func(v *View) {
			added(v)
			v.Unit.EnvReady, v.Self.Etcd = true, Version{}
		}, StepNone, VersionUnknown},
		{"the new voter's disk is empty", func(v *View) {
			v.Cluster.Members[2].Learner = false
			v.Op.Phase, v.Unit.State, v.Data.State = PhasePromoted, UnitFailed, DataEmpty
		}, StepNone, DataUnusable},
		{"the new voter's etcd has failed", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Live = false, false
			v.Unit.State = UnitFailed
		}, StepStartUnit, ""},
		{"an operator has stopped the new voter's etcd", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Live = false, false
			v.Unit.State = UnitInactive
		}, StepNone, UnitStopped},
		{"an operator has stopped the new voter's etcd for too long", func(v *View) {
			v.Cluster.Members[2].Learner, v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, false,
				6*time.Minute
			v.Unit.State = UnitInactive
		}, StepEndOp, ""},
		{"a clone of this host is running", func(v *View) {
			v.Self.Conflict = "another agent runs with this host's ID"
		}, StepNone, HostConflict},
		{"the lock was lost", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{
			"another agent took the lock",
			func(v *View) { v.Lock = Lock{Known: true, Held: true, Holder: "n1"} },
			StepNone,
			LockHeld,
		},
		{"the record has an older lock", func(v *View) { v.Op.Token = 3 }, StepSetPhase, ""},
		{"the cluster is gone", func(v *View) { v.Cluster = Cluster{} }, StepNone, NoQuorum},
		{"an operation of an unknown kind", func(v *View) { v.Op.Kind = "dance" }, StepNone, OperationInFlight},
	})
}

func TestAJoinIsRolledBack(t *testing.T) {
	t.Parallel()
	play(t, joinView, []scene{
		{"the learner makes no progress", func(v *View) {
			v.Cluster.Members[2].StalledFor, v.Cluster.Members[2].Lag = 6*time.Minute, 5000
		}, StepRollBack, ""},
		{"the learner has caught up and makes no progress", func(v *View) {
			v.Cluster.Members[2].StalledFor = time.Hour
		}, StepPromote, ""},
		{"the join lasts too long", func(v *View) { v.Op.Elapsed = 3 * time.Hour }, StepRollBack, ""},
		{"its disk is slow", func(v *View) { v.Health.State = health.Slow }, StepRollBack, ""},
		{"its disk is slow, and so are others", func(v *View) {
			v.Health.State, v.Hosts[0].Health, v.Hosts[1].Health = health.Slow, health.Slow, health.Slow
		}, StepNone, HealthBad},
		{"its disk is slow, and its promotion may still take effect", func(v *View) {
			v.Health.State = health.Slow
			v.PromotionPending = true
		}, StepNone, HealthBad},
		{"the host has rebooted", func(v *View) { v.Op.SameBoot = false }, StepRollBack, ""},
		{"an operator has removed the learner", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
		}, StepRollBack, ""},
		{"it votes already", func(v *View) {
			v.Cluster.Members[2].Learner = false
			v.Op.Elapsed, v.Health.State, v.Op.SameBoot = 9*time.Hour, health.Failed, false
		}, StepSetPhase, ""},
	})
	back := func() View {
		v := joinView()
		v.Op.Phase, v.Op.Outcome, v.Op.Reason = PhaseRollback, LearnerStalled, "LEARNER_STALLED: no progress"
		return v
	}
	play(t, back, []scene{
		{"the learner goes first", nil, StepRemoveLearner, ""},
		{"the learner could be promoted, but its agent is gone", func(v *View) {
			v.Op.Outcome, v.Op.Reason = Orphaned, "ORPHANED: the agent of n3 is gone"
			v.Self.MemberID = v.Cluster.Members[2].ID
		}, StepRemoveLearner, ""},
		{
			"its etcd is stopped after that",
			func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepStopUnit, "",
		},
		{"the record is deleted last", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
			v.Unit.State = UnitFailed
		}, StepEndOp, ""},
		{"a late promotion is no failure", func(v *View) { v.Cluster.Members[2].Learner = false }, StepEndOp, ""},
		{"another voter stays", func(v *View) { v.Op.MemberID, v.Op.PeerURL = 1, "" }, StepEndOp, ""},
	})
}

func TestARollbackEndsWithTheCodeOfItsRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said, want ReasonCode
	}{
		{LearnerStalled, LearnerStalled},
		{HealthLost, HealthLost},
		{"", Orphaned},
		{"A_CODE_OF_A_NEWER_AGENT", Orphaned},
	} {
		v := joinView()
		v.Op.Phase, v.Op.Outcome, v.Op.Reason = PhaseRollback, c.said, "LEARNER_MAX: a code in a text"
		v.Cluster.Members, v.Unit.State = v.Cluster.Members[:2], UnitFailed
		if got := Decide(v).Step; got.Kind != StepEndOp || got.Outcome != c.want {
			t.Errorf("with %q: %s with %q, want %q", c.said, got.Kind, got.Outcome, c.want)
		}
	}
}

// The scenes start from voterView, the view of voter n1 while n3 joins.
func TestAVoterRollsBackAJoinWhoseAgentIsGone(t *testing.T) {
	t.Parallel()
	gone := func(after time.Duration) func(*View) {
		return func(v *View) { v.Lock, v.Op.OrphanedFor = Lock{Known: true}, after }
	}
	adopted := func(v *View) {
		v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 9}
		v.Op.OrphanedFor = 2 * time.Minute
	}
	play(t, voterView, []scene{
		{"its agent holds the lock", nil, StepNone, OperationInFlight},
		{"the grace period is not over", gone(64 * time.Second), StepNone, OperationInFlight},
		{"the grace period is over", gone(66 * time.Second), StepTakeLock, ""},
		{"with the lock it rolls the join back", adopted, StepRollBack, ""},
		{"it removes the learner", func(v *View) {
			adopted(v)
			v.Op.Token, v.Op.Phase = 9, PhaseRollback
		}, StepRemoveLearner, ""},
		{"it ends the operation", func(v *View) {
			adopted(v)
			v.Op.Token, v.Op.Phase = 9, PhaseRollback
			v.Cluster.Members = v.Cluster.Members[:2]
		}, StepEndOp, ""},
		{"the second voter waits for the first", func(v *View) {
			gone(66 * time.Second)(v)
			v.Self.ID, v.Self.PeerURL, v.Data.MemberID = "n2", peerPrefix+"n2", 2
		}, StepNone, OperationInFlight},
		{"the second voter has waited", func(v *View) {
			gone(96 * time.Second)(v)
			v.Self.ID, v.Self.PeerURL, v.Data.MemberID = "n2", peerPrefix+"n2", 2
		}, StepTakeLock, ""},
		{"an operation of another kind is not touched", func(v *View) {
			gone(time.Hour)(v)
			v.Op.Kind = "cycle"
		}, StepNone, OperationInFlight},
		{"a leftover learner is removed", func(v *View) {
			v.Op, v.Lock = nil, Lock{Known: true}
			v.Cluster.Members[2] = Member{ID: 3, PeerURL: peerPrefix + "n3", Learner: true, DownFor: 6 * time.Minute}
		}, StepTakeLock, ""},
		{"a standby that is down stays", func(v *View) {
			v.Op, v.Lock = nil, Lock{Known: true}
			v.Cluster.Members[2] = Member{
				ID: 3, Name: "n3", PeerURL: peerPrefix + "n3", Learner: true,
				DownFor: time.Hour,
			}
		}, StepNone, Idle},
	})
}

func TestAMembersEtcdIsKeptRunning(t *testing.T) {
	t.Parallel()
	calm := func() View {
		v := voterView()
		v.Op, v.Lock = nil, Lock{Known: true}
		v.Cluster.Members = v.Cluster.Members[:2]
		return v
	}
	play(t, calm, []scene{
		{"at rest", nil, StepNone, Idle},
		{"after a crash it is started", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
		}, StepStartUnit, ""},
		{"etcd has failed just after its start", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: time.Second}
		}, StepNone, Starting},
		{"the last start was refused", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: time.Second}
			v.Failed = FailedStep{Kind: StepStartUnit, Text: "not permitted"}
		}, StepNone, StepFailed},
		{"etcd has failed, and no voter answers", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
			v.Cluster = Cluster{ExpectedID: clusterID}
			v.Self.MemberID = 1
		}, StepStartUnit, ""},
		{"no voter answers, and the member may have been removed", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
			v.Cluster = Cluster{ExpectedID: clusterID}
			v.Self.MemberID = 0
		}, StepNone, NoQuorum},
		{"etcd has failed, and its version is unknown", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
			v.Self.Etcd = Version{}
		}, StepNone, VersionUnknown},
		{"an operator has stopped etcd", func(v *View) {
			v.Unit.State = UnitInactive
		}, StepNone, UnitStopped},
		{"a removed member's etcd is stopped", func(v *View) {
			v.Cluster.Members, v.Unit.Since = v.Cluster.Members[1:], time.Hour
		}, StepStopUnit, ""},
		{"a removed member's data was read before the removal", func(v *View) {
			v.Cluster.Members, v.Unit.Since, v.Cluster.StableFor = v.Cluster.Members[1:], time.Hour, time.Second
			v.Data.Age = 2 * time.Second
		}, StepNone, UnitBusy},
		{"a member with another URL is left alone", func(v *View) {
			v.Cluster.Members[0].PeerURL = "http://other"
			v.Self.Conflict = "member 1 is registered with http://other"
			v.Unit.Since = time.Hour
		}, StepNone, HostConflict},
		{"its own member does not answer", func(v *View) {
			v.Cluster.Members[0].Live = false
		}, StepNone, MemberDown},
		{"another member does not answer", func(v *View) {
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
		{"a member without data never comes back", func(v *View) {
			v.Cluster.Members[0].Live = false
			v.Unit, v.Data = Unit{State: UnitMissing}, Data{State: DataEmpty}
		}, StepNone, MemberLost},
		{"a member whose first start failed never comes back", func(v *View) {
			v.Cluster.Members[0].Live = false
			v.Unit, v.Data = Unit{State: UnitInactive}, Data{State: DataRemains}
		}, StepNone, MemberLost},
		{"unread data does not count as lost", func(v *View) {
			v.Cluster.Members[0].Live = false
			v.Unit, v.Data = Unit{State: UnitInactive}, Data{}
		}, StepNone, DataNotKnown},
		{"the data directory cannot be read", func(v *View) {
			v.Cluster.Members[0].Live = false
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
			v.Data = Data{State: DataUnreadable, Detail: "I/O error"}
		}, StepNone, DataUnusable},
		{"another cluster's data is not started", func(v *View) {
			v.Unit = Unit{State: UnitFailed, SinceStart: Never}
			v.Cluster = Cluster{ExpectedID: clusterID}
			v.Data.ClusterID = 9
		}, StepNone, NoQuorum},
		{"a lock without an operation is released", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true}
		}, StepReleaseLock, ""},
	})
}

func TestEveryReasonAndStepIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	var codes []ReasonCode
	for _, info := range Reasons() {
		if slices.Contains(codes, info.Code) {
			t.Errorf("reason %s is declared twice", info.Code)
		}
		if info.Meaning == "" {
			t.Errorf("reason %s has no meaning", info.Code)
		}
		codes = append(codes, info.Code)
	}
	for _, veto := range vetoes() {
		if !slices.Contains(codes, veto.code) {
			t.Errorf("veto %s is not declared as a reason", veto.code)
		}
	}
	var kinds []StepKind
	for _, info := range Steps() {
		if slices.Contains(kinds, info.Kind) || info.Calls == 0 || info.Doing == "" {
			t.Errorf("step %s is declared twice, or without a limit or a text", info.Kind)
		}
		kinds = append(kinds, info.Kind)
	}
}

func TestQuorumArithmetic(t *testing.T) {
	t.Parallel()
	for voters, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 9: 5} {
		if got := Quorum(voters); got != want {
			t.Errorf("quorum of %d is %d, want %d", voters, got, want)
		}
	}
	if Tolerance(3, 3) != 1 || Tolerance(3, 2) != 0 || Tolerance(3, 1) != -1 || Tolerance(4, 4) != 1 {
		t.Error("tolerance is wrong")
	}
	for _, c := range []struct {
		voters, target, ready int
		want                  bool
	}{
		{1, 3, 1, false},
		{1, 3, 2, true},
		{2, 3, 1, true},
		{3, 3, 2, false},
		{3, 5, 1, false},
		{3, 5, 2, true},
		{4, 5, 1, true},
		{5, 3, 9, false},
	} {
		if got := mayGrow(c.voters, 0, c.target, c.ready); got != c.want {
			t.Errorf("mayGrow(%d voters, %d wanted, %d ready) is %v", c.voters, c.target, c.ready, got)
		}
	}
}
