// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

func TestTheViewHasTheUnitsTypeAndWhetherItStartsAtBoot(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.Binary = "/usr/bin/etcd"
	for _, k := range []struct {
		status    systemd.Status
		program   string
		notAtBoot bool
	}{
		{systemd.Status{LoadState: "loaded", UnitFileState: "enabled", Program: "/usr/bin/etcd"}, "", false},
		{
			systemd.Status{LoadState: "loaded", UnitFileState: "disabled", Program: "/opt/etcd/etcd"},
			"/opt/etcd/etcd",
			true,
		},
		{systemd.Status{LoadState: "loaded"}, "", false}, // of a plain process
	} {
		r := &round.Round{Unit: k.status}
		u := NewBuilder(c, "boot-1", "i", false).View(r, nil).Unit
		if u.Program != k.program || u.NotAtBoot != k.notAtBoot {
			t.Errorf("%+v: %+v", k.status, u)
		}
	}
}

func TestTheOutcomeOfARollbackIsItsRecordsWhateverTheReason(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]policy.ReasonCode{"HEALTH_LOST": policy.HealthLost, "": ""} {
		op := &record.Op{Kind: policy.KindJoin, Phase: "rollback", Outcome: said, Reason: "LEARNER_STALLED: none"}
		r := &round.Round{ClusterState: round.ClusterState{Op: op}}
		if got := NewBuilder(hostConfig(), "boot-1", "i", false).operation(r).Outcome; got != want {
			t.Errorf("record %q: got %q", said, got)
		}
	}
}

// quiet returns a round of a healthy cluster of three voters, with the state read from etcd at the given time.
func quiet(number uint64, at time.Duration) *round.Round {
	r := &round.Round{Number: number, At: at}
	r.ClusterState = round.ClusterState{
		EtcdAt: at, StatusesAt: at, HostsAt: at, Reachable: true, Listed: true, Statuses: map[uint64]cluster.Status{},
	}
	r.Membership.ClusterID = 7
	for id := uint64(1); id <= 3; id++ {
		r.Membership.Members = append(r.Membership.Members, cluster.Member{
			ID: id, Name: "n", PeerURLs: []string{fmt.Sprintf("http://p%d", id)},
		})
		r.Statuses[id] = cluster.Status{MemberID: id, Leader: 1, Term: 2, Index: 9, Applied: 9, Linearizable: true}
		r.Hosts = append(r.Hosts, record.Host{ID: fmt.Sprintf("id-n%d", id), PeerURL: fmt.Sprintf("http://p%d", id)})
	}
	return r
}

func TestTheViewOfARoundIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	var before *round.Round
	for i := range 3 {
		r := quiet(uint64(i)+1, time.Duration(i+1)*time.Second)
		r.Op = &record.Op{Kind: policy.KindJoin, Host: "id-n3", Started: time.Unix(1, 0)}
		r.OpAt, r.Request = 5, &hoststate.Request{
			Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(2, 0),
		}
		first := b.View(r, before)
		if again := b.View(r, before); !reflect.DeepEqual(first, again) {
			t.Fatalf("round %d: first %+v, then %+v", r.Number, first, again)
		}
		if want := time.Duration(i) * time.Second; first.Asked.WaitedFor != want ||
			first.Cluster.Members[0].LiveFor != want || first.Op.WrittenFor != want {
			t.Errorf("round %d: waited for %s, live for %s, written for %s, want %s", r.Number, first.Asked.WaitedFor,
				first.Cluster.Members[0].LiveFor, first.Op.WrittenFor, want)
		}
		before = r
	}
}

func TestTheViewKeepsNothingOfAClusterThatIsUnreachableOnConfirm(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.Interval = time.Second
	b := NewBuilder(c, "boot-1", "i", false)
	first := quiet(1, time.Second)
	b.View(first, nil)
	r := quiet(2, 2*time.Second) // carried over
	r.EtcdAt, r.StatusesAt, r.HostsAt = first.At, first.At, first.At
	if v := b.View(r, first); v.IdleFor != time.Second || v.Cluster.Members[0].LiveFor != 0 || len(v.Hosts) != 3 {
		t.Errorf("carried over: idle for %s, live for %s, %d hosts", v.IdleFor, v.Cluster.Members[0].LiveFor,
			len(v.Hosts))
	}
	r.ClusterState = round.ClusterState{EtcdAt: r.At, Problem: "no voter answers"} // after Confirm
	if v := b.View(r, first); v.IdleFor != 0 || v.PlaceFreeFor != 0 || len(v.Cluster.Members)+len(v.Hosts) != 0 ||
		v.Lock.Known || v.Cluster.Reachable {
		t.Errorf("no voter answers: %+v", v)
	}
}

func TestAnUnknownLeadershipTransferCountsFromTheFirstLook(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	b := NewBuilder(c, "boot-1", "i", false)
	look := func(n uint64, at time.Duration, leads, reached bool, did round.ActorState) policy.LeadershipTransfers {
		v := &policy.View{Health: policy.Health{State: health.Slow}}
		v.Self.PeerURL = "http://n1"
		r := &round.Round{Number: n, At: at, Did: did}
		r.Reachable = reached
		if !reached {
			return b.leadershipTransfers(v, r)
		}
		v.Cluster.Members = []policy.Member{
			{PeerURL: "http://n2", Leader: !leads}, {PeerURL: "http://n1", Leader: leads},
		}
		return b.leadershipTransfers(v, r)
	}
	did := round.ActorState{SteppedDown: round.Stamp{Is: true, At: 40 * time.Second}, SteppedDownInRow: 2}
	const s = time.Second
	for i, c := range []struct {
		at             time.Duration
		leads, reached bool
		did            round.ActorState
		want           policy.LeadershipTransfers
	}{
		{10 * s, true, true, round.ActorState{}, policy.LeadershipTransfers{}},
		{30 * s, true, true, round.ActorState{}, policy.LeadershipTransfers{
			LeadsFor: 20 * s, UnfitFor: 20 * s,
			LastFor: 20 * s,
		}},
		{50 * s, false, true, did, policy.LeadershipTransfers{UnfitFor: 40 * s, LastFor: 10 * s, InRow: 2}},
		{70 * s, true, true, did, policy.LeadershipTransfers{UnfitFor: 60 * s, LastFor: 30 * s, InRow: 2}},
		{80 * s, false, false, did, policy.LeadershipTransfers{
			LeadsFor: 10 * s, UnfitFor: 70 * s, LastFor: 40 * s,
			InRow: 2,
		}},
		{90 * s, true, true, did, policy.LeadershipTransfers{
			LeadsFor: 20 * s, UnfitFor: 80 * s, LastFor: 50 * s,
			InRow: 2,
		}},
	} {
		if got := look(uint64(i+1), c.at, c.leads, c.reached, c.did); got != c.want {
			t.Errorf("at %s: %+v, want %+v", c.at, got, c.want)
		}
	}
}

func TestALookThatAsksNoMemberNeitherBreaksNorExtendsDurations(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.Interval = 2 * time.Second
	b := NewBuilder(c, "boot-1", "i", false)
	for i, look := range []struct {
		at, answered, want time.Duration
	}{
		{10 * time.Second, 10 * time.Second, 0},
		{12 * time.Second, 12 * time.Second, 2 * time.Second},
		{13 * time.Second, 12 * time.Second, 2 * time.Second}, // the members were asked in between
		{14 * time.Second, 14 * time.Second, 4 * time.Second},
		{60 * time.Second, 14 * time.Second, 0}, // the members were last asked long ago
		{61 * time.Second, 61 * time.Second, 0},
	} {
		r := quiet(uint64(i+1), look.at)
		r.StatusesAt = look.answered
		for id, s := range r.Statuses {
			s.Index, s.Applied = 100, 100
			r.Statuses[id] = s
		}
		m := b.View(r, nil).Cluster.Members[0]
		if m.LiveFor != look.want || m.SteadyFor != look.want || m.StillFor != look.want {
			t.Errorf("at %s: live for %s, steady for %s, still for %s, want %s", look.at, m.LiveFor, m.SteadyFor,
				m.StillFor, look.want)
		}
	}
}
