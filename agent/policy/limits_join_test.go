// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// This file tests the decisions exactly at the limit of each duration and count, and just beyond it.

func TestASpareJoinsExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"the membership has been stable for just long enough", func(v *View) {
			v.Cluster.StableFor = v.Limits.Settle
		}, StepTakeLock, ""},
		{"the membership has been stable for almost long enough", func(v *View) {
			v.Cluster.StableFor = v.Limits.Settle - 1
		}, StepNone, Settling},
		{"the membership is not stable yet, and the remaining time is reported", func(v *View) {
			v.Cluster.StableFor = v.Limits.Settle - 730*time.Millisecond
		}, StepNone, Settling},
		{"the last operation has ended just long enough ago", func(v *View) {
			v.IdleFor = v.Limits.Cooldown
		}, StepTakeLock, ""},
		{"its clock offset is the limit", func(v *View) { v.Clock.Offset = -v.Limits.ClockOffset }, StepTakeLock, ""},
		{
			"its clock offset exceeds the limit",
			func(v *View) { v.Clock.Offset = 6260 * time.Millisecond }, StepNone, ClockSkew,
		},
		{"two databases just fit", func(v *View) { v.Data.Free = 2 << 30 }, StepTakeLock, ""},
		{"two databases do not fit", func(v *View) { v.Data.Free = 1<<30 + 1 }, StepNone, SpaceLow},
		{"its next attempt is a moment away", func(v *View) { v.Backoff = 1 }, StepNone, BackingOff},
		{"a live voter's version is unknown", func(v *View) {
			v.Cluster.Members[1].Version = Version{}
		}, StepNone, VersionUnknown},
		{"the version of a voter that is down is unknown", func(v *View) {
			v.Cluster.Members[1].Version, v.Cluster.Members[1].Live = Version{}, false
		}, StepNone, VoterNotLive},
		{"there is no voter", func(v *View) { v.Cluster.Members = nil }, StepNone, VoterNotLive},
		{"there is a learner without a name", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: 9, PeerURL: "http://n9", Learner: true})
		}, StepNone, LearnerPresent},
		{"a voter and a spare look unhealthy", func(v *View) {
			v.Hosts[0].Health = health.Failed
			v.Hosts = append(v.Hosts, ready("n9", RoleSpare))
			v.Hosts[3].Health = health.Failed
		}, StepTakeLock, ""},
		{"two spares look unhealthy", func(v *View) {
			v.Hosts = append(v.Hosts, ready("n8", RoleSpare), ready("n9", RoleSpare))
			v.Hosts[3].Health, v.Hosts[4].Health = health.Slow, health.Slow
		}, StepTakeLock, ""},
		{"a voter and a standby look unhealthy", func(v *View) {
			v.Hosts[0].Health = health.Failed
			v.Hosts = append(v.Hosts, ready("n9", RoleStandby))
			v.Hosts[3].Health = health.Stalled
		}, StepNone, CommonCause},
		{"two have failed", func(v *View) {
			v.Hosts[0].Health, v.Hosts[1].Health = health.Failed, health.Failed
		}, StepNone, CommonCause},
		{"the lock's holder is unknown", func(v *View) { v.Lock.Known = false }, StepNone, LockHeld},
		{"it is resting, and has not read the hosts", func(v *View) { v.Resting = true }, StepNone, LowerRanked},
		{
			"it is resting, and has read the hosts",
			func(v *View) { v.Resting, v.HostsFresh = true, true }, StepTakeLock, "",
		},
		{"it is resting, and a voter is down", func(v *View) {
			v.Resting, v.HostsFresh, v.Cluster.Members[1].Live = true, true, false
		}, StepNone, VoterNotLive},
		{"it is resting, and has no health state", func(v *View) {
			v.Resting, v.HostsFresh, v.Health.State = true, true, health.Unknown
		}, StepNone, HealthUnknown},
		{"it has waited just long enough for the host that goes first", func(v *View) {
			v.Hosts = append(v.Hosts, ready("n0", RoleSpare))
			v.PlaceFreeFor = v.Limits.Cooldown + 2*v.Limits.LockTTL
		}, StepTakeLock, ""},
		{"it waits for the host that goes first", func(v *View) {
			v.Hosts = append(v.Hosts, ready("n0", RoleSpare))
			v.PlaceFreeFor = v.Limits.Cooldown + 2*v.Limits.LockTTL - 1
		}, StepNone, LowerRanked},
		{"it has a maintenance request, too", func(v *View) {
			v.Asked, v.IdleFor = &Asked{
				Request: Request{Work: WorkMaintenance, By: "root", Reason: "new disk", Begun: true},
			}, 0
		}, StepNone, Settling},
		{"nothing starts its etcd after a boot", func(v *View) { v.Unit.NotAtBoot = true }, StepTakeLock, ""},
		{"a cluster answers, but its records are unreadable", func(v *View) {
			v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.Error = false, true, "no leader"
		}, StepNone, NoQuorum},
		{"etcd denies access, and another veto holds", func(v *View) {
			v.Cluster.Denied, v.Health.State = true, health.Slow
		}, StepNone, HealthBad},
	})
}

func TestAJoinContinuesExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	begun := func(change func(*View)) func(*View) { // the lock is held, the learner is not yet added
		return func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
			v.Op.Phase, v.Op.MemberID = PhaseBegun, 0
			v.Unit, v.Data.State = Unit{State: UnitInactive, SinceStart: Never}, DataEmpty
			change(v)
		}
	}
	added := func(change func(*View)) func(*View) { // the learner is added, its etcd not yet started
		return func(v *View) {
			v.Op.Phase = PhaseAdded
			v.Cluster.Members[2].Name, v.Cluster.Members[2].Live = "", false
			v.Unit = Unit{State: UnitInactive, SinceStart: Never, EnvReady: true}
			change(v)
		}
	}
	votes := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Cluster.Members[2].Learner, v.Op.Phase = false, PhasePromoted
			change(v)
		}
	}
	learner := func(change func(m *Member)) func(*View) {
		return func(v *View) { change(&v.Cluster.Members[2]) }
	}
	play(t, joinView, []scene{
		{"it is behind exactly by the limit", learner(func(m *Member) { m.Lag = 100 }), StepPromote, ""},
		{"it has been steady and up for just long enough", learner(func(m *Member) {
			m.SteadyFor, m.LiveFor = 30*time.Second, time.Minute
		}), StepPromote, ""},
		{"it has made no progress for exactly the limit", learner(func(m *Member) {
			m.StalledFor, m.Lag = 5*time.Minute, 5000
		}), StepNone, LearnerBehind},
		{"it has lasted exactly as long as it may", func(v *View) { v.Op.Elapsed = 2 * time.Hour }, StepPromote, ""},
		{"it has lasted longer than the limit for adding", func(v *View) { v.Op.Elapsed = time.Hour }, StepPromote, ""},
		{"it has not been added for exactly the limit", begun(func(v *View) {
			v.Op.Elapsed = 5 * time.Minute
		}), StepAddLearner, ""},
		{
			"it has not been added beyond the limit",
			begun(func(v *View) { v.Op.Elapsed = 5*time.Minute + 1 }),
			StepRollBack,
			"",
		},
		{"a write is just old enough to be settled", func(v *View) {
			m := &v.Cluster.Members[2]
			m.StillFor, m.StalledFor, v.Op.WrittenFor = 6*time.Minute, 6*time.Minute, v.Limits.Settle
		}, StepNone, LearnerNotSteady},
		{"a recent write was not applied", func(v *View) {
			v.Cluster.Members[2].StillFor, v.Op.WrittenFor = time.Minute, 1260*time.Millisecond
		}, StepNone, LearnerNotSteady},
		{"other hosts have become voters before it was added", begun(func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
		}), StepEndOp, ""},
		{"other hosts have become voters before the standby was added", begun(func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
			v.Op.Target = RoleStandby
		}), StepAddLearner, ""},
		{"the membership has just settled", begun(func(v *View) {
			v.Cluster.StableFor = v.Limits.Settle
		}), StepAddLearner, ""},
		{"the membership has not settled", begun(func(v *View) {
			v.Cluster.StableFor = 5260 * time.Millisecond
		}), StepNone, Settling},
		{"the membership has just settled, before its promotion", func(v *View) {
			v.Cluster.StableFor = v.Limits.Settle
		}, StepPromote, ""},
		{"the membership has not settled, before its promotion", func(v *View) {
			v.Cluster.StableFor = 5260 * time.Millisecond
		}, StepNone, Settling},
		{"it reports errors", learner(func(m *Member) { m.Errors = true }), StepNone, LearnerNotSteady},
		{"it serves for the first time", func(v *View) { v.Op.Phase = PhaseAdded }, StepSetPhase, ""},
		{"its data is another member's", added(func(v *View) { v.Data.MemberID = 9 }), StepMoveDataAside, ""},
		{"its data was left by a failed start", added(func(v *View) {
			v.Data.State = DataRemains
		}), StepMoveDataAside, ""},
		{"its data is its own", added(func(*View) {}), StepStartUnit, ""},
		{"its data was not read", added(func(v *View) { v.Data.State = DataUnknown }), StepNone, DataNotKnown},
		{"its data cannot be read", added(func(v *View) { v.Data.State = DataUnreadable }), StepNone, DataUnusable},
		{"it is started again exactly in time", added(func(v *View) {
			v.Unit.State, v.Unit.SinceStart = UnitFailed, v.Limits.StartRetry
		}), StepStartUnit, ""},
		{"its data is its own, and the environment is not", added(func(v *View) {
			v.Unit.EnvReady = false
		}), StepStartUnit, ""},
		{"it votes, and its etcd has failed with an unknown version", votes(func(v *View) {
			v.Unit.State, v.Self.Etcd = UnitFailed, Version{}
		}), StepNone, VersionUnknown},
		{"it votes, and its data was not read", votes(func(v *View) {
			v.Unit.State, v.Data.State = UnitFailed, DataUnknown
		}), StepNone, DataUnusable},
		{"it votes, and its data is another member's", votes(func(v *View) {
			v.Unit.State, v.Data.MemberID = UnitFailed, 9
		}), StepNone, DataUnusable},
		{"it votes, and has been silent for exactly the limit", votes(func(v *View) {
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 5*time.Minute
		}), StepNone, Starting},
		{"it votes, and has been silent beyond the limit", votes(func(v *View) {
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 5*time.Minute+1
		}), StepEndOp, ""},
		{"it votes, and an operator stopped it exactly at the limit", votes(func(v *View) {
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 5*time.Minute
			v.Unit.State = UnitInactive
		}), StepNone, UnitStopped},
		{"it votes, and still claims to be a learner", votes(func(v *View) {
			v.Cluster.Members[2].ThinksLearner = true
		}), StepNone, Starting},
		{"it has a maintenance request", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkMaintenance, By: "root", Reason: "new disk", Begun: true}}
		}, StepPromote, ""},
		{"its cluster answers, but its records are unreadable", func(v *View) {
			v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.Error = false, true, "no leader"
		}, StepNone, NoQuorum},
		{
			"the endpoints belong to a different cluster",
			func(v *View) { v.Cluster.ExpectedID = 9 },
			StepNone,
			ClusterIDMismatch,
		},
	})
}

func TestAJoinIsRolledBackExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	back := func() View {
		v := joinView()
		v.Op.Phase, v.Op.Outcome, v.Op.Reason = PhaseRollback, LearnerStalled, "LEARNER_STALLED: no progress"
		return v
	}
	gone := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Cluster.Members, v.Unit.State = v.Cluster.Members[:2], UnitFailed
			change(v)
		}
	}
	play(t, back, []scene{
		{"only the code is recorded", gone(func(v *View) { v.Op.Reason = "" }), StepEndOp, ""},
		{"no reason is recorded", gone(func(v *View) { v.Op.Outcome = "" }), StepEndOp, ""},
		{"an unknown code is recorded", gone(func(v *View) { v.Op.Outcome = "LEARNER_STALL" }), StepEndOp, ""},
		{"its unit is unknown", gone(func(v *View) { v.Unit.State = UnitUnknown }), StepNone, UnitNotKnown},
		{"its etcd is stopping", gone(func(v *View) { v.Unit.State = UnitDeactivating }), StepNone, UnitBusy},
		{"its etcd is starting", gone(func(v *View) { v.Unit.State = UnitActivating }), StepStopUnit, ""},
	})
	adopted := func() View { // n1 has adopted the operation and holds the lock
		v := voterView()
		v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 9}
		v.Op.OrphanedFor, v.Op.Token, v.Op.Phase = 2*time.Minute, 9, PhaseRollback
		v.Op.Outcome, v.Op.Reason = Orphaned, "ORPHANED: the agent of n3 is gone"
		return v
	}
	play(t, adopted, []scene{
		{"only its peer URL is recorded", func(v *View) { v.Op.MemberID = 0 }, StepRemoveLearner, ""},
		{"only its member is recorded", func(v *View) { v.Op.PeerURL = "" }, StepRemoveLearner, ""},
		{"neither is recorded", func(v *View) { v.Op.MemberID, v.Op.PeerURL = 0, "" }, StepEndOp, ""},
		{"its own unit is unknown", func(v *View) {
			v.Cluster.Members, v.Unit.State = v.Cluster.Members[:2], UnitUnknown
		}, StepEndOp, ""},
		{"it was recorded meanwhile, and its agent is present", func(v *View) {
			v.Op.Token, v.Op.OrphanedFor = 7, 65*time.Second-1
		}, StepReleaseLock, ""},
		{"it was recorded meanwhile, and its agent has just gone", func(v *View) {
			v.Op.Token, v.Op.OrphanedFor = 7, 65*time.Second
		}, StepSetPhase, ""},
	})
}

func TestAVoterRollsBackLeftoversExactlyAtTheLimits(t *testing.T) {
	t.Parallel()
	orphaned := func() View {
		v := voterView()
		v.Lock, v.Op.OrphanedFor = Lock{Known: true}, v.Limits.OrphanGrace
		return v
	}
	second := func(v *View) { v.Self.ID, v.Self.PeerURL, v.Data.MemberID = "n2", peerPrefix+"n2", 2 }
	play(t, orphaned, []scene{
		{"the grace period is just over", nil, StepTakeLock, ""},
		{"the grace period is not over", func(v *View) { v.Op.OrphanedFor-- }, StepNone, OperationInFlight},
		{"the second waits for one more lock TTL", func(v *View) {
			second(v)
			v.Op.OrphanedFor += v.Limits.LockTTL - 1
		}, StepNone, OperationInFlight},
		{"the second has waited", func(v *View) { second(v); v.Op.OrphanedFor += v.Limits.LockTTL }, StepTakeLock, ""},
		{"the second does not wait if the first is down", func(v *View) {
			second(v)
			v.Cluster.Members[0].Live = false
		}, StepTakeLock, ""},
		{"the lock is unknown", func(v *View) { v.Lock.Known = false }, StepNone, OperationInFlight},
		{"another agent holds the lock", func(v *View) { v.Lock.Held = true }, StepNone, OperationInFlight},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, StepNone, OperationInFlight},
		{"this host is a spare", func(v *View) {
			v.Self.ID, v.Self.PeerURL = "n9", peerPrefix+"n9"
			v.Data = Data{State: DataEmpty, FreeKnown: true, Free: 1 << 40}
			v.Unit.State = UnitInactive
			v.Op.OrphanedFor = time.Hour
		}, StepNone, OperationInFlight},
		{"no quorum answers", func(v *View) { v.Cluster.Reachable = false }, StepNone, NoQuorum},
		{
			"the endpoints belong to a different cluster",
			func(v *View) { v.Cluster.ExpectedID = 9 }, StepNone, ClusterIDMismatch,
		},
	})
	left := func() View {
		v := orphaned()
		v.Op = nil
		v.Cluster.Members[2] = Member{ID: 3, PeerURL: peerPrefix + "n3", Learner: true, DownFor: v.Limits.LearnerStall}
		return v
	}
	mine := func(v *View) { v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 9} }
	play(t, left, []scene{
		{"a learner has never started for just too long", nil, StepTakeLock, ""},
		{"a learner has never started", func(v *View) { v.Cluster.Members[2].DownFor-- }, StepNone, Idle},
		{"this agent holds the lock", mine, StepRollBack, ""},
		{"the second waits", func(v *View) {
			second(v)
			v.Cluster.Members[2].DownFor += v.Limits.LockTTL - 1
		}, StepNone, Idle},
		{"the second has waited", func(v *View) {
			second(v)
			v.Cluster.Members[2].DownFor += v.Limits.LockTTL
		}, StepTakeLock, ""},
		{"the lock is unknown", func(v *View) { v.Lock.Known = false }, StepNone, Idle},
		{"another agent holds the lock", func(v *View) { v.Lock.Held = true }, StepNone, Idle},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, StepNone, HostConflict},
		{"another host is in its operation", func(v *View) { v.Hosts[1].InOperation = true }, StepNone, Idle},
		{
			"the endpoints belong to a different cluster",
			func(v *View) { v.Cluster.ExpectedID = 9 }, StepNone, ClusterIDMismatch,
		},
		{"no quorum answers", func(v *View) { v.Cluster.Reachable = false }, StepNone, NoQuorum},
		{"this host's voter does not answer", func(v *View) {
			v.Cluster.Members[0].Live, v.Cluster.Members[2].DownFor = false, time.Hour
		}, StepNone, MemberDown},
		{"this host is a spare", func(v *View) {
			v.Self.ID, v.Self.PeerURL = "n9", peerPrefix+"n9"
			v.Data = Data{State: DataEmpty, FreeKnown: true, Free: 1 << 40}
			v.Unit.State = UnitInactive
			v.Cluster.Members[2].DownFor = time.Hour
		}, StepNone, LearnerPresent},
	})
}
