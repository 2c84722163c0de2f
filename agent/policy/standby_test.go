// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// lostStandby returns the view of voter n1 6 min after standby n4 lost power. A spare is ready to join.
func lostStandby() View {
	v := spareView()
	v.Self = Self{
		ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", Mode: Manage, Drives: true, Etcd: v36(16),
		MemberID: 1,
	}
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Hour}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1, Free: 100 << 30, FreeKnown: true}
	v.Cluster.Fresh = true
	lost := voter(4, "n4")
	lost.Learner, lost.Standby, lost.Live, lost.LiveFor, lost.SteadyFor = true, true, false, 0, 0
	lost.DownFor, lost.StalledFor, lost.AgentGoneFor = 6*time.Minute, 6*time.Minute, 6*time.Minute
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"), lost)
	v.Hosts = []Host{
		ready("n1", RoleVoter), ready("n2", RoleVoter), ready("n3", RoleVoter), ready("n5", RoleSpare),
	}
	v.Hosts[0].Own = true
	for i := range 3 {
		v.Hosts[i].Sees = []record.Reachability{
			{MemberID: 4, LostSince: lostOn, Link: record.LinkNone, For: 6 * time.Minute},
		}
	}
	return v
}

func underItsLock(v *View) {
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
}

// lags makes the standby answer but lag behind the leader for that long.
func lags(since time.Duration) func(v *View) {
	return func(v *View) {
		m := &v.Cluster.Members[3]
		m.Live, m.Lag, m.AgentGoneFor, m.DownFor = true, 5000, 0, 0
		m.StalledFor, m.BehindFor = since, since
		v.Hosts = append(v.Hosts, ready("n4", RoleStandby))
		for i := range 3 {
			v.Hosts[i].Sees = []record.Reachability{{MemberID: 4, Peer: record.PortAnswers, For: time.Hour}}
		}
	}
}

// reportsUnhealthy makes the standby answer and keep up, but report itself unhealthy for that long.
func reportsUnhealthy(since time.Duration) func(v *View) {
	return func(v *View) {
		lags(0)(v)
		v.Cluster.Members[3].Lag = 0
		h := &v.Hosts[len(v.Hosts)-1]
		h.Health, h.UnhealthySince.For, h.Waiting = health.Slow, since, HealthBad
	}
}

func TestALostStandbyIsRemovedOnceAnotherHostIsReady(t *testing.T) {
	t.Parallel()
	play(t, lostStandby, []scene{
		{"a voter takes the lock", nil, StepTakeLock, ""},
		{"it has the lock, and records the removal", underItsLock, StepRollBack, ""},
		{
			"it has not been out of reach for long enough",
			func(v *View) { v.Hosts[1].Sees[0].For = 4 * time.Minute }, StepNone, Idle,
		},
		{"the second voter waits for the first", func(v *View) {
			v.Self.ID, v.Self.Name, v.Self.PeerURL = "n2", "n2", peerPrefix+"n2"
			v.Data.MemberID, v.Self.MemberID, v.Limits.LearnerStall = 2, 2, 345*time.Second
		}, StepNone, Idle},
		{"one voter reaches it", func(v *View) { markReached(&v.Hosts[2].Sees[0]) }, StepNone, Idle},
		{"the leader is connected to it", func(v *View) { v.Hosts[0].Sees[0].Link = record.LinkUp }, StepNone, Idle},
		{"its agent is present, and etcd was stopped cleanly", func(v *View) {
			v.Hosts, v.Cluster.Members[3].AgentGoneFor = append(v.Hosts, ready("n4", RoleStandby)), 0
		}, StepNone, Idle},
		{"it was taken down on purpose", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n4", HostName: "n4", MemberID: 4, Phase: PhaseDown}
		}, StepNone, OperationInFlight},
		{"no other host is ready", func(v *View) { v.Hosts[3].Waiting = HealthBad }, StepNone, Idle},
		{"there is no spare", func(v *View) { v.Hosts = v.Hosts[:3] }, StepNone, Idle},
		{"several members look unhealthy", func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Slow, health.Slow
		}, StepNone, Idle},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} }, StepNone, Paused},
		{"it was observed a while ago", func(v *View) { v.Cluster.Fresh = false }, StepNone, Idle},
		{"it answers, and does not follow", lags(6 * time.Minute), StepTakeLock, ""},
		{"it has not followed for a minute", lags(time.Minute), StepNone, Idle},
		{"it was down, and has to fetch a snapshot", func(v *View) {
			lags(time.Minute)(v)
			v.Cluster.Members[3].StalledFor = time.Hour
		}, StepNone, Idle},
		{"its quorumd only observes", func(v *View) {
			lags(time.Hour)(v)
			v.Hosts[len(v.Hosts)-1].Manage = false
		}, StepNone, Idle},
		{"it is unhealthy by its own report", reportsUnhealthy(6 * time.Minute), StepTakeLock, ""},
		{"it has not been unhealthy for long enough", reportsUnhealthy(4 * time.Minute), StepNone, Idle},
		{"it is only WARM", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Hosts[len(v.Hosts)-1].Health = health.Warm
		}, StepNone, Idle},
		{"its finding does not gate joins", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Hosts[len(v.Hosts)-1].Ungated = health.Joins
		}, StepNone, Idle},
		{"it is unhealthy, and so is a voter", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Hosts[1].Health, v.Hosts[1].UnhealthySince.For = health.Slow, time.Hour
		}, StepNone, Idle},
		{"it is unhealthy, and a voter is down", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Cluster.Members[2].Live = false
		}, StepNone, VoterNotLive},
		{"it is unhealthy, and the spare could replace a dead voter", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Limits.DeadGrace = 10 * time.Minute
			m := &v.Cluster.Members[2]
			m.Live, m.LiveFor, m.DownFor, m.AgentGoneFor = false, 0, time.Hour, time.Hour
			v.Hosts = slices.Delete(slices.Clone(v.Hosts), 2, 3)
			for i := range 2 {
				v.Hosts[i].Sees = append(v.Hosts[i].Sees, record.Reachability{
					MemberID: 3, LostSince: lostOn, Link: record.LinkNone, For: time.Hour,
				})
			}
		}, StepTakeLock, ""},
		{"it is unhealthy, and no other host is ready", func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Hosts[3].Waiting = HealthBad
		}, StepNone, Idle},
		{"it answers and follows, though nothing is written", func(v *View) {
			lags(time.Hour)(v)
			v.Cluster.Members[3].Lag = 0
		}, StepNone, Idle},
	})
}

// removingStandby returns the view of the voter that removes the standby.
func removingStandby() View {
	v := lostStandby()
	underItsLock(&v)
	v.Op = &Op{
		Kind: KindJoin, Host: "member-4", HostName: "the standby n4", Phase: PhaseRollback, Token: 7, MemberID: 4,
		Outcome: StandbyLost, Reason: "STANDBY_LOST: no voter reaches it", WrittenFor: time.Second,
	}
	return v
}

func TestAStandbyIsCheckedAgainBeforeItsRemoval(t *testing.T) {
	t.Parallel()
	play(t, removingStandby, []scene{
		{"the member is removed", nil, StepRemoveLearner, ""},
		{"it is back", lags(0), StepEndOp, ""},
		{"it has followed since", lags(time.Minute), StepEndOp, ""},
		{"it is removed even if it is behind", lags(6 * time.Minute), StepRemoveLearner, ""},
		{"a voter reaches it", func(v *View) { markReached(&v.Hosts[2].Sees[0]) }, StepEndOp, ""},
		{"it is removed", func(v *View) { without(v, 4) }, StepEndOp, ""},
		{"an orphaned operation removes no standby", func(v *View) { v.Op.Outcome = Orphaned }, StepEndOp, ""},
		{"the agent that removes it is gone, and another one continues the removal", func(v *View) {
			v.Op.Token, v.Op.OrphanedFor = 3, 2*time.Minute
		}, StepSetPhase, ""},
	})
	for name, c := range map[string]struct {
		change func(v *View)
		want   ReasonCode
		why    string
	}{
		"it is removed": {func(v *View) { without(v, 4) }, StandbyLost, ""},
		"it is back":    {lags(0), Cancelled, "the standby n4 is not removed: it answers this host"},
		"it answered in between": {
			func(v *View) { v.Hosts[0].Sees[0].For = 1 }, Cancelled,
			"the standby n4 is not removed: it has not been out of reach for long enough",
		},
		"the agent of a voter is gone": {
			func(v *View) { v.Hosts = slices.Delete(v.Hosts, 1, 2) }, Cancelled,
			"the standby n4 is not removed: voter n2 has no quorumd that reports whether it reaches that member",
		},
	} {
		v := removingStandby()
		c.change(&v)
		if s := Decide(v).Step; s.Kind != StepEndOp || s.Outcome != c.want || s.Why != c.why {
			t.Errorf("%s: it ends with %s, because %q, and not with %s", name, s.Outcome, s.Why, c.want)
		}
	}
}

func TestALostStandbyIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   string
	}{
		"in time": {
			func(v *View) { v.Hosts[0].Sees[0].For = 3 * time.Minute }, "it will be removed in 2m, and another",
		},
		"now": {func(*View) {}, "no voter's host has reached it for 6m; it is about to be removed, and another"},
		"no spare is ready": {
			func(v *View) { v.Hosts = v.Hosts[:3] }, "it would be removed after 5m, but no spare is ready",
		},
		"a voter's agent is gone": {
			func(v *View) { v.Hosts = slices.Delete(v.Hosts, 1, 2) },
			"n4, the standby: no quorumd on its host is in charge of it, and n1 has had no answer from it for 6m; it " +
				"is not removed, because voter n2 has no quorumd that reports whether it reaches that member",
		},
		"a voter reaches it": {
			func(v *View) { markReached(&v.Hosts[2].Sees[0]) }, "it is not removed, because n3 reaches it",
		},
		"its agent and a voter's agent are gone": {
			func(v *View) { v.Hosts, v.Cluster.Members[3].Live = slices.Delete(v.Hosts, 1, 2), true }, "",
		},
		"it was silent for a moment": {func(v *View) {
			v.Hosts = slices.Delete(v.Hosts, 1, 2)
			v.Cluster.Members[3].DownFor = 2 * time.Minute
		}, ""},
		"it is taken down": {func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n4", HostName: "n4", MemberID: 4, Phase: PhaseDown}
		}, ""},
		"behind": {
			lags(5 * time.Minute),
			"n4, the standby: it is 5000 entries behind the leader, and has made no progress",
		},
		"the learner has never started": {func(v *View) { v.Cluster.Members[3].Name = "" }, ""},
		"hardly":                        {lags(time.Minute), ""},
		"unhealthy": {
			reportsUnhealthy(3 * time.Minute), "n4, the standby: it has been SLOW for 3m by its own report",
		},
	} {
		v := lostStandby()
		c.change(&v)
		text, reported := standbyLost(v)
		if reported != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q", name, text)
		}
		if d := Decide(v); c.want != "" && d.Step.Kind == StepNone && !hasCode(d.Reasons, StandbyLost) {
			t.Errorf("the reasons of a voter with nothing to do are %+v", d.Reasons)
		}
	}
}

func TestAStandbyIsLostForAsLongAsTheFirstOfItsProblems(t *testing.T) {
	t.Parallel()
	behind := func(v *View) {
		reportsUnhealthy(0)(v)
		m := &v.Cluster.Members[3]
		m.Lag, m.StalledFor, m.BehindFor = 5000, 7*time.Minute, 8*time.Minute
	}
	for name, c := range map[string]struct {
		change func(v *View)
		since  time.Duration
		why    string
	}{
		"no voter's host reaches it": {func(*View) {}, 6 * time.Minute, "no quorumd on its host is in charge of it"},
		"it has never started":       {func(v *View) { v.Cluster.Members[3].Name = "" }, 0, ""},
		"it is a voter":              {func(v *View) { v.Cluster.Members[3].Learner = false }, 0, ""},
		"operators manage it": {func(v *View) {
			reportsUnhealthy(time.Hour)(v)
			v.Hosts[4].Manage = false
		}, 0, ""},
		"it has just reported that it is unhealthy": {reportsUnhealthy(1), 1, "it has been SLOW for"},
		"it is unhealthy and behind": {func(v *View) {
			behind(v)
			v.Hosts[4].UnhealthySince.For = time.Minute
		}, time.Minute, "it has been SLOW for 1m by its own report, and could not replace a voter"},
		"it is behind, and has only just become unhealthy": {behind, 7 * time.Minute, "it is 5000 entries behind"},
		"it has been behind for less time than it has stalled": {func(v *View) {
			behind(v)
			v.Cluster.Members[3].BehindFor = time.Minute
		}, time.Minute, "it is 5000 entries behind the leader, and has made no progress for 1m"},
		"it has stalled for a nanosecond": {lags(1), 1, "it is 5000 entries behind"},
		"it makes progress":               {lags(0), 0, ""},
		"its lag is unknown": {func(v *View) {
			lags(time.Hour)(v)
			v.Cluster.Members[3].LagKnown = false
		}, 0, ""},
		"it stalled before it stopped": {func(v *View) {
			lags(time.Hour)(v)
			v.Cluster.Members[3].Live = false
		}, 0, ""},
	} {
		v := lostStandby()
		c.change(&v)
		since, why := v.lostFor(v.Cluster.Members[3])
		if since != c.since || !strings.HasPrefix(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: lost for %s: %s", name, since, why)
		}
	}
}
