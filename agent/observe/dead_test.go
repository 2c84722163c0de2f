// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestMemberWithoutTrafficIsNotConnectedAfterTwoReports(t *testing.T) {
	t.Parallel()
	type answer struct {
		at     int // seconds
		peers  map[uint64]health.Peer
		known  bool
		active bool // whether member 3 is active
	}
	gone, more := health.Peer{Received: 100}, health.Peer{Received: 101}
	only := func(p health.Peer) map[uint64]health.Peer { return map[uint64]health.Peer{3: p} }
	other := map[uint64]health.Peer{2: gone}
	for name, answers := range map[string][]answer{
		"traffic":      {{5, only(gone), false, false}, {10, only(more), true, true}},
		"no traffic":   {{5, only(gone), false, false}, {10, only(gone), true, false}},
		"not reported": {{5, other, false, false}, {10, other, true, false}},
		"traffic ends": {
			{5, only(gone), false, false},
			{10, only(more), true, true},
			{12, only(more), true, true},
			{15, only(more), true, false},
		},
		"etcd restarted": {
			{5, only(gone), false, false}, {10, only(health.Peer{}), true, true},
		},
		"one answer unreadable": {
			{5, only(gone), false, false},
			{10, nil, false, false},
			{15, only(gone), true, false},
			{20, nil, true, false},
			{36, nil, false, false},
		},
	} {
		var p peers
		for _, a := range answers {
			at := time.Duration(a.at) * time.Second
			p.read(health.EtcdReading{At: at, Peers: a.peers})
			got := p.connections(at, at+time.Hour, 2*time.Second)
			if got.Known != a.known || got.Of[3] != a.active || a.known && a.peers != nil && got.At != at+time.Hour {
				t.Errorf("%s, after %s: %+v", name, at, got)
			}
		}
	}
}

func TestMemberWithASlowHeartbeatIsConnectedBetweenHeartbeats(t *testing.T) {
	t.Parallel()
	for beat, want := range map[string]time.Duration{
		"": 4 * time.Second, "100": 4 * time.Second, "4000": 9 * time.Second, "10000": 21 * time.Second,
		"1000000": 30 * time.Second, "forged": 4 * time.Second,
	} {
		var p peers
		connected := func(at time.Duration, received float64) bool {
			p.read(health.EtcdReading{
				At: at, Peers: map[uint64]health.Peer{3: {Received: received}},
				Settings: health.EtcdSettings{Known: true, Flags: map[string]string{"heartbeat-interval": beat}},
			})
			return p.connections(at, at, time.Second).Of[3]
		}
		connected(0, 1)
		if first, still, gone := connected(1, 2), connected(want, 2), connected(want+1, 2); !first || !still || gone {
			t.Errorf("%q ms: connected %t, just before %s %t, then %t", beat, first, want, still, gone)
		}
	}
}

func TestAgentWithALongIntervalUsesTheConnectionsOfThePreviousRound(t *testing.T) {
	t.Parallel()
	const interval = 20 * time.Second
	var p peers
	for at := range 3 { // a round reads what the previous one asked for, a little more than an interval earlier
		p.read(health.EtcdReading{At: time.Duration(at) * interval, Peers: map[uint64]health.Peer{3: {Received: 100}}})
	}
	if got := p.connections(3*interval+time.Second, 0, interval); !got.Known || got.Of[3] {
		t.Errorf("one round after asking: %+v", got)
	}
	if got := p.connections(6*interval, 0, interval); got.Known {
		t.Errorf("four rounds after asking: %+v", got)
	}
}

func TestReachabilityLastsSinceItWasFirstObservedAndRestartsWhenItChanges(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	on := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	says := func(number uint64, at time.Duration, instance string, s record.Reachability) record.Reachability {
		r := quiet(number, at)
		r.Hosts[0].Instance, r.Hosts[0].Sees = instance, []record.Reachability{s, {MemberID: 99}}
		v := b.View(r, nil)
		if len(v.Hosts[0].Sees) != 1 {
			t.Fatalf("reports %+v", v.Hosts[0].Sees)
		}
		return v.Hosts[0].Sees[0]
	}
	lost := record.Reachability{MemberID: 3, LostSince: on, Link: record.LinkNone, Domain: "a"}
	says(1, time.Second, "a", lost)
	if s := says(2, 11*time.Second, "a", lost); !s.Lost() || s.Link != record.LinkNone || s.Domain != "a" ||
		s.For != 10*time.Second {
		t.Errorf("%+v", s)
	}
	again := lost
	again.LostSince = on.Add(5 * time.Second) // the member was reachable in between, but no round observed that
	if s := says(3, 12*time.Second, "a", again); !s.Lost() || s.For != 0 {
		t.Errorf("lost again: %+v", s)
	}
	if s := says(4, 13*time.Second, "b", again); s.For != 0 {
		t.Errorf("reported by another agent: %+v", s)
	}
	again.Link = record.LinkUp
	if s := says(5, 14*time.Second, "b", again); s.For != 0 || s.Link != record.LinkUp {
		t.Errorf("connected: %+v", s)
	}
	again.Link = "of a later version"
	if s := says(6, 15*time.Second, "b", again); s.For != 0 || s.LinkKnown() {
		t.Errorf("unknown link state: %+v", s)
	}
	unreachable := record.Reachability{MemberID: 3, Peer: record.PortUnreachable}
	if s := says(7, 16*time.Second, "b", unreachable); s.Lost() || !s.Unsure() {
		t.Errorf("not reported lost: %+v", s)
	}
	silent := record.Reachability{MemberID: 3, Peer: "unreachable", Client: "silent"}
	if s := says(8, 17*time.Second, "b", silent); s.Lost() || s.Unsure() {
		t.Errorf("one port accepts connections: %+v", s)
	}
}

func TestAgentIsGoneSinceItsRecordIsPlusItsTTL(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.HostRecordTTL = time.Minute
	b := NewBuilder(c, "boot-1", "i", false)
	gone := func(number uint64, at time.Duration, there, lost bool) (agent, member time.Duration) {
		r := quiet(number, at)
		r.Hosts[2].MemberLost = lost
		if !there {
			r.Hosts = r.Hosts[:2]
		}
		v := b.View(r, nil)
		if there {
			member = v.Hosts[2].MemberLostFor
		}
		return v.Cluster.Members[2].AgentGoneFor, member
	}
	for i, c := range []struct {
		at            int // all times are in seconds
		there, lost   bool
		agent, member int
	}{
		{1, true, false, 0, 0},
		{2, false, false, 60, 0},
		{12, false, false, 70, 0},
		{13, true, false, 0, 0},
		{14, false, false, 60, 0},
		{15, true, true, 0, 0},
		{25, true, true, 0, 10},
		{26, true, false, 0, 0},
		{27, true, true, 0, 0},
	} {
		agent, member := gone(uint64(i+1), time.Duration(c.at)*time.Second, c.there, c.lost)
		if agent.Seconds() != float64(c.agent) || member.Seconds() != float64(c.member) {
			t.Errorf("at %d s: agent gone for %s, member lost for %s", c.at, agent, member)
		}
	}
}

func TestAgentIsPresentByPeerURLMemberIDOrName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host record.Host
		gone bool
	}{
		"by the first URL":   {record.Host{PeerURL: "http://p3"}, false},
		"by another URL":     {record.Host{PeerURL: "http://10.0.0.3:2380"}, false},
		"by the member's ID": {record.Host{PeerURL: "http://P3/", MemberID: 3}, false},
		"by its name":        {record.Host{PeerURL: "http://P3/", Name: "n3"}, false},
		"another host":       {record.Host{PeerURL: "http://p9", Name: "n9", MemberID: 9}, true},
		"neither the host nor the member has a name": {record.Host{PeerURL: "http://p9"}, true},
	} {
		b := NewBuilder(hostConfig(), "boot-1", "i", false)
		b.config.Timing.HostRecordTTL = time.Minute
		r := quiet(1, time.Second)
		m := &r.Membership.Members[2]
		if m.Name, m.PeerURLs = "n3", append(m.PeerURLs, "http://10.0.0.3:2380"); strings.HasPrefix(name, "neither") {
			m.Name = ""
		}
		r.Hosts[2] = c.host
		if gone := b.View(r, nil).Cluster.Members[2].AgentGoneFor; (gone > 0) != c.gone {
			t.Errorf("%s: gone for %s", name, gone)
		}
	}
}

func TestDeadReportsSurviveAShortOutageOfEtcdButNotALongOne(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.Interval, c.Timing.HostRecordTTL = time.Second, time.Minute
	b := NewBuilder(c, "boot-1", "i", false)
	on := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	for i, k := range []struct {
		at        int // all times are in seconds
		reachable bool
		lost      time.Time
		said      int
		gone      int
	}{
		{10, true, on, 0, 60},
		{20, true, on, 10, 70},
		{21, false, on, 0, 0},
		{25, false, on, 0, 0},
		{26, true, on, 16, 76},
		{27, false, on, 0, 0},
		{28, true, on.Add(time.Second), 0, 78}, // the host reports a new loss
		{29, true, on.Add(time.Second), 1, 79},
		{34, false, on, 0, 0},
		{35, false, on, 0, 0},
		{36, true, on.Add(time.Second), 0, 60},
	} {
		r := quiet(uint64(i)+1, time.Duration(k.at)*time.Second)
		r.Hosts[0].Sees = []record.Reachability{{MemberID: 3, LostSince: k.lost, Link: record.LinkNone}}
		r.Hosts = r.Hosts[:2]
		if !k.reachable {
			r.ClusterState = round.ClusterState{EtcdAt: r.At, Problem: "no voter answers"}
		}
		v := b.View(r, nil)
		if !k.reachable {
			continue
		}
		s, gone := v.Hosts[0].Sees[0].For.Seconds(), v.Cluster.Members[2].AgentGoneFor.Seconds()
		if s != float64(k.said) || gone != float64(k.gone) {
			t.Errorf("at %d s: reported lost for %v s, agent gone for %v s; want %d and %d", k.at, s, gone,
				k.said, k.gone)
		}
	}
}

func TestSpareUsesItsOwnProbesInsteadOfItsRecord(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	b := NewBuilder(c, "boot-1", "i", false)
	r := quiet(1, time.Second)
	r.Hosts = append(r.Hosts, record.Host{
		ID: c.Host.ID, PeerURL: "http://of-no-member", Sees: []record.Reachability{{MemberID: 3, Peer: "reached"}},
	})
	r.Probes = []network.Reading{
		{Member: 1, Peer: network.Port{State: record.PortAnswers}}, {Member: 2}, {Member: 3, Lost: true},
	}
	got := b.reachability(r, r.Hosts[len(r.Hosts)-1])
	want := []record.Reachability{{MemberID: 1, Peer: record.PortAnswers}, {MemberID: 3, LostSince: r.Wall.Add(-r.At)}}
	if !slices.Equal(got, want) {
		t.Errorf("reports %+v", got)
	}
}

func TestOwnProbesCountForOwnReplacementOnceTheyAreNewerThanTheRecord(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	self := hostConfig().Host.ID
	for name, c := range map[string]struct {
		change func(r *round.Round, h *record.Host)
		counts bool
	}{
		"probed since": {func(*round.Round, *record.Host) {}, true},
		"not probed since": {
			func(r *round.Round, _ *record.Host) { r.Probes[0].LookedAt = time.Second }, false,
		},
		"record just read":           {func(r *round.Round, _ *record.Host) { r.AskedSince = 0 }, false},
		"another host's replacement": {func(r *round.Round, _ *record.Host) { r.Op.Host = "other" }, false},
		"another host has answered": {
			func(_ *round.Round, h *record.Host) { h.ID, h.Answers = "other", 41 }, true,
		},
		"another host has answered an earlier record": {
			func(_ *round.Round, h *record.Host) { h.ID, h.Answers = "other", 40 }, false,
		},
		"a maintenance needs no dead reports": {
			func(r *round.Round, _ *record.Host) { r.Op.Kind = policy.KindCycle }, false,
		},
	} {
		r := &round.Round{AskedSince: time.Minute, Probes: []network.Reading{{Member: 3, LookedAt: time.Hour}}}
		r.Op, r.OpAt = &record.Op{Kind: policy.KindReplace, Host: self, Replaces: 3}, 41
		h := record.Host{ID: self}
		c.change(r, &h)
		if got := b.answered(r, h); got != c.counts {
			t.Errorf("%s: %t", name, got)
		}
	}
}
