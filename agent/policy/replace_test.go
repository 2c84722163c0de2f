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

// standbyOfDead returns the view of standby n4 11 min after voter n3 lost power.
func standbyOfDead() View {
	v := deadView()
	m := voter(4, "n4")
	m.Learner, m.ThinksLearner, m.Standby = true, true, true
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Cluster.ID = clusterID
	v.Hosts[2].Role = RoleStandby
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Hour}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 4, Free: 100 << 30, FreeKnown: true}
	v.Self.MemberID, v.Self.StandbyID = 4, 4
	return v
}

// replacing puts this host's replacement of n3 in flight. All other voters' hosts have reported on n3 since the record
// was written.
func replacing(base func() View, phase OpPhase) func() View {
	return func() View {
		v := base()
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n4"}
		v.Op = &Op{
			Kind: KindReplace, Host: "n4", HostName: "n4", Target: RoleVoter, Phase: phase, Token: 7, Replaces: 3,
			SameBoot: true, Elapsed: 10 * time.Second, WrittenFor: 2 * time.Second,
		}
		if len(v.Cluster.Members) == 3 {
			v.Op.PeerURL = v.Self.PeerURL
		}
		for i := range v.Hosts {
			v.Hosts[i].Answered = v.Hosts[i].ID != v.Self.ID // the other hosts report to this one
		}
		return v
	}
}

func without(v *View, id uint64) {
	for i, m := range v.Cluster.Members {
		if m.ID == id {
			v.Cluster.Members = append(v.Cluster.Members[:i:i], v.Cluster.Members[i+1:]...)
			return
		}
	}
}

func lostToo(v *View, name, domain string) {
	for i := range v.Cluster.Members {
		if m := &v.Cluster.Members[i]; m.Name == name {
			m.Live, m.AgentGoneFor, m.Domain = false, 11*time.Minute, domain
		}
	}
	for i, h := range v.Hosts {
		if h.Name == name {
			v.Hosts = append(v.Hosts[:i:i], v.Hosts[i+1:]...)
			break
		}
	}
	m, _ := v.memberByID(3)
	for i := range v.Hosts {
		for _, gone := range v.Cluster.Members {
			if gone.Name == name && gone.ID != m.ID {
				sees := append([]record.Reachability(nil), v.Hosts[i].Sees...)
				v.Hosts[i].Sees = append(sees, record.Reachability{
					MemberID: record.MemberID(gone.ID), LostSince: lostOn, Link: record.LinkNone, For: 11 * time.Minute,
				})
			}
		}
	}
}

// ofFive changes the view of a spare: two of five voters are dead, in the given failure domains.
func ofFive(domain, other string) func(v *View) {
	return func(v *View) {
		v.Target.Voters = 5
		for id, name := range map[uint64]string{5: "n5", 6: "n6"} {
			m, h := voter(id, name), ready(name, RoleVoter)
			h.Sees = v.Hosts[1].Sees
			v.Cluster.Members, v.Hosts = append(v.Cluster.Members, m), append(v.Hosts, h)
		}
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Domain = "hall"
		}
		lostToo(v, "n3", domain)
		lostToo(v, "n6", other)
	}
}

// reportedDomains is ofFive for a spare that has never read the failure domains of the dead voters. Each live voter
// reports one of the given domains for both dead voters.
func reportedDomains(domains ...string) func(v *View) {
	return func(v *View) {
		ofFive("", "")(v)
		voters := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool { return h.Own })
		for i, h := range voters {
			for j := range h.Sees {
				if h.Sees[j].Lost() {
					h.Sees[j].Domain = domains[i]
				}
			}
		}
	}
}

// withRecordedDomain applies a change. Then it sets the failure domain of the members without one to "rack", as if this
// host had read it earlier.
func withRecordedDomain(others func(v *View)) func(v *View) {
	return func(v *View) {
		others(v)
		for i := range v.Cluster.Members {
			if m := &v.Cluster.Members[i]; m.Domain == "" {
				m.Domain = "rack"
			}
		}
	}
}

// ofFour adds a fourth voter and sets the configured number of voters.
func ofFour(v *View, wanted int) {
	m, h := voter(5, "n5"), ready("n5", RoleVoter)
	h.Sees = v.Hosts[1].Sees
	v.Cluster.Members, v.Hosts = append(v.Cluster.Members, m), append(v.Hosts, h)
	v.Target.Voters = wanted
}

// oneOfFive adds a fourth and a fifth voter, so that one of five is dead, and sets the configured number of voters.
func oneOfFive(wanted int) func(v *View) {
	return func(v *View) {
		ofFour(v, wanted)
		m, h := voter(6, "n6"), ready("n6", RoleVoter)
		h.Sees = v.Hosts[1].Sees
		v.Cluster.Members, v.Hosts = append(v.Cluster.Members, m), append(v.Hosts, h)
	}
}

func TestAReplacementKeepsTheNumberOfVotersEvenIfEven(t *testing.T) {
	t.Parallel()
	play(t, deadView, []scene{
		{"one of four, with one spare", func(v *View) { ofFour(v, 5) }, StepTakeLock, ""},
		{"one of four with three configured, which leaves three", func(v *View) { ofFour(v, 3) }, StepTakeLock, ""},
		{"one of five with three configured, which would leave four", oneOfFive(3), StepNone, EvenVoters},
		{"one of five", oneOfFive(5), StepTakeLock, ""},
	})
	gone := func(change func(v *View)) func(v *View) {
		return func(v *View) {
			ofFour(v, 5)
			without(v, 3)
			v.Cluster.StableFor = time.Hour
			change(v)
		}
	}
	play(t, replacing(standbyOfDead, PhaseStarted), []scene{
		{"it becomes the fourth voter", gone(func(*View) {}), StepPromote, ""},
		{"an ordinary join does not make it the fourth voter", gone(func(v *View) {
			v.Op.Kind, v.Op.PeerURL, v.Op.MemberID = KindJoin, v.Self.PeerURL, 4
			v.Cluster.Members[2].Standby = false
		}), StepNone, EvenVoters},
		{"three are configured, and it stays a spare", gone(func(v *View) { v.Target.Voters = 3 }), StepEndOp, ""},
	})
}

func TestAHostReplacesADeadVoterWithoutAVeto(t *testing.T) {
	t.Parallel()
	play(t, deadView, []scene{
		{"a spare that is ready takes the lock", nil, StepTakeLock, ""},
		{"a spare that has the lock records the replaced voter", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginReplace, ""},
		{"the grace period is not over", func(v *View) { v.Limits.DeadGrace = time.Hour }, StepNone, VoterNotLive},
		{"replacement is off by default", func(v *View) { v.Limits.DeadGrace = 0 }, StepNone, VoterNotLive},
		{"one voter still reaches it", func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, StepNone, VoterNotLive},
		{"another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"another voter was WARM recently", func(v *View) {
			strain(0, 1)(v)
			v.Hosts[1].Health = health.Warm
		}, StepTakeLock, ""},
		{"a standby that goes first is unhealthy", func(v *View) {
			m := voter(9, "n9")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
			h := ready("n9", RoleStandby)
			h.Health, h.Strained, h.Waiting = health.Slow, true, HealthBad
			v.Hosts = append(v.Hosts, h)
		}, StepNone, LearnerPresent},
		{
			"another voter's health is unknown",
			func(v *View) { v.Hosts[1].Health = health.Unknown },
			StepNone,
			QuorumAtRisk,
		},
		{"the voter that leads reports errors", func(v *View) {
			v.Cluster.Members[0].Errors = true
		}, StepNone, QuorumAtRisk},
		{"this host is unhealthy", func(v *View) { v.Health.State = health.Slow }, StepNone, HealthBad},
		{"this host is not qualified", func(v *View) { v.Health.Qualified = false }, StepNone, NotQualified},
		{"there is no free space", func(v *View) { v.Data.Free = 1 }, StepNone, SpaceLow},
		{"the last join has failed", func(v *View) { v.Backoff = time.Minute }, StepNone, BackingOff},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} }, StepNone, Paused},
		{"the agent only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"another operation is in flight", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n5", HostName: "n5"}
		}, StepNone, VoterNotLive},
		{
			"another host publishes that it is in its operation",
			func(v *View) { v.Hosts[1].InOperation = true },
			StepNone,
			OperationInFlight,
		},
		{"another agent holds the lock", func(v *View) { v.Lock.Held = true }, StepNone, LockHeld},
		{"the member list has just changed", func(v *View) { v.Cluster.StableFor = time.Second }, StepNone, Settling},
		{"an operation has just ended", func(v *View) { v.IdleFor = time.Second }, StepNone, Settling},
		{"a better spare goes first", func(v *View) {
			v.Hosts, v.IdleFor = append(v.Hosts, ready("n0", RoleSpare)), 10*time.Second
			v.Limits.Cooldown = 0
		}, StepNone, LowerRanked},
		{"there is a learner already", func(v *View) {
			m := voter(9, "n9")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepNone, LearnerPresent},
		{"the daily limit of replacements is reached", func(v *View) { v.Repairs = 2 }, StepNone, RepairLimitReached},
		{"the number of replacements is unknown", func(v *View) {
			v.Unreadable = []Unreadable{{RecordRepairs, "/quorumd/c/repairs", "bad JSON"}}
		}, StepNone, RecordUnreadable},
		{"two of five are dead in one failure domain", ofFive("rack", "rack"), StepTakeLock, ""},
		{"two of five are dead in different failure domains", ofFive("rack", "shelf"), StepNone, CommonCause},
		{"two of five are dead without a failure domain", ofFive("", ""), StepNone, CommonCause},
		{"two of five are dead in a failure domain with other voters", ofFive("hall", "hall"), StepNone, CommonCause},
		{
			"all others report the same failure domain",
			reportedDomains("rack", "rack", "rack"),
			StepTakeLock,
			"",
		},
		{"one of them reports a different domain", reportedDomains("rack", "rack", "shelf"), StepNone, CommonCause},
		{"one of them reports no domain", reportedDomains("rack", "", "rack"), StepNone, CommonCause},
		{"they report their own failure domain", reportedDomains("hall", "hall", "hall"), StepNone, CommonCause},
		{"one of them does not report the second voter", func(v *View) {
			reportedDomains("rack", "rack", "rack")(v)
			for i := range v.Hosts {
				if h := &v.Hosts[i]; h.Name == "n5" {
					h.Sees = slices.DeleteFunc(slices.Clone(h.Sees), func(s record.Reachability) bool {
						return s.MemberID == 6
					})
				}
			}
		}, StepNone, CommonCause},
		{
			"this host has recorded a domain, and a voter reports a different one",
			withRecordedDomain(reportedDomains("rack", "shelf", "rack")), StepNone, CommonCause,
		},
		{
			"this host has recorded a domain, and a voter reports none",
			withRecordedDomain(reportedDomains("rack", "", "rack")), StepTakeLock, "",
		},
		{"this host has recorded a different domain for one of them", func(v *View) {
			reportedDomains("rack", "rack", "rack")(v)
			v.Cluster.Members[2].Domain = "shelf"
		}, StepNone, CommonCause},
	})
}

func TestAStandbyReplacesADeadVoter(t *testing.T) {
	t.Parallel()
	play(t, standbyOfDead, []scene{
		{"a standby that has caught up takes the lock", nil, StepTakeLock, ""},
		{"a standby that lags", func(v *View) { v.Cluster.Members[3].Lag = 1000 }, StepNone, LearnerNotSteady},
		{"a standby that has caught up only recently", func(v *View) {
			v.Cluster.Members[3].SteadyFor = time.Second
		}, StepNone, LearnerNotSteady},
		{"a standby with unknown health", func(v *View) {
			v.Health = Health{State: health.Unknown, Qualified: true}
		}, StepNone, HealthUnknown},
	})
}

func TestADeadVoterIsRemovedOnceAllHaveReportedItAgain(t *testing.T) {
	t.Parallel()
	play(t, replacing(deadView, PhaseBegun), []scene{
		{"all have reported it", nil, StepSetPhase, ""},
		{"a voter has not reported it", func(v *View) { v.Hosts[1].Answered = false }, StepNone, HealthAwaited},
		{"it answers again", aliveAgain, StepEndOp, ""},
		{"a voter reaches it", func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, StepEndOp, ""},
		{"another voter is unhealthy by now", func(v *View) { v.Hosts[1].Health = health.Slow }, StepEndOp, ""},
		{"this host's health is unknown", func(v *View) {
			v.Health = Health{State: health.Unknown}
		}, StepNone, HealthUnknown},
		{"this host is unhealthy by now", func(v *View) { v.Health.State = health.Failed }, StepEndOp, ""},
		{"replacement is off by now", func(v *View) { v.Limits.DeadGrace = 0 }, StepEndOp, ""},
		{"a voter does not report for too long", func(v *View) {
			v.Hosts[1].Answered, v.Op.Elapsed = false, time.Hour
		}, StepEndOp, ""},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root"} }, StepNone, Paused},
	})
	play(t, replacing(deadView, PhaseRemoving), []scene{
		{"the removal is sent to etcd", nil, StepRemoveMember, ""},
		{"a voter has not reported again", func(v *View) {
			v.Hosts[0].Answered = false
		}, StepNone, HealthAwaited},
		{"it answers again", aliveAgain, StepRollBack, ""},
		{"a voter reaches it again", func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, StepRollBack, ""},
		{"another voter's health is unknown", func(v *View) {
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"another voter's health is unknown for too long", func(v *View) {
			v.Hosts[1].Health, v.Op.Elapsed = health.Unknown, time.Hour
		}, StepRollBack, ""},
		{"another voter becomes unhealthy", func(v *View) {
			v.Hosts[1].Health = health.Slow
		}, StepRollBack, ""},
		{"the dead voter is removed, and this host joins", func(v *View) { without(v, 3) }, StepAddLearner, ""},
		{
			"the dead voter is removed, and this host is unhealthy",
			func(v *View) { without(v, 3); v.Health.State = health.Failed },
			StepRollBack,
			"",
		},
	})
	play(t, replacing(standbyOfDead, PhaseRemoving), []scene{
		{"the standby sends the removal to etcd", nil, StepRemoveMember, ""},
		{"the standby has fallen behind and may catch up", func(v *View) {
			v.Cluster.Members[3].Lag = 1000
		}, StepNone, LearnerNotSteady},
		{"the standby has been behind for too long", func(v *View) {
			v.Cluster.Members[3].Lag, v.Op.Elapsed = 1000, time.Hour
		}, StepRollBack, ""},
		{"the dead voter is removed, and the standby records that", func(v *View) { without(v, 3) }, StepSetPhase, ""},
	})
}

func TestAReplacementContinuesWhileTheOtherVoterOfItsFailureDomainIsDeadAsWell(t *testing.T) {
	t.Parallel()
	both := func() View {
		v := deadView()
		ofFive("rack", "rack")(&v)
		return v
	}
	removed := func(v *View) { without(v, 3) }
	play(t, replacing(both, PhaseRemoving), []scene{
		{"the first is removed", nil, StepRemoveMember, ""},
		{"the first is removed, and this host joins", removed, StepAddLearner, ""},
		{"the first is removed, and a voter reaches the second", func(v *View) {
			removed(v)
			for i := range v.Hosts[0].Sees {
				markReached(&v.Hosts[0].Sees[i])
			}
		}, StepNone, VoterNotLive},
	})
}

func TestAReplacementBegunTooEarlyDoesNotEndAsIfTheVoterAnswered(t *testing.T) {
	t.Parallel()
	for _, phase := range []OpPhase{PhaseBegun, PhaseRemoving} {
		v := replacing(deadView, phase)()
		v.Hosts[1].Sees[0].For = time.Minute
		code, text := abortReason(v)
		if code != VoterDead || text != "n3 has been dead for only 1m; the grace period is 10m" {
			t.Errorf("%s: it ends with %s: %s", phase, code, text)
		}
		markReached(&v.Hosts[1].Sees[0])
		if code, text = abortReason(v); code != MemberLive || text != "n3 is not dead: n2 reaches it" {
			t.Errorf("%s: it ends with %s: %s", phase, code, text)
		}
	}
}

func TestAStandbyIsPromotedOnceTheDeadVoterIsRemoved(t *testing.T) {
	t.Parallel()
	play(t, replacing(standbyOfDead, PhaseStarted), []scene{
		{"the member list has just changed", func(v *View) {
			without(v, 3)
			v.Cluster.StableFor = 0
		}, StepPromote, ""},
		{"another voter is down", func(v *View) {
			without(v, 3)
			v.Cluster.Members[0].Live = false
		}, StepNone, VoterNotLive},
		{"the standby votes, and the operation ends", func(v *View) {
			without(v, 3)
			m := &v.Cluster.Members[2]
			m.Learner, m.ThinksLearner, m.Standby, v.Op.Phase = false, false, false, PhasePromoted
		}, StepEndOp, ""},
	})
}

func TestARolledBackReplacementEndsWhenNoRemovalCanTakeEffect(t *testing.T) {
	t.Parallel()
	play(t, replacing(deadView, PhaseRollback), []scene{
		{"etcd may still apply a call", nil, StepNone, Settling},
		{"etcd can no longer apply a call", func(v *View) { v.Op.WrittenFor = time.Minute }, StepEndOp, ""},
		{"the call has been applied", func(v *View) { without(v, 3) }, StepEndOp, ""},
		{"the added learner is removed", func(v *View) {
			without(v, 3)
			m := voter(4, "n4")
			m.Learner = true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepRemoveLearner, ""},
	})
	play(t, replacing(standbyOfDead, PhaseRollback), []scene{
		{"a standby stays a standby", func(v *View) { without(v, 3) }, StepEndOp, ""},
		{"a standby stays a standby, and the dead voter is back", func(v *View) {
			aliveAgain(v)
			v.Op.WrittenFor = time.Minute
		}, StepEndOp, ""},
	})
	play(t, orphanOf(PhaseRemoving), []scene{
		{"a voter's agent rolls back what a dead agent has begun", nil, StepTakeLock, ""},
		{
			"the grace period is not over",
			func(v *View) { v.Op.OrphanedFor = 10 * time.Second }, StepNone, OperationInFlight,
		},
		{"the voter's agent has the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 9}
		}, StepRollBack, ""},
	})
	play(t, orphanOf(PhaseRollback), []scene{{"it removes no member", func(v *View) {
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		v.Op.WrittenFor = time.Minute
	}, StepEndOp, ""}})
}

// orphanOf returns the view of voter n1 during a replacement whose agent is gone.
func orphanOf(phase OpPhase) func() View {
	return func() View {
		v := replacing(standbyOfDead, phase)()
		v.Self = Self{
			ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", Mode: Manage, Drives: true, Etcd: v36(16),
			MemberID: 1,
		}
		v.Data.MemberID, v.Lock, v.Op.OrphanedFor = 1, Lock{Known: true}, time.Hour
		v.Hosts[0].Own, v.Hosts[2].Own = true, false
		return v
	}
}

func TestTheStandbyIsTheFirstToReplaceADeadVoter(t *testing.T) {
	t.Parallel()
	v := deadView()
	v.Limits.Cooldown, v.IdleFor = 0, 10*time.Second
	v.Hosts = append(v.Hosts, ready("n9", RoleStandby))
	if text, holds := notNext(v); !holds || text != "n9 goes first" {
		t.Errorf("the text is %q", text)
	}
	if v.Resting = true; v.HostsFresh {
		t.Error("a resting host that has read the hosts is not next")
	} else if text, holds := notNext(v); !holds || text != "other hosts go first" {
		t.Errorf("the text about a resting host is %q", text)
	}
	v.Resting = false
	if v.IdleFor = time.Hour; len(v.Hosts[2].Waiting) != 0 {
		t.Error("n4 is not ready")
	}
	if d := Decide(v); d.Waiting != "" {
		t.Errorf("a ready spare publishes that it waits for %s", d.Waiting)
	}
}

func TestADeadVoterIsReplacedOnlyIfTheOthersAreHealthyAndAQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, down, proven int
		want                 bool
	}{
		{3, 1, 2, true},
		{3, 1, 1, false},
		{3, 0, 3, false},
		{2, 1, 1, false},
		{1, 1, 0, false},
		{5, 1, 4, true},
		{5, 1, 3, false},
		{5, 2, 3, true},
		{5, 3, 2, false},
		{4, 1, 3, true},
		{4, 2, 2, false},
	} {
		if got := mayReplaceDead(c.voters, c.down, c.proven); got != c.want {
			t.Errorf("%+v returns %t", c, got)
		}
	}
}

func TestTheRecordOfAReplacementNamesThePeerURLExceptAStandbys(t *testing.T) {
	t.Parallel()
	for role, want := range map[Role]string{RoleSpare: "http://n4", RoleVoter: "http://n4", RoleStandby: ""} {
		if got := role.RecordedURL("http://n4"); got != want {
			t.Errorf("the record of a %s names %q, want %q", role, got, want)
		}
	}
}

func TestARolledBackReplacementWaitsExactlyUntilThePendingRemovalCannotTakeEffect(t *testing.T) {
	t.Parallel()
	v := replacing(deadView, PhaseRollback)()
	for since, waits := range map[time.Duration]bool{v.Limits.LockTTL: false, v.Limits.LockTTL - 1: true} {
		v.Op.WrittenFor = since
		d := endReplace(v)
		if got := len(d.Reasons) > 0 && d.Reasons[0].Code == Settling; got != waits {
			t.Errorf("after %s: %+v", since, d)
		}
	}
}
