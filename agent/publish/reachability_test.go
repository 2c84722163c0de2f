// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func probed(state record.PortState, rtt time.Duration) []network.Reading {
	way := network.Port{State: state, RTT: rtt}
	return []network.Reading{{Member: 10, Name: "n1", Peer: way, Client: way}}
}

// writes returns the number of published changes in an hour with one round per second.
func writes(of func(second int) []network.Reading) (n int) {
	var s reachability
	var before []record.Reachability
	for second := range 3600 {
		at := time.Duration(second) * time.Second
		now := s.steady(&round.Round{At: at, ProbeEvery: network.Every, Probes: of(second)})
		if !reflect.DeepEqual(now, before) {
			n++
		}
		before = now
	}
	return n
}

func TestASteadyNetworkIsWrittenOnceAndAnUnsteadyOneOnceAMinute(t *testing.T) {
	t.Parallel()
	steady := func(second int) []network.Reading {
		if second < 5 {
			return probed(record.PortUnknown, 0)
		}
		return probed(record.PortAnswers, time.Duration(180+second%70)*time.Microsecond)
	}
	if n := writes(steady); n != 1 {
		t.Errorf("a network that stays the same is written %d times in an hour", n)
	}
	noisy := func(second int) []network.Reading {
		states := []record.PortState{record.PortAnswers, record.PortUnreachable}
		return probed(states[second%2], time.Duration(second%9+1)*time.Millisecond)
	}
	if n := writes(noisy); n < 2 || n > 60 {
		t.Errorf("a network that never stays the same is written %d times in an hour", n)
	}
	joined := func(second int) []network.Reading {
		of := record.PortAnswers
		if second < 5 {
			of = record.PortUnknown
		}
		both := append(probed(record.PortAnswers, time.Millisecond), probed(of, time.Millisecond)...)
		both[1].Member = 11
		return both[:min(second/2, 2)]
	}
	if n := writes(joined); n != 2 {
		t.Errorf("a second member that was probed is written %d times", n)
	}
	slower := func(second int) []network.Reading {
		return probed(record.PortAnswers, time.Duration(second%9+1)*time.Millisecond)
	}
	if n := writes(slower); n < 2 || n > 6 {
		t.Errorf("a network whose times alone change is written %d times in an hour", n)
	}
}

func TestTheStatesOfPortsAndARoundedUpTimeArePublished(t *testing.T) {
	t.Parallel()
	var s reachability
	got := s.steady(&round.Round{At: time.Hour, ProbeEvery: network.Every, Probes: []network.Reading{{
		Member: 10, Name: "n1", Peer: network.Port{State: record.PortLargeLost, RTT: 300 * time.Microsecond},
		Client: network.Port{State: record.PortUnreachable},
	}}})
	want := []record.Reachability{{MemberID: 10, Peer: "large-lost", Client: "unreachable", RTTSeconds: 0.0005}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v", got)
	}
	encoded, err := record.Encode(record.Host{Sees: got})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := record.Decode[record.Host](encoded); err != nil || !reflect.DeepEqual(back.Sees, want) {
		t.Errorf("read again it is %+v, %v", back.Sees, err)
	}
}

// roundWith returns a round of a voter with the given observations. The voter's etcd is connected only to member 2.
func roundWith(at time.Duration, seen ...network.Reading) *round.Round {
	r := &round.Round{
		At: at, Wall: time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC).Add(at), ProbeEvery: network.Every, Probes: seen,
		Connections: round.Connections{Known: true, At: at, Of: map[uint64]bool{2: true}},
	}
	r.Decision.Role = policy.RoleVoter
	return r
}

func reaches(id uint64) network.Reading {
	way := network.Port{State: record.PortAnswers, RTT: time.Millisecond}
	return network.Reading{Member: id, Peer: way, Client: way}
}

// loses returns the observation of a member that was just lost. The states of its ports have not changed yet.
func loses(id uint64, at time.Duration) network.Reading {
	s := reaches(id)
	s.Lost, s.LostAt = true, at
	return s
}

func TestALostOrRecoveredMemberIsPublishedAtOnce(t *testing.T) {
	t.Parallel()
	var s reachability
	on := func(at time.Duration) time.Time { return roundWith(at).Wall }
	for i, c := range []struct {
		r    *round.Round
		lost time.Time
		link string
	}{
		{roundWith(10*time.Second, reaches(2), reaches(3)), time.Time{}, ""},
		{roundWith(12*time.Second, reaches(2), loses(3, 11*time.Second)), on(11 * time.Second), record.LinkNone},
		{roundWith(14*time.Second, reaches(2), loses(3, 11*time.Second)), on(11 * time.Second), record.LinkNone},
		{roundWith(15*time.Second, reaches(2), reaches(3)), time.Time{}, ""},
		{roundWith(17*time.Second, reaches(2), loses(3, 16*time.Second)), on(16 * time.Second), record.LinkNone},
	} {
		got := s.steady(c.r)
		if len(got) != 2 || !got[0].LostSince.IsZero() || !got[1].LostSince.Equal(c.lost) || got[1].Link != c.link {
			t.Errorf("%d: %+v, want lost %s, link %q", i, got, c.lost, c.link)
		}
	}
	withDomains := roundWith(17*time.Second, reaches(2), loses(3, 16*time.Second))
	withDomains.View.Cluster.Members = []policy.Member{
		{ID: 2, Domain: "a", Permanent: true, MaxLearners: 3}, {ID: 3, Domain: "b", Permanent: true, MaxLearners: 2},
	}
	if got := s.steady(withDomains); got[0].Domain != "" || got[1].Domain != "b" || got[0].Learner != 0 ||
		got[1].Learner != 2 {
		t.Errorf("what is reported about the lost member is %+v", got)
	}
	stepped := roundWith(18*time.Second, reaches(2), loses(3, 16*time.Second))
	stepped.Wall = stepped.Wall.Add(-time.Hour)
	if got := s.steady(stepped); !got[1].LostSince.Equal(on(16 * time.Second)) {
		t.Errorf("a step of the wall clock has changed the observation: %+v", got[1])
	}
	encoded, err := record.Encode(record.Host{Sees: s.shown, MemberLost: true})
	if err != nil {
		t.Fatal(err)
	}
	back, err := record.Decode[record.Host](encoded)
	if err != nil || !back.MemberLost || !reflect.DeepEqual(back.Sees, s.shown) {
		t.Errorf("read again it is %+v, %v", back, err)
	}
}

func TestTheLinkToALostMemberIsTheOneThatEtcdReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *round.Round)
		lost   bool
		link   string
	}{
		"etcd is not connected": {func(*round.Round) {}, true, record.LinkNone},
		"etcd is connected":     {func(r *round.Round) { r.Connections.Of[3] = true }, true, record.LinkUp},
		"etcd does not report":  {func(r *round.Round) { r.Connections.Known = false }, true, ""},
		"the host is about to join": {
			func(r *round.Round) { r.Decision.Role = policy.RoleJoining }, true, record.LinkNone,
		},
		"a spare reports nothing": {
			func(r *round.Round) { r.Decision.Role = policy.RoleSpare }, false, "",
		},
		"a host with an unknown role reports nothing": {
			func(r *round.Round) { r.Decision.Role = policy.RoleUnknown }, false, "",
		},
	} {
		var s reachability
		r := roundWith(time.Minute, reaches(2), loses(3, 50*time.Second))
		c.change(r)
		got := s.steady(r)
		if len(got) != 2 || got[1].LostSince.IsZero() == c.lost || got[1].Link != c.link {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAFreshAgentPublishesALostMemberBeforeItKnowsMore(t *testing.T) {
	t.Parallel()
	var s reachability
	lost := network.Reading{Member: 3, Lost: true, LostAt: time.Second}
	got := s.steady(roundWith(8*time.Second, network.Reading{Member: 2}, lost))
	if len(got) != 1 || got[0].MemberID != 3 || got[0].LostSince.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestAQueryForDeadVotersIsAnsweredByNewerProbes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(r *round.Round)
		answers bool
	}{
		"all members were probed since": {func(*round.Round) {}, true},
		"no host asks": {
			func(r *round.Round) { r.AskedSince, r.Probes[1].LookedAt = 0, 1 }, true,
		},
		"the asked member was probed before":   {func(r *round.Round) { r.Probes[1].LookedAt = r.AskedSince }, false},
		"a different member was probed before": {func(r *round.Round) { r.Probes[0].LookedAt = r.AskedSince }, true},
		"etcd reported before":                 {func(r *round.Round) { r.Connections.At = r.AskedSince }, false},
		"etcd reports nothing":                 {func(r *round.Round) { r.Connections = round.Connections{} }, true},
		"the asked member cannot be probed":    {func(r *round.Round) { r.Probes[1].LookedAt = 0 }, true},
	} {
		r := roundWith(time.Minute, reaches(2), loses(3, time.Second))
		r.AskedSince, r.Op = 50*time.Second, &record.Op{Kind: policy.KindReplace, Replaces: 3}
		r.Probes[0].LookedAt, r.Probes[1].LookedAt = 51*time.Second, 52*time.Second
		c.change(r)
		if got := r.AnswersNow(); got != c.answers {
			t.Errorf("%s: answered %t", name, got)
		}
	}
}
