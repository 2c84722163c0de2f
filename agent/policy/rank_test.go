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

func TestHostsAreRankedByRoleFailureDomainDiskAndID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		target Role
		change func(v *View)
		want   []string
	}{
		{"the standby is first to become a voter", RoleVoter, nil, []string{"s1", "c1", "c2", "a1", "b1"}},
		{"a standby is no candidate for the standby", RoleStandby, nil, []string{"c1", "c2", "a1", "b1"}},
		{"a failure domain with two voters comes last", RoleStandby, func(v *View) {
			v.Hosts = append(v.Hosts, ready("n4", RoleVoter))
			v.Hosts[7].Domain = "a"
		}, []string{"c1", "c2", "b1", "a1"}},
		{"only voters count for a failure domain", RoleStandby, func(v *View) {
			v.Hosts = append(v.Hosts, ready("s3", RoleStandby))
			v.Hosts[7].Domain = "c"
		}, []string{"c1", "c2", "a1", "b1"}},
		{"a joining host comes first", RoleStandby, func(v *View) {
			v.Hosts[0].Role = RoleJoining
		}, []string{"a1", "c1", "c2", "b1"}},
		{"an unknown disk comes last", RoleStandby, func(v *View) {
			v.Hosts[2].P99, v.Hosts[3].P99 = 0, time.Hour
		}, []string{"c2", "c1", "a1", "b1"}},
		{"a measurement of a nanosecond counts", RoleStandby, func(v *View) {
			v.Hosts[2].P99, v.Hosts[3].P99 = 2, 1
		}, []string{"c2", "c1", "a1", "b1"}},
		{"a host that is not ready is no candidate", RoleStandby, func(v *View) {
			v.Hosts[2].Waiting = NotQualified
		}, []string{"c2", "a1", "b1"}},
		{"a host in mode observe is no candidate", RoleStandby, func(v *View) {
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
	v.Self.ID, v.Hosts[2].Waiting = "c1", NotQualified // Waiting is as the host published it, and may be out of date
	if got := ids(candidates(v, RoleStandby, true)); !slices.Equal(got, []string{"c1", "c2", "a1", "b1"}) {
		t.Errorf("ready by its own state: %v", got)
	}
	v.Hosts[2].Waiting = ""
	if got := ids(candidates(v, RoleStandby, false)); !slices.Equal(got, []string{"c2", "a1", "b1"}) {
		t.Errorf("not ready by its own state: %v", got)
	}
}

// The spare in the failure domain of the voter to be replaced keeps all voters in different failure domains. The spare
// with the faster disk would not.
func TestAVoterToBeReplacedDoesNotCountForItsDomain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		first  string
	}{
		"it is unhealthy":                   {func(*View) {}, "n5"},
		"its grace period is not over":      {func(v *View) { v.Hosts[2].UnhealthySince.For = 9 * time.Minute }, "n4"},
		"no host replaces unhealthy voters": {func(v *View) { v.Limits.UnhealthyGrace = 0 }, "n4"},
		"there is no evidence against it":   {func(v *View) { v.Cluster.Members[2].Fsyncs.SlowFor = 0 }, "n4"},
		"it has been replaced already": {func(v *View) {
			v.Hosts[2].Health, v.Hosts[2].UnhealthySince = health.OK, UnhealthySince{}
			v.Op = &Op{Kind: KindReplace, Host: "n5", HostName: "n5", Target: RoleVoter, Replaces: 3}
		}, "n5"},
		"its data is gone, and it is dead": {func(v *View) {
			v.Limits.UnhealthyGrace, v.Limits.DeadGrace = 0, 10*time.Minute
			m := &v.Cluster.Members[2]
			m.Live, m.LiveFor, m.DownFor = false, 0, 11*time.Minute
			v.Hosts[2].MemberLostFor = 11 * time.Minute
			v.Hosts[0].Sees = []record.Reachability{
				{MemberID: 3, LostSince: lostOn, Link: record.LinkNone, For: 11 * time.Minute},
			}
			v.Hosts[1].Sees = []record.Reachability{{MemberID: 3, LostSince: lostOn, For: 11 * time.Minute}}
		}, "n5"},
	} {
		v := unhealthyView()
		v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
		for i, domain := range []string{"a", "b", "c", "a", "c"} {
			v.Hosts[i].Domain, v.Hosts[i].P99 = domain, time.Duration(i)*time.Millisecond
		}
		c.change(&v)
		if got := ids(candidates(v, RoleVoter, true)); len(got) != 2 || got[0] != c.first {
			t.Errorf("%s: the order is %v, and %s should be first", name, got, c.first)
		}
	}
}

func TestWhichSparesTheQueueNamesIfAPlaceIsFree(t *testing.T) {
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
		t.Errorf("a spare names itself: %v", got)
	}
	v.Self.ID = "n1"
	v.Hosts[6].Role, v.Hosts[6].Wants = RoleJoining, WorkReboot
	if got := Next(v, 2); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("while a host joins: %v", got)
	}
}

func TestWhichHostIsTakenDownNext(t *testing.T) {
	t.Parallel()
	v := rankView()
	asked := func(i int, at int64) { v.Hosts[i].Wants, v.Hosts[i].AskedAt = WorkReboot, at }
	if got := NextInRollout(v, []string{"b1", "c1"}, 2); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("of a rollout: %v", got)
	}
	if got := NextInRollout(v, []string{"b1"}, 0); got != nil {
		t.Errorf("none: %v", got)
	}
	asked(3, 20)
	asked(2, 30)
	asked(0, 10)
	asked(4, 5) // NextInRollout omits queued voters, because they observe in every round anyway
	for n, want := range [][]string{nil, {"a1"}, {"a1", "c2"}, {"a1", "c2", "c1"}} {
		if got := NextInRollout(v, nil, n); !slices.Equal(got, want) {
			t.Errorf("%d of the requested hosts: %v, want %v", n, got, want)
		}
	}
	if got := NextInRollout(v, []string{"b1"}, 9); !slices.Equal(got, []string{"a1", "c2", "c1", "b1"}) {
		t.Errorf("the requested hosts, and one of a rollout: %v", got)
	}
	if got := NextInRollout(v, []string{"b1"}, 3); !slices.Equal(got, []string{"a1", "c2", "c1"}) {
		t.Errorf("at most that many: %v", got)
	}
	if got := NextInRollout(v, []string{"a1", "b1"}, 9); !slices.Equal(got, []string{"a1", "c2", "c1"}) {
		t.Errorf("a host of the rollout has a request already: %v", got)
	}
}

func TestTheQueuePositionOfAVoter(t *testing.T) {
	t.Parallel()
	v := spareView()
	if got := voterPosition(v); got >= 0 {
		t.Errorf("a spare has position %d", got)
	}
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	if got := voterPosition(v); got != 2 {
		t.Errorf("the third has position %d", got)
	}
	v.Cluster.Members[0].Live, v.Cluster.Members[1].Learner = false, true
	if got := voterPosition(v); got != 0 {
		t.Errorf("next to a learner and a voter that is down: %d", got)
	}
	v.Cluster.Members[2].Live = false
	if got := voterPosition(v); got >= 0 {
		t.Errorf("a voter that is down has position %d", got)
	}
}

func TestDistancesDifferFromTwoMillisecondsOn(t *testing.T) {
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
		t.Error("an unknown distance is shorter than an hour")
	}
}

func TestTheJoinQueueHoldsReadyHostsBestFirst(t *testing.T) {
	t.Parallel()
	v := rankView()
	v.Self.ID = "n1" // a voter, which is not in the queue
	if got := JoinQueue(v); !slices.Equal(got, []string{"s1", "c1", "c2", "a1", "b1"}) {
		t.Errorf("the join queue is %v", got)
	}
	v.Hosts[2].Waiting = NotQualified
	if got := JoinQueue(v); !slices.Equal(got, []string{"s1", "c2", "a1", "b1"}) {
		t.Errorf("one host is not ready, and the join queue is %v", got)
	}
}
