// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestHowManyVotersMayStopOrGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, others           int
		change, stop, dead, gone bool // with all others but one live where fewer are
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
			t.Errorf("mayRemove(%d, %d) of a dead one is %v", c.voters, c.others, got)
		}
		if got := mayRemove(c.voters, c.others, true); got != c.gone {
			t.Errorf("mayRemove(%d, %d) of a live one is %v", c.voters, c.others, got)
		}
	}
}

func TestWhyVotersCanSpareNone(t *testing.T) {
	t.Parallel()
	for voters, want := range map[int]string{
		1: "it is the only voter: without it there is no cluster",
		2: "two voters can spare none",
		4: "4 voters are an even number, which is not kept: wait until it is odd",
	} {
		if got := spareText(voters); got != want {
			t.Errorf("of %d it is said %q, want %q", voters, got, want)
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
		{"another joins", &Op{Kind: KindJoin, MemberID: 7, PeerURL: "http://n7"}, 1},
		{"it is taken down", &Op{Kind: KindCycle, MemberID: 9, PeerURL: peerPrefix + "n9"}, 1},
	} {
		v.Op = c.op
		if got := Standbys(v); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestWhichVersionsAreSafeAndWhichAreOlder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"2.3.8": false, "3.4.99": false, "3.5.30": false, "3.5.31": true, "3.6.11": false, "3.6.12": true,
		"3.7.0": true, "3.8.0": true, "4.0.0": true, "2.9.99": false, "3.1.0": false,
	} {
		if got := ParseVersion(text).Safe(); got != want {
			t.Errorf("%s is safe: %v", text, got)
		}
	}
	order := []string{"2.9.9", "3.4.99", "3.5.3", "3.5.31", "3.6.0", "4.0.0"}
	for i, a := range order {
		for k, b := range order {
			if got := ParseVersion(a).Less(ParseVersion(b)); got != (i < k) {
				t.Errorf("%s is older than %s: %v", a, b, got)
			}
		}
	}
	for _, c := range []struct {
		own, lowest string
		want        bool
	}{
		{"3.6.1", "3.6.9", true},
		{"3.6.1", "3.5.9", true},
		{"3.6.1", "3.4.9", false},
		{"3.5.1", "3.6.9", false},
		{"4.0.0", "3.0.0", false},
	} {
		if got := ParseVersion(c.own).mayJoin(ParseVersion(c.lowest)); got != c.want {
			t.Errorf("%s may join %s: %v", c.own, c.lowest, got)
		}
	}
	for text, want := range map[string]string{"3.6.16": "3.6.16", "": "unknown", "not decided": "unknown"} {
		if got := ParseVersion(text).String(); got != want {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestWhatAVerdictPermits(t *testing.T) {
	t.Parallel()
	for state, want := range map[health.State]Permission{
		health.OK: {Join: true, Hold: true}, health.Warm: {Hold: true}, health.Unknown: {Hold: true},
		health.Qualifying: {Hold: true}, health.Slow: {}, health.Stalled: {}, health.Failed: {},
		health.State(99): {Hold: true},
	} {
		if got := Permits(state); got != want {
			t.Errorf("%s permits %+v, want %+v", state, got, want)
		}
	}
	for state, want := range map[health.State]bool{
		health.OK: false, health.Warm: false, health.Unknown: false, health.Qualifying: false, health.Slow: true,
		health.Stalled: true, health.Failed: true,
	} {
		if got := sick(state); got != want {
			t.Errorf("%s is sick: %v", state, got)
		}
	}
}

func ids(hosts []Host) (list []string) {
	for _, h := range hosts {
		list = append(list, h.ID)
	}
	return list
}

// rankView is the voter n1 of two, in racks a and b, with spares in both and a third.
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

func TestHostsAreRankedByRoleFailureDomainDiskAndID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		target Role
		change func(v *View)
		want   []string
	}{
		{"for a voter the standby goes first", RoleVoter, nil, []string{"s1", "c1", "c2", "a1", "b1"}},
		{"for a standby no standby", RoleStandby, nil, []string{"c1", "c2", "a1", "b1"}},
		{"a rack with two voters comes last", RoleStandby, func(v *View) {
			v.Hosts = append(v.Hosts, ready("n4", RoleVoter))
			v.Hosts[7].Domain = "a"
		}, []string{"c1", "c2", "b1", "a1"}},
		{"only voters fill a rack", RoleStandby, func(v *View) {
			v.Hosts = append(v.Hosts, ready("s3", RoleStandby))
			v.Hosts[7].Domain = "c"
		}, []string{"c1", "c2", "a1", "b1"}},
		{"one that joins is under way", RoleStandby, func(v *View) {
			v.Hosts[0].Role = RoleJoining
		}, []string{"a1", "c1", "c2", "b1"}},
		{"a disk that is not known comes behind", RoleStandby, func(v *View) {
			v.Hosts[2].P99, v.Hosts[3].P99 = 0, time.Hour
		}, []string{"c2", "c1", "a1", "b1"}},
		{"a figure of a nanosecond is one", RoleStandby, func(v *View) {
			v.Hosts[2].P99, v.Hosts[3].P99 = 2, 1
		}, []string{"c2", "c1", "a1", "b1"}},
		{"one that is not ready is none", RoleStandby, func(v *View) {
			v.Hosts[2].Waiting = NotQualified
		}, []string{"c2", "a1", "b1"}},
		{"one that only observes is none", RoleStandby, func(v *View) {
			v.Hosts[2].Manage = false
		}, []string{"c2", "a1", "b1"}},
	} {
		v := rankView()
		if c.change != nil {
			c.change(&v)
		}
		if got := ids(candidates(v, c.target, false)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	v := rankView()
	v.Self.ID, v.Hosts[2].Waiting = "c1", NotQualified // as it has published, which may be a while ago
	if got := ids(candidates(v, RoleStandby, true)); !slices.Equal(got, []string{"c1", "c2", "a1", "b1"}) {
		t.Errorf("ready by what it knows of itself: %v", got)
	}
	v.Hosts[2].Waiting = ""
	if got := ids(candidates(v, RoleStandby, false)); !slices.Equal(got, []string{"c2", "a1", "b1"}) {
		t.Errorf("not ready by what it knows of itself: %v", got)
	}
}

func TestWhoIsCalledWhenAPlaceIsFree(t *testing.T) {
	t.Parallel()
	v := rankView()
	if got := Next(v, 2); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("for a voter: %v", got)
	}
	if got := Next(v, 9); !slices.Equal(got, []string{"c1", "c2", "a1", "b1"}) {
		t.Errorf("all: %v", got)
	}
	if got := Next(v, 0); got != nil {
		t.Errorf("none: %v", got)
	}
	v.Self.ID = "c1"
	if got := Next(v, 2); !slices.Equal(got, []string{"c2", "a1"}) {
		t.Errorf("a spare calls itself: %v", got)
	}
	v.Self.ID = "n1"
	v.Hosts[6].Role, v.Hosts[6].Wants = RoleJoining, WorkReboot
	if got := Next(v, 2); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("beside one that joins: %v", got)
	}
}

func TestWhoIsTakenDownNext(t *testing.T) {
	t.Parallel()
	v := rankView()
	asked := func(i int, at int64) { v.Hosts[i].Wants, v.Hosts[i].AskedAt = WorkReboot, at }
	if got := NextDown(v, []string{"b1", "c1"}, 2); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("of a rollout: %v", got)
	}
	if got := NextDown(v, []string{"b1"}, 0); got != nil {
		t.Errorf("none: %v", got)
	}
	asked(3, 20)
	asked(2, 30)
	asked(0, 10)
	asked(4, 5) // a voter looks closely in any case
	for n, want := range [][]string{nil, {"a1"}, {"a1", "c2"}, {"a1", "c2", "c1"}} {
		if got := NextDown(v, nil, n); !slices.Equal(got, want) {
			t.Errorf("%d of those that were asked: %v, want %v", n, got, want)
		}
	}
	if got := NextDown(v, []string{"b1"}, 9); !slices.Equal(got, []string{"a1", "c2", "c1", "b1"}) {
		t.Errorf("those that were asked, and one of a rollout: %v", got)
	}
	if got := NextDown(v, []string{"b1"}, 3); !slices.Equal(got, []string{"a1", "c2", "c1"}) {
		t.Errorf("no more than that many: %v", got)
	}
	if got := NextDown(v, []string{"a1", "b1"}, 9); !slices.Equal(got, []string{"a1", "c2", "c1"}) {
		t.Errorf("one of the rollout was asked already: %v", got)
	}
}

func TestWhichPlaceAVoterHasInTheLine(t *testing.T) {
	t.Parallel()
	v := spareView()
	if got := voterTurn(v); got >= 0 {
		t.Errorf("a spare has place %d", got)
	}
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	if got := voterTurn(v); got != 2 {
		t.Errorf("the third has place %d", got)
	}
	v.Cluster.Members[0].Live, v.Cluster.Members[1].Learner = false, true
	if got := voterTurn(v); got != 0 {
		t.Errorf("beside one that is down and a learner: %d", got)
	}
	v.Cluster.Members[2].Live = false
	if got := voterTurn(v); got >= 0 {
		t.Errorf("one that is down has place %d", got)
	}
}

func TestAPlaceIsFreeOnlyWhereTheClusterAnswers(t *testing.T) {
	t.Parallel()
	v := spareView()
	if !PlaceFree(v) {
		t.Error("a third voter is wanted, and no place is free")
	}
	v.Cluster.Reachable = false
	if PlaceFree(v) {
		t.Error("a place is free though nobody answers")
	}
	v = spareView()
	v.Target = Target{Voters: 2}
	if PlaceFree(v) {
		t.Error("a place is free though nobody is wanted")
	}
}

func TestDistancesAreToldApartFromTwoMillisecondsOn(t *testing.T) {
	t.Parallel()
	for rtt, want := range map[time.Duration]int{
		1: 0, 2*time.Millisecond - 1: 0, 2 * time.Millisecond: 1, 4*time.Millisecond - 1: 1, 4 * time.Millisecond: 2,
		8 * time.Millisecond: 3,
	} {
		if got := distance(Member{RTT: rtt}); got != want {
			t.Errorf("%s is %d steps away, want %d", rtt, got, want)
		}
	}
	if distance(Member{}) <= distance(Member{RTT: time.Hour}) {
		t.Error("a distance that is not known is nearer than an hour")
	}
}
