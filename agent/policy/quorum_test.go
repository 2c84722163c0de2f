// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestHowManyVotersMayStopOrBeRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, others           int
		change, stop, dead, gone bool // results of mayChange, mayStop, mayRemove of a dead and of a live voter
	}{
		{0, 0, false, false, false, false},
		{1, 0, false, false, false, false},
		{1, 1, true, false, false, false},
		{2, 1, false, false, true, true},
		{2, 2, true, false, true, false},
		{3, 1, false, false, false, false},
		{3, 2, false, true, true, true},
		{4, 3, false, false, true, true},
		{4, 2, false, false, true, false},
		{5, 4, false, true, true, true},
		{5, 3, false, false, true, false},
		{5, 2, false, false, false, false},
	} {
		if got := mayChange(c.voters, c.others); got != c.change {
			t.Errorf("mayChange(%d, %d) is %v", c.voters, c.others, got)
		}
		if got := mayStop(c.voters, c.others); got != c.stop {
			t.Errorf("mayStop(%d, %d) is %v", c.voters, c.others, got)
		}
		if got := mayRemove(c.voters, c.others, false); got != c.dead {
			t.Errorf("mayRemove(%d, %d) of a dead voter is %v", c.voters, c.others, got)
		}
		if got := mayRemove(c.voters, c.others, true); got != c.gone {
			t.Errorf("mayRemove(%d, %d) of a live voter is %v", c.voters, c.others, got)
		}
	}
}

func TestWhyVotersTolerateNoFailure(t *testing.T) {
	t.Parallel()
	for voters, want := range map[int]string{
		1: "there is only one voter: without it there is no cluster",
		2: "two voters tolerate no failure",
		4: "4 is an even number of voters: wait until it is odd",
	} {
		if got := spareText(voters); got != want {
			t.Errorf("the text for %d voters is %q, want %q", voters, got, want)
		}
	}
}

func TestWhichLearnersAreStandbys(t *testing.T) {
	t.Parallel()
	v := spareView()
	m := voter(9, "n9")
	m.Learner = true
	v.Cluster.Members = append(v.Cluster.Members, m, Member{ID: 8, PeerURL: "http://n8", Learner: true})
	for _, c := range []struct {
		name string
		op   *Op
		want int
	}{
		{"without an operation", nil, 1},
		{"it joins by its member", &Op{Kind: KindJoin, MemberID: 9}, 0},
		{"it joins by its peer URL", &Op{Kind: KindJoin, PeerURL: peerPrefix + "n9"}, 0},
		{"another host joins", &Op{Kind: KindJoin, MemberID: 7, PeerURL: "http://n7"}, 1},
		{"it is taken down", &Op{Kind: KindCycle, MemberID: 9, PeerURL: peerPrefix + "n9"}, 1},
	} {
		v.Op = c.op
		if got := Standbys(v); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func ids(hosts []Host) (list []string) {
	for _, h := range hosts {
		list = append(list, h.ID)
	}
	return list
}

// rankView returns the view of n1. Racks a and b have a voter each, rack a also has a standby, and there are spares in
// racks a, b and c.
func rankView() View {
	v := voterView()
	v.Op, v.Lock, v.Cluster.Members = nil, Lock{Known: true}, v.Cluster.Members[:2]
	host := func(name, domain string, role Role, p99 time.Duration) Host {
		h := ready(name, role)
		h.Domain, h.P99 = domain, p99
		return h
	}
	v.Hosts = []Host{
		host("a1", "a", RoleSpare, time.Millisecond), host("b1", "b", RoleSpare, time.Millisecond),
		host("c1", "c", RoleSpare, 9*time.Millisecond), host("c2", "c", RoleSpare, 0),
		host("n1", "a", RoleVoter, time.Millisecond), host("n2", "b", RoleVoter, time.Millisecond),
		host("s1", "a", RoleStandby, time.Second),
	}
	return v
}

func TestAPlaceIsFreeOnlyIfTheClusterAnswers(t *testing.T) {
	t.Parallel()
	v := spareView()
	if !PlaceFree(v) {
		t.Error("a third voter is missing, and no place is free")
	}
	v.Cluster.Reachable = false
	if PlaceFree(v) {
		t.Error("a place is free although no voter answers")
	}
	v = spareView()
	v.Target = Target{Voters: 2}
	if PlaceFree(v) {
		t.Error("a place is free although no voter is missing")
	}
}

func TestASurplusVoterIsRemovedOnlyIfTheHealthyOthersAreAQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, down, proven, unknown int
		may                           bool
	}{
		{4, 1, 3, 0, true},
		{4, 1, 2, 1, true},
		{4, 1, 1, 2, false},
		{4, 1, 2, 0, false}, // one more voter is known to be unhealthy
		{4, 0, 3, 1, false},
		{4, 2, 2, 0, false},
		{6, 1, 3, 2, true},
		{6, 1, 2, 3, false},
		{2, 1, 1, 0, true},
		{2, 1, 0, 1, false},
	} {
		if got := mayRemoveSurplus(c.voters, c.down, c.proven, c.unknown); got != c.may {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAHostJoinsASlowVoterOnlyIfTheOthersAreAQuorumWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, live int
		may          bool
	}{
		{1, 0, false},
		{2, 1, false},
		{3, 3, false},
		{3, 2, true},
		{3, 1, false},
		{5, 4, true},
		{5, 3, false},
		{7, 6, true},
	} {
		if got := mayJoinWithSlow(c.voters, c.live); got != c.may {
			t.Errorf("next to one of %d voters, %d of them live: %v", c.voters, c.live, got)
		}
	}
}

func TestSoManyVotersMustBeLeaderlessThatTheRestIsTooFew(t *testing.T) {
	t.Parallel()
	for voters, need := range map[int]int{3: 1, 5: 2, 7: 3, 9: 4} {
		for n := range voters {
			if got := NoQuorumWithout(voters, n); got != (n >= need) {
				t.Errorf("%d of %d voters: %t", n, voters, got)
			}
		}
	}
	if NoQuorumWithout(1, 0) {
		t.Error("no voter answers")
	}
}
