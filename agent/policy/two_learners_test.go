// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func withStandby(v *View, id uint64, name string) {
	m := voter(id, name)
	m.Leader, m.Learner, m.ThinksLearner, m.Standby, m.MaxLearners = false, true, true, true, 2
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Hosts = append(v.Hosts, ready(name, RoleStandby))
}

// seenBy changes a view to that of the host of the given member. The host's etcd runs.
func seenBy(v View, id uint64, name string) View {
	v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.MemberID, v.Self.StandbyID = name, name, peerPrefix+name, id, id
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Hour}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: id, Free: 100 << 30, FreeKnown: true}
	for i := range v.Hosts {
		v.Hosts[i].Own = v.Hosts[i].Name == name
	}
	return v
}

// deadWithoutSpare returns the view of a cluster of three voters, one of them dead, and no spare.
func deadWithoutSpare() View {
	v := deadView()
	v.Hosts = v.Hosts[:2]
	v.PlaceFreeFor = time.Hour
	return v
}

func TestOneOfTwoStandbysReplacesADeadVoter(t *testing.T) {
	t.Parallel()
	v := deadWithoutSpare()
	withStandby(&v, 4, "n4")
	withStandby(&v, 9, "n9") // a permanent learner until host.role was removed
	if d := Decide(seenBy(v, 4, "n4")); d.Step.Kind != StepTakeLock {
		t.Errorf("n4: %+v", d)
	}
	if d := Decide(seenBy(v, 9, "n9")); d.Step.Kind != StepNone || d.Reasons[0].Code != LowerRanked {
		t.Errorf("n9: %+v", d)
	}
	v.Cluster.Members[4].Standby = false // n9 is still joining
	if d := Decide(seenBy(v, 4, "n4")); d.Step.Kind != StepNone || d.Reasons[0].Code != LearnerPresent {
		t.Errorf("next to a learner that joins: %+v", d)
	}
}

func TestEitherOfTwoStandbysMayBeNamedToReplaceAVoter(t *testing.T) {
	t.Parallel()
	v := namedView("n1")
	v.Retired, v.Hosts = nil, v.Hosts[:3]
	withStandby(&v, 4, "n4")
	withStandby(&v, 9, "n9")
	for _, name := range []string{"n4", "n9"} {
		if r := AgainstRetire(v, "n2", name); r != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// catchingUp returns the view of n9 in a cluster with a dead voter and a standby, while n9 joins as a permanent learner
// over a slow link.
func catchingUp() View {
	v := deadWithoutSpare()
	withStandby(&v, 4, "n4")
	m := permanentMember()
	m.Standby, m.Lag, m.LagKnown, m.SteadyFor = false, 50_000_000, true, 0
	v.Cluster.Members = append(v.Cluster.Members, m)
	h := ready("n9", RoleJoining)
	h.Learner, h.InOperation = true, true
	v.Hosts = append(v.Hosts, h)
	limited(&v, 2)
	v.Limits.LearnerMax = 12 * time.Hour
	v.Op = &Op{
		Kind: KindJoin, Host: "n9", HostName: "n9", Target: RoleLearner, Phase: PhaseStarted, Token: 7, MemberID: 9,
		PeerURL: peerPrefix + "n9", SameBoot: true, Elapsed: 5 * time.Hour,
	}
	v = seenBy(v, 9, "n9")
	v.Self.Learner, v.Self.StandbyID = true, 0
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7, Holder: "n9"}
	return v
}

func TestTheJoinOfAPermanentLearnerMakesWayForTheReplacementOfADeadVoter(t *testing.T) {
	t.Parallel()
	if d := Decide(catchingUp()); d.Step.Kind != StepEndOp || d.Step.Outcome != Joined {
		t.Errorf("it serves and catches up: %+v", d)
	}
	v := catchingUp()
	v.Cluster.Members[4].Name = "" // n9's etcd has not served yet
	if d := Decide(v); d.Step.Kind != StepRollBack || d.Step.Outcome != VoterNotLive {
		t.Errorf("it has not served yet: %+v", d)
	}
	v = catchingUp()
	v.Cluster.Members[2] = voter(3, "n3")
	v.Cluster.Members[2].Leader = false
	if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != LearnerBehind {
		t.Errorf("no voter is dead: %+v", d)
	}
	v = catchingUp()
	v.Limits.DeadGrace = 0 // nothing is replaced automatically
	if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != LearnerBehind {
		t.Errorf("replacement is off: %+v", d)
	}
}

func TestThePlanOfRetiringAPermanentLearnerHasItsRemoval(t *testing.T) {
	t.Parallel()
	v := voterView()
	withPermanent(&v)
	if got := RetirePlan(v, "n9", successorOf("")); len(got) != 2 || !got[0].Final {
		t.Errorf("%+v", got)
	}
}
