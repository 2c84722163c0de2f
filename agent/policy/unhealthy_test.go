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

// unhealthyView returns the view of spare n4 12 min after the disk of voter n3 became slow, in a cluster of three
// voters led by n1.
func unhealthyView() View {
	v := deadView()
	v.Cluster.ID = clusterID
	v.Target.Standbys, v.Limits.DeadGrace, v.Limits.UnhealthyGrace = 0, 0, 10*time.Minute
	v.Cluster.Members[2] = voter(3, "n3")
	h := ready("n3", RoleVoter)
	h.Health, h.Defective = health.Slow, true
	h.UnhealthySince = UnhealthySince{For: 12 * time.Minute}
	v.Cluster.Members[2].Fsyncs = Fsyncs{
		Known: true, Age: 5 * time.Second, P99: 256 * time.Millisecond, SlowFor: 10 * time.Minute,
	}
	v.Hosts = []Host{ready("n1", RoleVoter), ready("n2", RoleVoter), h, ready("n4", RoleSpare)}
	v.Hosts[3].Own = true
	return v
}

// leaderSeesUnhealthy returns the view of the leader's host of the same cluster as unhealthyView.
func leaderSeesUnhealthy() View {
	v := unhealthyView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
	v.Hosts[3].Own, v.Hosts[0].Own = false, true
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
	v.Unit.State, v.Self.MemberID = UnitActive, 1
	return v
}

// silentTo changes a view: n3's disk failed two minutes ago, n3 has been silent for a minute, and this host's probe of
// n3's ports returns the given state.
func silentTo(state record.PortState) func(v *View) {
	return func(v *View) {
		v.Hosts[2].Health = health.Failed
		v.Hosts[2].UnhealthySince = UnhealthySince{For: time.Hour, HangsFor: 2 * time.Minute}
		m := &v.Cluster.Members[2]
		m.Live, m.DownFor, m.Fsyncs = false, time.Minute, Fsyncs{}
		v.Hosts[3].Sees = []record.Reachability{{MemberID: 3, Peer: state, Client: state}}
	}
}

func TestAVoterIsUnhealthyByItsOwnReportAndEvidenceForLongEnough(t *testing.T) {
	t.Parallel()
	hangs := func(d time.Duration) func(v *View) {
		return func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For, v.Hosts[2].UnhealthySince.HangsFor = health.Stalled, d, d
		}
	}
	for name, c := range map[string]struct {
		change    func(v *View)
		unhealthy bool
		why       string // why the voter does not count as unhealthy
	}{
		"it is slow and defective for the grace period": {func(*View) {}, true, ""},
		"it has not been slow for long enough": {
			func(v *View) { v.Hosts[2].UnhealthySince.For = 9 * time.Minute }, false,
			"",
		},
		"it is only slow": {func(v *View) { v.Hosts[2].Defective = false }, false, ""},
		"it is only slow for six times the grace period": {func(v *View) {
			v.Hosts[2].Defective, v.Hosts[2].UnhealthySince.For = false, time.Hour+healthyReportDelay
		}, true, ""},
		"it is only slow, for almost six times the grace period": {func(v *View) {
			v.Hosts[2].Defective, v.Hosts[2].UnhealthySince.For = false, time.Hour+healthyReportDelay-time.Second
		}, false, ""},
		"it is only slow, and does not follow the leader": {func(v *View) {
			v.Hosts[2].Defective, v.Cluster.Members[2].BehindFor = false, 30*time.Second
		}, true, ""},
		"it is only slow, and did not follow the leader for a moment": {func(v *View) {
			v.Hosts[2].Defective, v.Cluster.Members[2].BehindFor = false, 29*time.Second
		}, false, ""},
		"it is only slow, and answers no read": {func(v *View) {
			v.Hosts[2].Defective, v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, false, time.Minute
		}, true, ""},
		"its disk was once slow for 10 minutes and recovered": {
			func(v *View) { v.Hosts[2].HealsAfter = 10 * time.Minute }, false, "",
		},
		"its disk was once slow for 6 minutes and recovered": {
			func(v *View) { v.Hosts[2].HealsAfter = 6 * time.Minute }, true, "",
		},
		"its disk hangs for a minute":           {hangs(time.Minute), true, ""},
		"its disk hangs for less than a minute": {hangs(59 * time.Second), false, ""},
		"it was slow before it hung": {
			func(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince.HangsFor = health.Stalled, 1 }, true, "",
		},
		"it has just failed": {func(v *View) {
			hangs(1)(v)
			v.Hosts[2].Health = health.Failed
		}, false, ""},
		"it has been FAILED for a minute": {func(v *View) {
			hangs(time.Minute)(v)
			v.Hosts[2].Health = health.Failed
		}, true, ""},
		"it is FAILED and answers no read":                                 {silentTo(record.PortAnswers), true, ""},
		"it is FAILED, and neither this host nor any other connects to it": {silentTo(""), true, ""},
		"it is FAILED, and only this host cannot connect to it": {
			func(v *View) {
				silentTo(record.PortUnreachable)(v)
				v.Hosts[0].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers}}
			}, false, "only its own host record",
		},
		"it is FAILED, and no host connects to it": {
			func(v *View) {
				silentTo(record.PortUnreachable)(v)
				v.Hosts[0].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortUnreachable}}
			}, true, "",
		},
		"its writes are fast again": {
			func(v *View) { v.Hosts[2].UnhealthySince.For, v.Hosts[2].Recovers = 0, true }, false, "are fast again",
		},
		"its etcd's metrics were not read": {
			func(v *View) { v.Cluster.Members[2].Fsyncs = Fsyncs{} }, false, "only its own host record",
		},
		"no host replaces unhealthy voters": {func(v *View) { v.Limits.UnhealthyGrace = 0 }, false, ""},
		"the evidence is too recent": {
			func(v *View) { v.Cluster.Members[2].Fsyncs.SlowFor = 29 * time.Second }, false, "",
		},
		"only its own health state reports it": {
			func(v *View) { v.Cluster.Members[2].Fsyncs.P99, v.Cluster.Members[2].Fsyncs.SlowFor = 0, 0 },
			false, "only its own host record",
		},
		"only its etcd's metrics report it": {
			func(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For = health.OK, 0 },
			false, "it is OK by its own report",
		},
		"it is only WARM": {
			func(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For = health.Warm, 0 }, false, "it is WARM",
		},
		"its health is unknown": {
			func(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince.For = health.Unknown, 0 }, false,
			"it is UNKNOWN",
		},
		"it is behind the leader": {func(v *View) {
			v.Cluster.Members[2].Fsyncs.SlowFor, v.Cluster.Members[2].BehindFor, v.Cluster.Members[2].Lag = 0,
				time.Minute, 900
		}, true, ""},
		"it hangs, and answers no read": {func(v *View) {
			hangs(time.Minute)(v)
			v.Cluster.Members[2].Fsyncs.SlowFor, v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = 0,
				false, time.Minute
		}, true, ""},
		"it served for an hour after its disk had failed, and is silent for a minute": {func(v *View) {
			silentTo(record.PortSilent)(v)
			v.Hosts[2].UnhealthySince.HangsFor, v.Cluster.Members[2].ServedFor = time.Hour, time.Hour
		}, false, ""},
		"it served for an hour after its disk had failed, and is silent for the grace period": {func(v *View) {
			silentTo(record.PortSilent)(v)
			v.Hosts[2].UnhealthySince.HangsFor, v.Cluster.Members[2].ServedFor = time.Hour, time.Hour
			v.Cluster.Members[2].DownFor = v.Limits.UnhealthyGrace
		}, true, ""},
		"its disk failed an hour ago, it answered only for a moment since, and is silent for a minute": {func(v *View) {
			silentTo(record.PortSilent)(v)
			v.Hosts[2].UnhealthySince.HangsFor, v.Cluster.Members[2].ServedFor = time.Hour, 10*time.Second
		}, true, ""},
		"it is slow, and does not answer this host": {func(v *View) {
			v.Cluster.Members[2].Fsyncs.SlowFor, v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = 0,
				false, time.Minute
		}, false, "only its own host record"},
		"its finding does not gate joins": {
			func(v *View) { v.Hosts[2].Ungated = health.Joins }, false, "blocks joins",
		},
		"its agent only observes": {
			func(v *View) { v.Hosts[2].Manage = false }, false, "only observes",
		},
		"it is in its operation": {func(v *View) { v.Hosts[2].InOperation = true }, false, "in an operation"},
		"it is taken down": {func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n3", MemberID: 3, Phase: PhaseDown}
		}, false, "in an operation"},
		"it has no agent": {
			func(v *View) { v.Hosts = append(v.Hosts[:2:2], v.Hosts[3]) }, false, "no quorumd",
		},
		"the cluster was observed earlier": {
			func(v *View) { v.Cluster.Fresh = false }, false, "not observed in this round",
		},
		"the records were read earlier": {func(v *View) { v.Resting = true }, false, "not observed in this round"},
		"it is a learner": {
			func(v *View) { v.Cluster.Members[2].Learner = true }, false, "it is not a voter",
		},
		"a minority decides": {
			func(v *View) { v.Cluster.Reachable = false }, false, "not observed in this round",
		},
	} {
		v := unhealthyView()
		c.change(&v)
		m, _ := v.memberByID(3)
		_, why := v.unhealthyFor(m)
		if v.isUnhealthy(m) != c.unhealthy || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: unhealthy is %v, why %q, want %q", name, v.isUnhealthy(m), why, c.why)
		}
	}
}

func TestAnUnhealthyVoterIsNamedWithTheEvidenceAndItsReplacement(t *testing.T) {
	t.Parallel()
	const says = "n3 has been SLOW for 12m by its own report, and 99 of 100 WAL fsyncs of its etcd take up " +
		"to 256ms; "
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"repair is off": {
			func(v *View) { v.Limits.UnhealthyGrace = 0 },
			says + "no host replaces it, because repair.unhealthy is off",
		},
		"it waits for the grace period": {
			func(v *View) { v.Limits.UnhealthyGrace = 12 * time.Minute }, says + "another host replaces it in 1m30s",
		},
		"the grace period is over": {func(*View) {}, says + "another host is about to replace it"},
		"no host can replace it": {
			func(v *View) { v.Hosts = v.Hosts[:3] },
			says + "another host may replace it, but: there is no standby and no spare",
		},
		"no host can replace it, and the grace period is not over": {
			func(v *View) { v.Hosts, v.Limits.UnhealthyGrace = v.Hosts[:3], 12*time.Minute },
			says + "another host may replace it in 1m30s, but: there is no standby and no spare",
		},
		"a spare waits because a voter does not answer": {
			func(v *View) { v.Hosts[3].Waiting = VoterNotLive }, says + "another host is about to replace it",
		},
		"another member is unhealthy": {
			func(v *View) { v.Hosts[1].Health = health.Slow },
			says + "another host may replace it, but: 2 voters look unhealthy or dead together, and are not all " +
				"the voters of one failure domain: n2 is SLOW, n3 is SLOW",
		},
		"the daily limit is reached": {
			func(v *View) { v.Repairs, v.Limits.RepairsPerDay = 2, 2 },
			says + "another host may replace it, but: 2 voters were replaced in the last 24 hours (limit: 2)",
		},
		"the cluster is paused": {
			func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} },
			says + "another host may replace it, but: the cluster is paused by root",
		},
		"a record cannot be read": {
			func(v *View) { v.Unreadable = []Unreadable{{RecordPause, "/quorumd/c/pause", "bad JSON"}} },
			says + "another host may replace it, but: a record in etcd cannot be read",
		},
		"another operation is in flight": {
			func(v *View) { v.Op = &Op{Kind: KindJoin, Host: "n5", HostName: "n5"} },
			says + "another host may replace it, but: the join of n5 must end first",
		},
		"its replacement is in progress": {
			func(v *View) { v.Op = &Op{Kind: KindReplace, Host: "n4", HostName: "n4", Replaces: 3} },
			says + "n4 is replacing it",
		},
	} {
		v := leaderSeesUnhealthy()
		c.change(&v)
		reported := ""
		for _, r := range Decide(v).Reasons {
			if r.Code == VoterUnhealthy {
				reported = r.Text
			}
		}
		if reported != c.text {
			t.Errorf("%s: %q\nwant %q", name, reported, c.text)
		}
	}
	if d := Decide(leaderSeesUnhealthy()); d.Reasons[0].Code != VoterUnhealthy {
		t.Errorf("at rest, the unhealthy voter is not the first reason: %v", d.Reasons)
	}
}

func TestAVoterUnhealthyOnlyByItsOwnReportIsNamedWithTheMissingEvidence(t *testing.T) {
	t.Parallel()
	const (
		shown  = "5s ago, its etcd's metrics showed a minute without a slow fsync"
		before = "; no host replaces it unless its etcd counts a slow fsync in every minute, or it is more than 500 " +
			"entries behind the leader"
		says = "n3 has been SLOW for 12m by its own host record alone: " + shown + before
	)
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"only its own health state reports it": {func(*View) {}, says},
		"it has just failed": {func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince = health.Failed,
				UnhealthySince{For: time.Second, HangsFor: time.Second}
		}, ""},
		"it has been FAILED for a minute": {func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince = health.Failed,
				UnhealthySince{For: time.Minute, HangsFor: time.Minute}
		}, strings.Replace(says, "SLOW for 12m", "FAILED for 1m", 1) + ", or it answers no linearizable read"},
		"its etcd does not answer": {
			func(v *View) { v.Cluster.Members[2].Fsyncs = Fsyncs{Absent: "etcd answers 403"} },
			strings.Replace(says, shown, "its etcd's metrics cannot be read: etcd answers 403", 1),
		},
		"its etcd's metrics were not read": {
			func(v *View) { v.Cluster.Members[2].Fsyncs = Fsyncs{} },
			strings.Replace(says, shown, "its etcd's metrics have not been read yet", 1),
		},
		"its disk hangs, and it answers": {
			func(v *View) { v.Hosts[2].Health, v.Hosts[2].UnhealthySince.HangsFor = health.Stalled, time.Minute },
			strings.Replace(says, "SLOW", "STALLED", 1) + ", or it answers no linearizable read",
		},
		"another host is replacing it": {
			func(v *View) {
				v.Op = &Op{Kind: KindReplace, Host: "n4", HostName: "n4", Target: RoleVoter, Replaces: 3}
			},
			"",
		},
		"it has not been slow for long enough": {func(v *View) { v.Hosts[2].UnhealthySince.For = 9 * time.Minute }, ""},
		"its etcd's metrics confirm it": {
			func(v *View) { v.Cluster.Members[2].Fsyncs.SlowFor = time.Second }, "",
		},
		"no host replaces unhealthy voters": {func(v *View) { v.Limits.UnhealthyGrace = 0 }, ""},
		"it is healthy": {func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince = health.OK, UnhealthySince{}
		}, ""},
		"the endpoints belong to a different cluster": {func(v *View) { v.Cluster.ExpectedID = v.Cluster.ID + 1 }, ""},
		"no quorum is observed":                       {func(v *View) { v.Cluster.Reachable = false }, ""},
		"its finding does not gate joins":             {func(v *View) { v.Hosts[2].Ungated = health.Joins }, ""},
	} {
		v := leaderSeesUnhealthy()
		v.Limits.PromoteLag = 500
		v.Cluster.Members[2].Fsyncs.SlowFor = 0
		c.change(&v)
		reported := ""
		for _, r := range Decide(v).Reasons {
			if r.Code == VoterSuspect {
				reported = r.Text
			}
		}
		if reported != c.text {
			t.Errorf("%s: %q\nwant %q", name, reported, c.text)
		}
	}
}

func TestAPauseOfAnEtcdWhoseDiskFailedLongAgoDoesNotChangeWhoGoesFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served time.Duration
		first  bool // the replacing host joins before the voter is removed
	}{
		"it served since its disk failed":  {time.Hour, true},
		"it has answered only for moments": {time.Second, false},
	} {
		v := unhealthyView()
		slow := v.Cluster.Members[2].Fsyncs
		silentTo(record.PortSilent)(&v)
		v.Hosts[2].UnhealthySince.HangsFor = time.Hour
		m := &v.Cluster.Members[2]
		m.Fsyncs, m.ServedFor = slow, c.served
		v.Op = &Op{Kind: KindReplace, Host: "n4", HostName: "n4", Phase: PhaseBegun, Replaces: 3, Target: RoleVoter}
		if !v.isUnhealthy(*m) || v.joinsFirst(*m) != c.first {
			t.Errorf("%s: unhealthy is %v, joins first is %v", name, v.isUnhealthy(*m), v.joinsFirst(*m))
		}
	}
}
