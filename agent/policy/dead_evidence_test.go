// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// deadView returns the view of a spare 11 min after voter n3 lost power, in a cluster of three voters led by n1.
func deadView() View {
	v := spareView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n4", "n4", peerPrefix+"n4"
	v.Cluster.Fresh = true
	v.Limits.DeadGrace, v.Limits.RepairsPerDay = 10*time.Minute, 2
	lost := voter(3, "n3")
	lost.Live, lost.LiveFor, lost.SteadyFor, lost.DownFor = false, 0, 0, 11*time.Minute
	lost.AgentGoneFor = 11 * time.Minute
	v.Cluster.Members = append(v.Cluster.Members, lost)
	v.Hosts = []Host{ready("n1", RoleVoter), ready("n2", RoleVoter), ready("n4", RoleSpare)}
	v.Hosts[0].Sees = []record.Reachability{
		{MemberID: 2, Peer: record.PortAnswers, For: time.Hour},
		{MemberID: 3, LostSince: lostOn, Link: record.LinkNone, For: 11 * time.Minute},
	}
	v.Hosts[1].Sees = []record.Reachability{{MemberID: 3, LostSince: lostOn, For: 10 * time.Minute}}
	v.Hosts[2].Own = true
	return v
}

func TestAVoterIsDeadForAsLongAsTheLastLiveVoterReportsIt(t *testing.T) {
	t.Parallel()
	v := deadView()
	m, _ := v.memberByID(3)
	if since, why := v.deadFor(m); since != 10*time.Minute || why != "" {
		t.Errorf("dead for %s, or not dead because %q", since, why)
	}
}

func TestAVoterThatIsNotCertainlyDeadIsNotDead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		why    string
	}{
		"a minority decides": {func(v *View) { v.Cluster.Reachable = false }, "not observed in this round"},
		"the cluster was observed a while ago": {
			func(v *View) { v.Cluster.Fresh = false }, "not observed in this round",
		},
		"the records were read a while ago": {func(v *View) { v.Resting = true }, "not observed in this round"},
		"it answers this host":              {func(v *View) { v.Cluster.Members[2].Live = true }, "it answers"},
		"one voter reaches it": {
			func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, "n2 reaches it",
		},
		"one voter is not sure": {
			func(v *View) { v.Hosts[1].Sees[0].LostSince = time.Time{} }, "n2 cannot determine",
		},
		"the leader reaches it": {func(v *View) { markReached(&v.Hosts[0].Sees[1]) }, "n1 reaches it"},
		"the leader's etcd receives messages from it": {
			func(v *View) { v.Hosts[0].Sees[1].Link = record.LinkUp }, "etcd of n1 receives messages from it",
		},
		"a follower's etcd receives messages from it": {
			func(v *View) { v.Hosts[1].Sees[0].Link = record.LinkUp },
			"etcd of n2 receives messages from it",
		},
		"the leader's metrics cannot be read": {
			func(v *View) { v.Hosts[0].Sees[1].Link = "" }, "n1, the leader, does not report",
		},
		"the leader has not reported": {func(v *View) { v.Hosts[0].Sees = nil }, "n1 has not reported yet"},
		"a follower has not reported": {func(v *View) { v.Hosts[1].Sees = nil }, "n2 has not reported yet"},
		"the leader has no agent":     {func(v *View) { v.Hosts = v.Hosts[1:] }, "voter n1 has no quorumd"},
		"a follower has no agent": {
			func(v *View) { v.Hosts = append(v.Hosts[:1:1], v.Hosts[2]) }, "voter n2 has no quorumd",
		},
		"there is no leader": {func(v *View) { v.Cluster.Members[0].Leader = false }, "no live leader"},
		"the dead one still leads": {
			func(v *View) { v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true }, "no live leader",
		},
		"only one live voter reports it": {
			func(v *View) { v.Cluster.Members[1].Live = false }, "only one live voter",
		},
		"a voter that this host cannot reach reaches it": {
			func(v *View) {
				v.Cluster.Members = append(v.Cluster.Members, voter(5, "n5"), voter(6, "n6"))
				v.Cluster.Members[3].Live = false
				h5, h6 := ready("n5", RoleVoter), ready("n6", RoleVoter)
				h5.Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers}}
				h6.Sees = []record.Reachability{{MemberID: 3, LostSince: lostOn, For: time.Hour}}
				v.Hosts = append(v.Hosts, h5, h6)
			}, "n5 reaches it",
		},
		"the deciding host reaches it": {func(v *View) {
			v.Hosts[2].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers}}
		}, "n4 reaches it"},
		"its agent is present, and etcd is stopped": {
			func(v *View) { v.Hosts = append(v.Hosts, ready("n3", RoleVoter)) }, "its host record has not expired",
		},
		"its agent is present under another URL": {
			func(v *View) {
				h := ready("n3", RoleVoter)
				h.PeerURL, h.MemberLostFor = "http://another", time.Hour
				v.Hosts = append(v.Hosts, h)
			}, "its host record has not expired",
		},
		"its agent was present a moment ago": {
			func(v *View) { v.Cluster.Members[2].AgentGoneFor = 0 }, "has only just expired",
		},
		"it is in maintenance": {
			func(v *View) { v.Op = &Op{Kind: KindCycle, MemberID: 3, Phase: PhaseDown} }, "taken down on purpose",
		},
		"a record of a host cannot be read": {
			func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordHost}} }, "cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := deadView()
			c.change(&v)
			m, _ := v.memberByID(3)
			if since, why := v.deadFor(m); since != 0 || !strings.Contains(why, c.why) {
				t.Errorf("dead for %s, or not dead because %q", since, why)
			}
		})
	}
}

func TestTheReportOfASpareDoesNotCount(t *testing.T) {
	t.Parallel()
	v := deadView()
	other := ready("n5", RoleSpare)
	other.Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers}}
	v.Hosts = append(v.Hosts, other)
	m, _ := v.memberByID(3)
	if since, why := v.deadFor(m); since == 0 {
		t.Errorf("not dead: %s", why)
	}
}

func TestAMemberWithoutDataIsDeadThoughItsAgentLives(t *testing.T) {
	t.Parallel()
	v := deadView()
	own := ready("n3", RoleVoter)
	own.MemberLostFor = 5 * time.Minute
	v.Hosts = append(v.Hosts, own)
	v.Cluster.Members[2].AgentGoneFor = 0
	m, _ := v.memberByID(3)
	if since, why := v.deadFor(m); since != 5*time.Minute {
		t.Errorf("dead for %s, or not dead because %q", since, why)
	}
}

func TestTheOthersWaitForAnAgentThatHasJustGone(t *testing.T) {
	t.Parallel()
	v := deadView()
	v.Cluster.Members[2].AgentGoneFor = time.Minute
	m, _ := v.memberByID(3)
	if since, why := v.deadFor(m); since != time.Minute {
		t.Errorf("dead for %s, or not dead because %q", since, why)
	}
}

// leaderSeesDead returns the view of the leader n1 of the same cluster as deadView.
func leaderSeesDead() View {
	v := deadView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
	v.Hosts[2].Own, v.Hosts[0].Own = false, true
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
	v.Unit.State = UnitActive
	return v
}

func TestADeadVoterIsNamedWithItsReportersAndItsReplacement(t *testing.T) {
	t.Parallel()
	const down = "voter n3 has not answered for 11m: 2 of 3 voters are live, fault tolerance 0; "
	const dead = down + "n3 has been dead for 10m, reported by n1, n2; "
	for name, c := range map[string]struct {
		change func(v *View)
		code   ReasonCode
		text   string
	}{
		"repair is off": {
			func(v *View) { v.Limits.DeadGrace = 0 }, VoterDead,
			dead + "no host replaces it, because repair.dead is off",
		},
		"a spare waits for the grace period": {
			func(v *View) { v.Limits.DeadGrace = 12 * time.Minute }, VoterDead,
			dead + "another host replaces it in 2m",
		},
		"the grace period is over": {func(*View) {}, VoterDead, dead + "another host is about to replace it"},
		"no host can replace it": {
			func(v *View) { v.Hosts = v.Hosts[:2] }, VoterDead,
			dead + "another host may replace it after 10m, but: there is no standby and no spare",
		},
		"the spare is not ready": {
			func(v *View) { v.Hosts[2].Waiting, v.Limits.DeadGrace = HealthBad, 15*time.Minute }, VoterDead,
			dead + "another host may replace it in 5m, but: no standby or spare is ready: n4 waits for " +
				"HEALTH_BAD",
		},
		"the spare only observes": {
			func(v *View) { v.Hosts[2].Manage = false }, VoterDead,
			dead + "another host may replace it after 10m, but: no standby or spare is ready: n4 only observes",
		},
		"the daily limit is reached": {
			func(v *View) { v.Repairs = 2 }, VoterDead,
			dead + "another host may replace it after 10m, but: 2 voters were replaced in the last 24 hours " +
				"(limit: 2)",
		},
		"another voter is unhealthy": {
			func(v *View) { v.Hosts[1].Health = health.Slow }, VoterDead,
			dead + "another host may replace it after 10m, but: 2 voters look unhealthy or dead together, " +
				"and are not all the voters of one failure domain: n2 is SLOW, n3 does not answer",
		},
		"one voter reaches it": {
			func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, VoterNotLive,
			down + "n3 does not count as dead: n2 reaches it",
		},
		"it was stopped": {
			func(v *View) { v.Hosts = append(v.Hosts, ready("n3", RoleVoter)) }, VoterNotLive,
			down + "n3 does not count as dead: its host record has not expired, so its own quorumd is still in charge",
		},
	} {
		v := leaderSeesDead()
		c.change(&v)
		d := Decide(v)
		if len(d.Reasons) == 0 || d.Reasons[0].Code != c.code || d.Reasons[0].Text != c.text {
			t.Errorf("%s: %v\nwant %s: %s", name, d.Reasons, c.code, c.text)
		}
	}
}

func TestAVotersHostLooksAgainSoonWhileItsReportIsAwaited(t *testing.T) {
	t.Parallel()
	replaced := &Op{Kind: KindReplace, Phase: PhaseRemoving, Host: "n4", HostName: "n4", Replaces: 3}
	for name, c := range map[string]struct {
		change func(v *View)
		want   time.Duration
	}{
		"a voter has not answered for 10 min": {func(*View) {}, 0},
		"it has just stopped answering": {
			func(v *View) { v.Cluster.Members[2].DownFor = time.Second }, lookSoon,
		},
		"dead voters are not replaced": {
			func(v *View) { v.Cluster.Members[2].DownFor, v.Limits.DeadGrace = time.Second, 0 }, 0,
		},
		"another host is replacing it": {func(v *View) { v.Op = replaced }, lookSoon},
		"the removal is done": {
			func(v *View) { op := *replaced; op.Phase, v.Op = PhasePromoted, &op }, 0,
		},
		"another operation needs no reports": {
			func(v *View) { v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4"} }, 0,
		},
	} {
		v := leaderSeesDead()
		c.change(&v)
		if d := rest(v); d.Again != c.want {
			t.Errorf("%s: looks again in %s, want %s", name, d.Again, c.want)
		}
	}
}

func TestAHostLooksAgainWhenADeadVotersGraceEndsAndSoonWhileAReplacementIsAwaited(t *testing.T) {
	t.Parallel()
	toSpare := func(v *View) {
		v.Self.PeerURL = peerPrefix + "n4"
		v.Hosts[0].Own = false
		v.Hosts[1].Sees = nil
		v.Cluster.Members[2].DownFor = time.Second
	}
	for name, c := range map[string]struct {
		change func(v *View)
		again  time.Duration
		behind string
	}{
		"2 s remain": {func(v *View) { v.Limits.DeadGrace = 10*time.Minute + 2*time.Second }, 2 * time.Second, ""},
		"it is over, and the replacement's record is awaited": {func(*View) {}, lookSoon, ""},
		"no host has replaced it for a long time": {
			func(v *View) { v.Limits.DeadGrace = 9 * time.Minute }, 0, "",
		},
		"dead voters are not replaced": {func(v *View) { v.Limits.DeadGrace = 0 }, 0, ""},
		"the cluster is paused":        {func(v *View) { v.Pause = &Pause{} }, 0, ""},
		"it has just stopped answering, and n2 has not reported yet, to a non-voter": {toSpare, lookSoon, "n2"},
		"it has just stopped answering, to a voter": {func(v *View) {
			v.Hosts[1].Sees = nil
			v.Cluster.Members[2].DownFor = time.Second
		}, 0, ""},
		"it has just stopped answering, and dead voters are not replaced": {func(v *View) {
			toSpare(v)
			v.Limits.DeadGrace = 0
		}, 0, ""},
		"it has just stopped answering, and the cluster cannot be reached": {func(v *View) {
			toSpare(v)
			v.Cluster.Reachable = false
		}, 0, ""},
		"it has just stopped answering, and the cluster is a different one": {func(v *View) {
			toSpare(v)
			v.Cluster.ExpectedID = v.Cluster.ID + 1
		}, 0, ""},
		"it has just stopped answering, and an operation is in flight": {func(v *View) {
			toSpare(v)
			v.Op = &Op{Kind: KindJoin, Host: "n5", HostName: "n5"}
		}, 0, ""},
		"the window for the reports is almost over": {func(v *View) {
			toSpare(v)
			v.Cluster.Members[2].DownFor = silenceWindow - 1
		}, lookSoon, "n2"},
		"the window for the reports is over": {func(v *View) {
			toSpare(v)
			v.Cluster.Members[2].DownFor = silenceWindow
		}, 0, ""},
		"the window for the replacement's record is almost over": {
			func(v *View) { v.Limits.DeadGrace = 10*time.Minute - silenceWindow + 1 }, lookSoon, "",
		},
		"the window for the replacement's record is over": {
			func(v *View) { v.Limits.DeadGrace = 10*time.Minute - silenceWindow }, 0, "",
		},
		"it has just stopped answering, and n2 has not reported yet, to a standby": {func(v *View) {
			toSpare(v)
			m := voter(4, "n4")
			m.Learner, m.Standby = true, true
			v.Cluster.Members, v.Hosts[2].Role = append(v.Cluster.Members, m), RoleStandby
		}, lookSoon, "n2"},
		"it has been dead for a nanosecond": {func(v *View) {
			v.Hosts[1].Sees[0].For, v.Limits.DeadGrace = 1, 2*time.Second+1
		}, 2 * time.Second, ""},
		"a nanosecond remains": {func(v *View) { v.Limits.DeadGrace = 10*time.Minute + 1 }, 1, ""},
		"a nanosecond remains for each of two": {func(v *View) {
			ofFive("rack", "rack")(v)
			for _, h := range v.Hosts {
				for i := range h.Sees {
					h.Sees[i].For = 10 * time.Minute
				}
			}
			v.Limits.DeadGrace = 10*time.Minute + 1
		}, 1, ""},
		"its grace period was a nanosecond": {func(v *View) {
			v.Hosts[1].Sees[0].For, v.Limits.DeadGrace = 1, 1
		}, lookSoon, ""},
		"a spare does not wait for the record": {func(v *View) { v.Self.PeerURL = peerPrefix + "n4" }, 0, ""},
		"a spare rests behind others in the join queue": {func(v *View) {
			v.Self.PeerURL, v.Resting, v.HostsFresh = peerPrefix+"n4", true, true
			v.Limits.DeadGrace += 2 * time.Second
		}, 0, ""},
	} {
		v := leaderSeesDead()
		c.change(&v)
		again, behind := v.repairDue()
		if again != c.again || strings.Join(behind, ",") != c.behind {
			t.Errorf("%s: looks again in %s at %v, want %s at %q", name, again, behind, c.again, c.behind)
		}
	}
}

func TestTheReportOfADeadVoterNamesItsReplacementAndAnOperationThatEndsFirst(t *testing.T) {
	t.Parallel()
	v := leaderSeesDead()
	v.Op = &Op{Kind: KindReplace, Host: "n4", HostName: "n4", Replaces: 3}
	if got, _ := v.deadVoterSummary(); !strings.HasSuffix(got, ", reported by n1, n2; n4 is replacing it") {
		t.Error(got)
	}
	v.Op.Kind, v.Op.Replaces = KindJoin, 0
	if got, _ := v.deadVoterSummary(); !strings.HasSuffix(got, "but: the join of n4 must end first") {
		t.Error(got)
	}
}

func TestADeadVoterWaitsForALearnerThatIsNoStandby(t *testing.T) {
	t.Parallel()
	for role, want := range map[Role]string{
		RoleStandby: "", // it may replace the voter
		RoleJoining: "n4 is a learner, and no other learner is added next to it",
	} {
		v := leaderSeesDead()
		learner := voter(4, "n4")
		learner.Learner = true
		v.Cluster.Members, v.Hosts[2].Role = append(v.Cluster.Members, learner), role
		if got := v.deadBlocked(v.Cluster.Members[2], true); got != want {
			t.Errorf("%s: %q, want %q", role, got, want)
		}
	}
}

func TestTheRemedyNamesTheDeadVoterAndNoOtherUnansweringOne(t *testing.T) {
	t.Parallel()
	v := leaderSeesDead()
	other := voter(0, "n0")
	other.Live = false
	v.Cluster.Members = append([]Member{other}, v.Cluster.Members...)
	if got := Remedy(v, VoterDead); !strings.Contains(got, "quorumctl member remove n3 --reason '<why>'") {
		t.Error(got)
	}
}

func TestAHostReportsItsMemberLostOnlyIfItsDataIsGoneAndItDoesNotServe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		lost   bool
	}{
		"its directory is empty":       {func(*View) {}, true},
		"it still serves":              {func(v *View) { v.Cluster.Members[0].Live = true }, false},
		"its data is there":            {func(v *View) { v.Data = Data{State: DataMember, MemberID: 1} }, false},
		"the data is another member's": {func(v *View) { v.Data = Data{State: DataMember, MemberID: 9} }, true},
		"its data is unknown":          {func(v *View) { v.Data = Data{State: DataUnknown} }, false},
		"it is no member":              {func(v *View) { v.Self.PeerURL = peerPrefix + "n9" }, false},
	} {
		v := threeVoters()
		v.Cluster.Members[0].Live, v.Data, v.Unit.State = false, Data{State: DataEmpty}, UnitInactive
		c.change(&v)
		if got := OwnMemberLost(v); got != c.lost {
			t.Errorf("%s: lost %t", name, got)
		}
	}
}

func TestTheFateOfADeadVoterNamesTheTimeOnlyWhileSomeRemains(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		1: "; another host may replace it in 0s, but: why", 0: "; another host may replace it after 1m, but: why",
	} {
		if got := fate(false, "", "why", in, time.Minute, " after 1m"); got != want {
			t.Errorf("%s remain: %q, want %q", in, got, want)
		}
	}
}
