// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// limited sets the limit on learners of every member, and of the deciding host as configured.
func limited(v *View, n int) {
	v.Self.MaxLearners = n
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].MaxLearners = n
	}
}

// permanentSpare returns the view of host n4, which is to become a permanent learner next to three voters.
func permanentSpare() View {
	v := spareView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n4", "n4", peerPrefix+"n4"
	v.Self.Learner = true
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts[2].Role = RoleVoter
	v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
	v.Hosts[3].Learner = true
	v.PlaceFreeFor = time.Hour
	limited(&v, 2)
	return v
}

// permanentMember returns the member of permanent learner n9.
func permanentMember() Member {
	m := voter(9, "n9")
	m.Learner, m.ThinksLearner, m.Standby, m.Permanent, m.MaxLearners, m.NotedLearner = true, true, true, true, 2, 2
	return m
}

// withPermanent adds permanent learner n9 to the cluster.
func withPermanent(v *View) {
	v.Cluster.Members = append(v.Cluster.Members, permanentMember())
	v.Hosts = append(v.Hosts, ready("n9", RoleLearner))
	v.Hosts[len(v.Hosts)-1].Learner = true
	limited(v, 2)
}

func TestAPermanentLearnerJoinsLast(t *testing.T) {
	t.Parallel()
	otherSpare := func(v *View) { v.Hosts = append(v.Hosts, ready("n5", RoleSpare)) }
	play(t, permanentSpare, []scene{
		{"nothing is missing", nil, StepTakeLock, ""},
		{"this agent holds the lock", underItsLock, StepBeginJoin, ""},
		{"no standby, and no host to become one", func(v *View) { v.Target.Standbys = 1 }, StepTakeLock, ""},
		{"no standby, and a host is ready", otherSpare, StepNone, LowerRanked},
		{"no standby is configured", func(v *View) {
			otherSpare(v)
			v.Target.Standbys = 0
		}, StepTakeLock, ""},
		{"a voter is missing", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepNone, LowerRanked},
		{"a voter is down", func(v *View) { v.Cluster.Members[2].Live = false }, StepNone, VoterNotLive},
		{"this host rests", func(v *View) { v.Resting = true }, StepNone, LowerRanked},
		{"another permanent learner is ready", func(v *View) {
			v.Hosts[0].Role, v.Hosts[0].Learner, v.Hosts[0].Waiting = RoleSpare, true, ""
			v.PlaceFreeFor = 0
		}, StepNone, LowerRanked},
		{"next to a standby", func(v *View) {
			m := voter(5, "n5")
			m.Learner, m.MaxLearners, m.Standby = true, 2, true
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepTakeLock, ""},
		{"a learner is joining", func(v *View) {
			m := voter(5, "n5")
			m.Learner, m.MaxLearners = true, 2
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, StepNone, LearnerPresent},
	})
}

// rolledBackAtOnce reports whether the join that a decision begins is rolled back in the next round.
func rolledBackAtOnce(v View, d Decision) bool {
	if d.Step.Kind != StepBeginJoin {
		return false
	}
	v.Op = &Op{
		Kind: KindJoin, Host: v.Self.ID, HostName: v.Self.Name, Target: d.Step.Target, Phase: PhaseBegun,
		Token: v.Lock.Token, PeerURL: v.Self.PeerURL, SameBoot: true,
	}
	return Decide(v).Step.Kind == StepRollBack
}

func TestAPermanentLearnerDoesNotBeginAJoinThatIsRolledBack(t *testing.T) {
	t.Parallel()
	base := func() View {
		v := unhealthyView() // n3 is to be replaced
		v.Self.Learner, v.Hosts[3].Learner = true, true
		limited(&v, 2)
		underItsLock(&v)
		return v
	}
	for name, change := range map[string]func(v *View){
		"no host is ready":         func(*View) {},
		"the limit is reached":     func(v *View) { v.Repairs = v.Limits.RepairsPerDay },
		"the record is unreadable": func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordRepairs}} },
	} {
		v := base()
		change(&v)
		d := Decide(v)
		if rolledBackAtOnce(v, d) || d.Step.Kind == StepBeginJoin {
			t.Errorf("%s: it begins %+v", name, d.Step)
		}
	}
	v := base()
	v.Limits.UnhealthyGrace = 0 // nothing is replaced
	if d := Decide(v); d.Step.Kind != StepBeginJoin || rolledBackAtOnce(v, d) {
		t.Errorf("no voter is to be replaced: %+v", d)
	}
}

func TestNoHostBeginsAJoinThatBlocksANamedHost(t *testing.T) {
	t.Parallel()
	for name, learner := range map[string]bool{"as a standby": false, "as a permanent learner": true} {
		v := namedView("n4")
		if v.Target.Standbys = 1; learner {
			v.Target.Standbys = 0
		}
		v.Hosts = append(v.Hosts, ready("n6", RoleVoter))
		vote(&v, 5) // another host joined before n5 was named
		v.Self.Learner, v.Hosts[3].Learner = learner, learner
		limited(&v, 2)
		underItsLock(&v)
		d := Decide(v)
		if d.Step.Kind == StepBeginJoin || rolledBackAtOnce(v, d) {
			t.Errorf("%s: it begins %+v", name, d.Step)
		}
		v.Retired[0].Successor = record.Successor{}
		if d := Decide(v); d.Step.Kind != StepBeginJoin {
			t.Errorf("%s, no host is named: %+v", name, d)
		}
	}
}

func TestAPermanentLearnerNeedsEqualLimits(t *testing.T) {
	t.Parallel()
	play(t, permanentSpare, []scene{
		{"etcd's default", func(v *View) { limited(v, 1) }, StepNone, LearnerLimit},
		{"too small here", func(v *View) { v.Self.MaxLearners = 1 }, StepNone, LearnerLimit},
		{"too small on a member", func(v *View) { v.Cluster.Members[1].MaxLearners = 1 }, StepNone, LearnerLimit},
		{"larger on a member", func(v *View) { v.Cluster.Members[1].MaxLearners = 3 }, StepNone, LearnerLimit},
		{"unknown on a member", func(v *View) { v.Cluster.Members[1].MaxLearners = 0 }, StepNone, LearnerLimit},
		{"not a number here", func(v *View) { v.Self.MaxLearners = 0 }, StepNone, LearnerLimit},
		{"larger everywhere", func(v *View) { limited(v, 4) }, StepTakeLock, ""},
		{"there are two standbys, and the limit is 2", twoStandbys(2), StepNone, LearnerLimit},
		{"there are two standbys, and the limit is 3", twoStandbys(3), StepTakeLock, ""},
		{"a second permanent learner, with a limit of 2", withPermanent, StepNone, LearnerLimit},
		{"a second permanent learner, with a limit of 3", func(v *View) {
			withPermanent(v)
			limited(v, 3)
		}, StepTakeLock, ""},
		{"this host runs etcd 3.5", func(v *View) { v.Self.Etcd = Version{3, 5, 35} }, StepNone, VersionIncompatible},
		{"every host runs etcd 3.5", func(v *View) {
			v.Self.Etcd = Version{3, 5, 35}
			eachVersion(v, Version{3, 5, 35})
		}, StepNone, LearnerVersion},
		{"the members run etcd 3.5", func(v *View) { eachVersion(v, Version{3, 5, 35}) }, StepNone, LearnerVersion},
		{"3.7", func(v *View) {
			v.Self.Etcd = Version{3, 7, 3}
			eachVersion(v, Version{3, 7, 3})
		}, StepTakeLock, ""},
	})
}

// twoStandbys adds two standbys and sets the limit.
func twoStandbys(limit int) func(v *View) {
	return func(v *View) {
		withStandby(v, 5, "n5")
		withStandby(v, 6, "n6")
		limited(v, limit)
	}
}

func TestNoHostWaitsForAHostThatDoesNotBecomeTheStandby(t *testing.T) {
	t.Parallel()
	v := permanentSpare()
	v.Target.Standbys = 1
	v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
	if text, waits := learnerLast(v); !waits || !strings.Contains(text, "n5 is ready to become the standby") {
		t.Errorf("n5 becomes the standby: %q, %t", text, waits)
	}
	if text, differ := standbysDiffer(v); differ {
		t.Error(text)
	}
	v.Hosts[4].NoStandbys = true
	if text, waits := learnerLast(v); waits {
		t.Errorf("n5 does not become the standby: %s", text)
	}
	const want = "cluster.standbys is 0 on n5, but 1 on n1, n2, n3 and 1 more: only a host where it is 1 becomes " +
		"the standby"
	if text, differ := standbysDiffer(v); !differ || text != want {
		t.Errorf("%q, %t", text, differ)
	}
	v.Hosts = append(v.Hosts, ready("n6", RoleSpare)) // n6 becomes the standby, although n5 ranks first
	v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.Learner = "n6", "n6", peerPrefix+"n6", false
	v.PlaceFreeFor = 0
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Errorf("n6: %+v", d)
	}
}

func eachVersion(v *View, to Version) {
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Version = to
	}
}

func TestOthersJoinNextToAPermanentLearner(t *testing.T) {
	t.Parallel()
	base := func() View {
		v := spareView()
		withPermanent(&v)
		return v
	}
	play(t, base, []scene{
		{"as a voter", nil, StepTakeLock, ""},
		{"as a standby", func(v *View) {
			v.Cluster.Members = append([]Member{voter(4, "n4")}, v.Cluster.Members...)
			v.Cluster.Members[0].Leader = false
			limited(v, 2)
		}, StepTakeLock, ""},
		{"the limit is too small", func(v *View) { limited(v, 1) }, StepNone, LearnerLimit},
		{"the limits differ", func(v *View) { v.Cluster.Members[0].MaxLearners = 3 }, StepNone, LearnerLimit},
		{"a limit is unknown", func(v *View) { v.Cluster.Members[2].MaxLearners = 0 }, StepNone, LearnerLimit},
		{"a join has begun, and a limit is unknown", func(v *View) {
			underItsLock(v)
			v.Op = &Op{
				Kind: KindJoin, Host: "n3", HostName: "n3", Target: RoleVoter, Phase: PhaseBegun, Token: 7,
				SameBoot: true, PeerURL: peerPrefix + "n3",
			}
			v.Cluster.Members[0].MaxLearners = 1
		}, StepNone, LearnerLimit},
	})
}

// permanentView returns the view of permanent learner n9 itself.
func permanentView() View {
	v := spareView()
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts[2].Role = RoleVoter
	withPermanent(&v)
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n9", "n9", peerPrefix+"n9"
	v.Self.Learner, v.Self.MemberID, v.Self.StandbyID = true, 9, 9
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Hour}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 9, Free: 100 << 30, FreeKnown: true}
	return v
}

func TestAPermanentLearnerStaysOne(t *testing.T) {
	t.Parallel()
	missing := func(v *View) { v.Cluster.Members = slices.Delete(v.Cluster.Members, 2, 3) }
	joining := func(kind string, target Role, replaces uint64) func(v *View) {
		return func(v *View) {
			missing(v)
			underItsLock(v)
			v.Cluster.Members[2].Standby = false
			v.Op = &Op{
				Kind: kind, Host: "n9", HostName: "n9", Target: target, Phase: PhaseStarted, Token: 7, MemberID: 9,
				PeerURL: peerPrefix + "n9", SameBoot: true, Elapsed: 2 * time.Minute, Replaces: replaces,
			}
		}
	}
	play(t, permanentView, []scene{
		{"at rest", nil, StepNone, Idle},
		{"a voter is missing", missing, StepNone, Idle},
		{"a voter is dead", func(v *View) {
			v.Limits.DeadGrace, v.Limits.RepairsPerDay = time.Minute, 2
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, time.Hour
			v.Cluster.Members[2].AgentGoneFor = time.Hour
		}, StepNone, VoterNotLive},
		{"its learner has caught up", joining(KindJoin, RoleLearner, 0), StepEndOp, ""},
		{"a join as voter began before", joining(KindJoin, RoleVoter, 0), StepRollBack, ""},
		{"a replacement began before", joining(KindReplace, RoleVoter, 3), StepRollBack, ""},
		{"a smaller cluster has no standbys", func(v *View) {
			v.Target = Target{Voters: 3, Resized: true, ResizedFor: time.Hour, Configured: 5}
		}, StepNone, Idle},
		{"its host is retired", func(v *View) {
			underItsLock(v)
			v.Retired = []Retired{{Host: "n9", PeerURL: peerPrefix + "n9", MemberID: 9, By: "root"}}
		}, StepBeginLeave, ""},
	})
	v := permanentView()
	if role := roleOf(v); role != RoleLearner {
		t.Errorf("its role is %s", role)
	}
	if queue := JoinQueue(v); slices.Contains(queue, "n9") {
		t.Errorf("the join queue is %v", queue)
	}
	if n := Standbys(v); n != 0 {
		t.Errorf("%d standbys", n)
	}
}

func TestALostPermanentLearnerStays(t *testing.T) {
	t.Parallel()
	permanent := func() View {
		v := lostStandby()
		v.Cluster.Members[3].Permanent = true
		return v
	}
	play(t, permanent, []scene{
		{"lost", nil, StepNone, Idle},
		{"this agent holds the lock", underItsLock, StepReleaseLock, ""},
		{"behind", lags(time.Hour), StepNone, Idle},
		{"unhealthy", reportsUnhealthy(time.Hour), StepNone, Idle},
		{"its removal was begun", func(v *View) {
			underItsLock(v)
			v.Op = &Op{
				Kind: KindJoin, Host: "n4", HostName: "n4", Phase: PhaseRollback, Token: 7, MemberID: 4,
				Outcome: StandbyLost, OrphanedFor: time.Hour,
			}
		}, StepEndOp, ""},
	})
}

func TestADeadVoterIsReplacedNextToAPermanentLearner(t *testing.T) {
	t.Parallel()
	base := func() View {
		v := deadView()
		withPermanent(&v)
		v.Cluster.Members[2].MaxLearners = 0 // its host no longer has a record
		v.Hosts[len(v.Hosts)-1].Sees = v.Hosts[0].Sees
		return v
	}
	play(t, base, []scene{
		{"by a spare", nil, StepTakeLock, ""},
		{"etcd would refuse its learner", func(v *View) { limited(v, 1) }, StepNone, LearnerLimit},
		{"a live voter's limit is not known", func(v *View) {
			v.Cluster.Members[1].MaxLearners = 0
		}, StepNone, LearnerLimit},
		{"this host is to be a permanent learner", func(v *View) { v.Self.Learner = true }, StepNone, VoterNotLive},
	})
}

func TestTheLimitOfAVoterThatStaysMustBeKnown(t *testing.T) {
	t.Parallel()
	v := deadView()
	withPermanent(&v)
	dead := &v.Cluster.Members[2]
	if dead.MaxLearners = 0; !v.leavesFirst(*dead) {
		t.Error("the dead voter does not leave first")
	}
	if text, holds := learnerLimit(v); holds {
		t.Error(text)
	}
	v.Cluster.Members[1].Live = false // the replacement is added while this voter is still a member
	if _, holds := learnerLimit(v); v.leavesFirst(*dead) || !holds {
		t.Error("a dead voter leaves first although another voter is down")
	}
}

func TestAVoterDoesNotBecomeALearner(t *testing.T) {
	t.Parallel()
	v := permanentView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.MemberID, v.Self.StandbyID = "n3", "n3", peerPrefix+"n3", 3, 0
	v.Data.MemberID = 3
	d := Decide(v)
	if d.Step.Kind != StepNone || d.Role != RoleVoter || !hasCode(d.Reasons, LearnerOnly) {
		t.Errorf("decided %+v", d)
	}
}

func TestAPermanentLearnerIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(m *Member)
		want   bool
	}{
		"known":               {func(*Member) {}, false},
		"new":                 {func(m *Member) { m.NotedLearner = 0 }, true},
		"a new limit":         {func(m *Member) { m.NotedLearner = 3 }, true},
		"limit unknown":       {func(m *Member) { m.MaxLearners = 0 }, true},
		"still unknown":       {func(m *Member) { m.MaxLearners, m.NotedLearner = 0, -1 }, false},
		"no longer permanent": {func(m *Member) { m.Permanent = false }, true},
		"an ordinary one":     {func(m *Member) { m.Permanent, m.NotedLearner = false, 0 }, false},
	} {
		v := permanentView()
		v.Cluster.Listed, v.Cluster.Fresh = true, true
		c.change(&v.Cluster.Members[3])
		if got := Decide(v).Notes.Self.Learners; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAMaintenanceDoesNotWaitForAPermanentLearnerThatIsBehind(t *testing.T) {
	t.Parallel()
	v := spareView()
	withPermanent(&v)
	v.Cluster.Members[2].Lag = 10000
	if text, holds := learnerUnsettled(v); holds {
		t.Error(text)
	}
	v.Cluster.Members[2].Permanent = false
	if _, holds := learnerUnsettled(v); !holds {
		t.Error("a standby that is behind does not matter")
	}
}

func TestTheQueueNamesPermanentLearnersWhenTheTargetIsMet(t *testing.T) {
	t.Parallel()
	v := permanentSpare()
	v.Self.ID, v.Self.Learner = "n1", false
	v.Target.Standbys = 0
	if got := Next(v, QueueLength); !slices.Equal(got, []string{"n4"}) {
		t.Errorf("the queue is %v", got)
	}
	v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
	if got := Next(v, QueueLength); !slices.Equal(got, []string{"n4", "n5"}) {
		t.Errorf("the queue is %v", got)
	}
	v.Target.Standbys = 1
	if got := Next(v, QueueLength); !slices.Equal(got, []string{"n5"}) {
		t.Errorf("without a standby the queue is %v", got)
	}
	v.Cluster.Members = v.Cluster.Members[:2]
	if got := Next(v, QueueLength); !slices.Equal(got, []string{"n5"}) {
		t.Errorf("without a voter the queue is %v", got)
	}
}
