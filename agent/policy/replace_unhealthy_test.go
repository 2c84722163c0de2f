// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// standbyOfUnhealthy returns the view of standby n4 12 min after the disk of voter n3 became slow.
func standbyOfUnhealthy() View {
	v := unhealthyView()
	m := voter(4, "n4")
	m.Learner, m.ThinksLearner, m.Standby = true, true, true
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Hosts[3].Role = RoleStandby
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Hour}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 4, Free: 100 << 30, FreeKnown: true}
	v.Self.MemberID, v.Self.StandbyID = 4, 4
	return v
}

// promotedExtra is standbyOfUnhealthy after n4 was promoted, so there is a surplus voter.
func promotedExtra() View {
	v := standbyOfUnhealthy()
	m := &v.Cluster.Members[3]
	m.Learner, m.ThinksLearner, m.Standby = false, false, false
	v.Hosts[3].Role, v.Self.StandbyID = RoleVoter, 0
	return v
}

// silentUnhealthy makes the disk of voter n3 hang, so that n3 answers no linearizable read.
func silentUnhealthy(v *View) {
	unreached(v)
	v.Hosts[2].Health, v.Hosts[2].UnhealthySince.HangsFor = health.Stalled, time.Minute
}

// unreached makes n3 unreachable from this host, while n1 still reaches it.
func unreached(v *View) {
	m := &v.Cluster.Members[2]
	m.Live, m.LiveFor, m.DownFor = false, 0, time.Minute
	v.Hosts[0].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers, For: time.Hour}}
}

// agentGone removes the host records of these voters, as if their agents were dead; their etcds still answer.
func agentGone(hosts ...int) func(v *View) {
	return func(v *View) {
		v.Hosts = slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool {
			return slices.ContainsFunc(hosts, func(i int) bool { return h.PeerURL == v.Cluster.Members[i].PeerURL })
		})
	}
}

// strain marks hosts as WARM or worse until a short time ago, because of their disk, CPU or network.
func strain(hosts ...int) func(v *View) {
	return func(v *View) {
		for _, i := range hosts {
			v.Hosts[i].Strained = true
		}
	}
}

func recoverN3(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince = health.OK, UnhealthySince{} }

func TestAHostReplacesAnUnhealthyVoterWithoutAVeto(t *testing.T) {
	t.Parallel()
	scenes := []scene{
		{"a host that is ready takes the lock", nil, StepTakeLock, ""},
		{"a host that has the lock records the replaced voter", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginReplace, ""},
		{"the voter answers no read", silentUnhealthy, StepTakeLock, ""},
		{"another voter is unhealthy, too", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"another voter was WARM recently, with a cause they may share", strain(1, 2), StepNone, CommonCause},
		{"another voter was WARM, and n3 is unhealthy for a different cause", strain(1), StepTakeLock, ""},
		{"both were WARM, in a failure domain of their own", func(v *View) {
			strain(1, 2)(v)
			v.Cluster.Members[0].Domain = "r1"
			v.Cluster.Members[1].Domain, v.Cluster.Members[2].Domain = "r2", "r2"
		}, StepTakeLock, ""},
		{"a spare was WARM, which does not vote", func(v *View) {
			strain(2)(v)
			other := ready("n5", RoleSpare)
			other.Health, other.Strained, other.Waiting = health.Slow, true, HealthBad
			v.Hosts = append(v.Hosts, other)
		}, StepTakeLock, ""},
		{
			"another voter's health is unknown",
			func(v *View) { v.Hosts[1].Health = health.Unknown },
			StepNone,
			QuorumAtRisk,
		},
		{"this host is unhealthy", func(v *View) { v.Health.State = health.Slow }, StepNone, HealthBad},
		{"the daily limit of replacements is reached", func(v *View) { v.Repairs = 2 }, StepNone, RepairLimitReached},
		{"the member list has just changed", func(v *View) { v.Cluster.StableFor = time.Second }, StepNone, Settling},
		{
			"another host publishes that it is in its operation",
			func(v *View) { v.Hosts[1].InOperation = true },
			StepNone,
			OperationInFlight,
		},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} }, StepNone, Paused},
	}
	play(t, unhealthyView, append(scenes,
		scene{"replacement is off by default", func(v *View) { v.Limits.UnhealthyGrace = 0 }, StepNone, TargetMet},
		scene{
			"the grace period is not over", func(v *View) { v.Limits.UnhealthyGrace = time.Hour }, StepNone,
			TargetMet,
		},
		scene{"only its own health state reports it", func(v *View) {
			v.Cluster.Members[2].Fsyncs.SlowFor = 0
		}, StepNone, TargetMet},
		scene{"only its etcd reports it", func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For = health.OK, 0
		}, StepNone, TargetMet},
		scene{"a standby goes first", func(v *View) {
			m := voter(9, "n9")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepNone, LearnerPresent},
		scene{"replacement is blocked, and an ordinary join is not", func(v *View) {
			v.Repairs, v.Target.Standbys = 2, 1
		}, StepTakeLock, ""},
		scene{"a place is free, and is filled first", func(v *View) {
			v.Target.Voters, v.Cluster.Members = 5, append(v.Cluster.Members, voter(5, "n5"))
			v.Hosts = append(v.Hosts, ready("n5", RoleVoter))
		}, StepTakeLock, ""},
	))
	play(t, standbyOfUnhealthy, append([]scene{{"a standby that lags does not", func(v *View) {
		v.Cluster.Members[3].Lag = 1000
	}, StepNone, LearnerNotSteady}}, scenes...))
}

func TestTheReplacementOfAnAnsweringUnhealthyVoterVotesFirst(t *testing.T) {
	t.Parallel()
	play(t, replacing(unhealthyView, PhaseBegun), []scene{
		{"a spare is added", nil, StepAddLearner, ""},
		{"it does not wait for a free place", func(v *View) { v.Target.Voters = 5 }, StepAddLearner, ""},
		{"the voter is healthy again", recoverN3, StepEndOp, ""},
		{
			"the voter's grace period has restarted", func(v *View) { v.Hosts[2].UnhealthySince.For = time.Minute },
			StepEndOp, "",
		},
		{"another voter does not answer", func(v *View) {
			v.Cluster.Members[1].Live = false
		}, StepNone, CommonCause},
		{"the voter is too slow to answer this host", unreached, StepAddLearner, ""},
		{"the voter hangs, and has only just stopped answering", func(v *View) {
			silentUnhealthy(v)
			v.Cluster.Members[2].DownFor = time.Second
		}, StepNone, VoterNotLive},
		{"the voter is too slow to answer this host, and another voter does not answer", func(v *View) {
			unreached(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, CommonCause},
		{"replacement is off by now", func(v *View) { v.Limits.UnhealthyGrace = 0 }, StepEndOp, ""},
		{"the voter hangs, answers no read, and is removed first", silentUnhealthy, StepSetPhase, ""},
		{"the voter hangs, and stopped answering a moment ago", func(v *View) {
			silentUnhealthy(v)
			v.Cluster.Members[2].DownFor = time.Second
		}, StepNone, VoterNotLive},
	})
	play(t, replacing(standbyOfUnhealthy, PhaseStarted), []scene{
		{"a standby is promoted", nil, StepPromote, ""},
		{"the unhealthy voter is healthy again", recoverN3, StepRollBack, ""},
		{"its etcd does not confirm its report", func(v *View) {
			v.Cluster.Members[2].Fsyncs.SlowFor = 0
		}, StepNone, MemberLive},
		{"its health is unknown", func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For = health.Unknown, 0
		}, StepNone, MemberLive},
		{"another voter's health is unknown", func(v *View) {
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"a second voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"another voter was WARM recently", strain(1, 2), StepNone, CommonCause},
		{"the unhealthy voter is too slow to answer", unreached, StepPromote, ""},
		{"the unhealthy voter has only just stopped answering, and may be dead", func(v *View) {
			unreached(v)
			v.Cluster.Members[2].DownFor = 14 * time.Second
		}, StepNone, VoterNotLive},
		{"no voter has a connection to the unhealthy voter", func(v *View) {
			unreached(v)
			v.Hosts[0].Sees[0].LostSince = lostOn
		}, StepNone, VoterNotLive},
		{"the unhealthy voter is too slow to answer, and another voter is down", func(v *View) {
			unreached(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, CommonCause},
		{"the replacement lasts too long", func(v *View) { v.Op.Elapsed = 3 * time.Hour }, StepRollBack, ""},
	})
	play(t, replacing(standbyOfUnhealthy, PhaseRemoving), []scene{
		{"the voter answers no read, and is removed", silentUnhealthy, StepRemoveMember, ""},
		{"a voter has not reported", func(v *View) {
			silentUnhealthy(v)
			v.Hosts[0].Answered = false
		}, StepNone, HealthAwaited},
		{"the voter answers again", nil, StepSetPhase, ""},
	})
}

func TestAnUnhealthyVoterIsRemovedOnceItsReplacementVotes(t *testing.T) {
	t.Parallel()
	leads := func(v *View) { v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true }
	play(t, replacing(promotedExtra, PhasePromoted), []scene{
		{"it records that the removal may be sent", nil, StepSetPhase, ""},
		{"its leadership is transferred first", leads, StepTransferLeadership, ""},
		{"it waits while another voter's health is unknown", func(v *View) {
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"the agent of a voter that answers is gone", agentGone(1), StepSetPhase, ""},
		{"a second voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"another voter's health is unknown for too long", func(v *View) {
			v.Hosts[1].Health, v.Op.Elapsed = health.Slow, 3*time.Hour
		}, StepEndOp, ""},
		{"the replaced voter has recovered, and there is a surplus voter", recoverN3, StepSetPhase, ""},
		{"there is no surplus voter", func(v *View) { v.Target.Voters = 5 }, StepEndOp, ""},
		{"replacement is off", func(v *View) { v.Limits.UnhealthyGrace = 0 }, StepEndOp, ""},
		{"the new one does not serve yet", func(v *View) {
			v.Cluster.Members[3].ThinksLearner = true
		}, StepNone, Starting},
	})
	play(t, replacing(promotedExtra, PhaseRemoving), []scene{
		{"the removal is sent to etcd", nil, StepRemoveMember, ""},
		{"a voter has not reported yet", func(v *View) {
			v.Hosts[0].Answered = false
		}, StepNone, HealthAwaited},
		{"the replaced voter leads", leads, StepTransferLeadership, ""},
		{"another voter does not answer", func(v *View) {
			v.Cluster.Members[1].Live = false
		}, StepNone, CommonCause},
		{"the replaced voter is removed", func(v *View) { without(v, 3) }, StepSetPhase, ""},
	})
}

func TestAVoterRemovesAnUnhealthySurplusVoter(t *testing.T) {
	t.Parallel()
	surplusView := func() View {
		v := promotedExtra()
		v.Lock = Lock{Known: true}
		return v
	}
	play(t, surplusView, []scene{
		{"its operation was rolled back after the promotion", nil, StepTakeLock, ""},
		{"a voter that has the lock begins the removal", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginReplace, ""},
		{"no voter is unhealthy, and the surplus is reported", recoverN3, StepNone, TooManyVoters},
		{"unhealthy voters are not replaced", func(v *View) { v.Limits.UnhealthyGrace = 0 }, StepNone, VoterUnhealthy},
		{"there is no surplus voter", func(v *View) { v.Target.Voters = 5 }, StepNone, VoterUnhealthy},
		{"another voter's health is unknown", func(v *View) {
			v.Hosts[0].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"the agent of a voter that answers is gone", agentGone(0), StepTakeLock, ""},
		{"the agent of a voter is gone, and the voter reports errors", func(v *View) {
			agentGone(0)(v)
			v.Cluster.Members[0].Errors = true
		}, StepNone, QuorumAtRisk},
		{"the healthy voters would be no quorum", func(v *View) {
			agentGone(0, 1)(v)
		}, StepNone, QuorumAtRisk},
		{"this host's own voter is the unhealthy one", func(v *View) {
			v.Self = Self{
				ID: "n3", Name: "n3", PeerURL: peerPrefix + "n3", Mode: Manage, Drives: true, Etcd: v36(16),
				MemberID: 3,
			}
			v.Data.MemberID = 3
		}, StepNone, VoterUnhealthy},
	})
}

func TestAnOrphanedReplacementOfAnUnhealthyVoterRollsBackALearnerOnly(t *testing.T) {
	t.Parallel()
	orphan := func(base func() View, phase OpPhase) func() View {
		return func() View {
			v := replacing(base, phase)()
			v.Self = Self{
				ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", Mode: Manage, Drives: true, Etcd: v36(16),
				MemberID: 1,
			}
			v.Data.MemberID, v.Op.OrphanedFor, v.Op.WrittenFor = 1, time.Hour, time.Hour
			v.Op.PeerURL, v.Op.MemberID = peerPrefix+"n4", 4
			return v
		}
	}
	play(t, orphan(func() View {
		v := standbyOfUnhealthy()
		v.Cluster.Members[3].Standby = false
		return v
	}, PhaseRollback), []scene{{"a learner is rolled back", nil, StepRemoveLearner, ""}})
	play(t, orphan(standbyOfUnhealthy, PhaseRollback), []scene{{"a standby stays", nil, StepEndOp, ""}})
	play(t, orphan(promotedExtra, PhaseRollback), []scene{{"a voter stays", nil, StepEndOp, ""}})
}

func TestAHostIsReadyToReplaceAVoterThatIsTooSlowToAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		waits  ReasonCode
	}{
		"the voter is too slow to answer": {unreached, ""},
		"unhealthy voters are not replaced": {func(v *View) {
			unreached(v)
			v.Limits.UnhealthyGrace = 0
		}, VoterNotLive},
		"the voter's disk hangs": {silentUnhealthy, VoterNotLive},
		"there is no evidence against the voter": {func(v *View) {
			unreached(v)
			v.Cluster.Members[2].Fsyncs.SlowFor = 0
		}, VoterNotLive},
		"another voter is down": {func(v *View) {
			unreached(v)
			v.Cluster.Members[1].Live = false
		}, VoterNotLive},
	} {
		v := unhealthyView()
		c.change(&v)
		if got := Decide(v).Waiting; got != c.waits {
			t.Errorf("%s: it waits for %q, want %q", name, got, c.waits)
		}
	}
}
