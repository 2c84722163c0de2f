// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestAHostProbesAllOtherMembersEvenIfTheListIsNotRead(t *testing.T) {
	t.Parallel()
	prober := network.New(network.Options{Now: func() time.Duration { return time.Hour }})
	o := &Observer{opt: Options{
		Sources: Sources{Network: prober},
		Config:  config.Config{Etcd: config.Etcd{PeerURL: "http://n1:2380"}},
	}}
	list := cluster.Membership{Members: []cluster.Member{
		{ID: 1, Name: "n1", PeerURLs: []string{"http://n1:2380"}},
		{ID: 2, PeerURLs: []string{"http://n2:2380"}}, // the member has not started yet
		{ID: 3, Name: "n3", PeerURLs: []string{"http://n3:2380"}, ClientURLs: []string{"http://n3:2379"}},
	}}
	for _, r := range []*round.Round{
		{ClusterState: round.ClusterState{Listed: true, Membership: list}},
		{}, // no answer
	} {
		o.lookAtNetwork(r)
		if len(r.Probes) != 2 || r.Probes[0].Member != 2 || r.Probes[1].Name != "n3" {
			t.Errorf("probes %+v", r.Probes)
		}
	}
}

// asks is a network that records which members it is asked to probe again.
type asks map[uint64]time.Duration

func (asks) Watch([]network.Member, time.Duration) {}

func (asks) Readings() []network.Reading {
	return []network.Reading{{Member: 1, LookedAt: 50}, {Member: 2, LookedAt: 50}, {Member: 3, LookedAt: 50}}
}

func (a asks) ProbeNow(member uint64, since time.Duration) { a[member] = since }

func TestAMemberIsProbedAgainInTheRoundInWhichItFallsSilent(t *testing.T) {
	t.Parallel()
	a := asks{}
	before := &round.Round{At: 90}
	before.View.Cluster.Members = []policy.Member{{ID: 1, Live: true}, {ID: 2, DownFor: 20}, {ID: 3, Live: true}}
	o := &Observer{opt: Options{Sources: Sources{Network: a}}, before: before, pace: pace{attends: true}}
	r := &round.Round{At: 100}
	silent := cluster.Status{Err: context.DeadlineExceeded}
	r.Statuses = map[uint64]cluster.Status{1: {}, 2: silent, 3: silent}
	r.StatusesAt = 90
	if o.lookAtNetwork(r); len(a) != 1 || a[2] != 70 || r.FellSilent {
		t.Errorf("with results of the last round: %v, fell silent %t", a, r.FellSilent)
	}
	r.StatusesAt = 100
	if o.lookAtNetwork(r); len(a) != 2 || a[2] != 70 || a[3] != 100 || !r.FellSilent {
		t.Errorf("probed again %v, fell silent %t", a, r.FellSilent)
	}
}

// n1 is this host, and probes; n2 and n3 publish what they observe; n4 is down and has no record; s1 is a spare.
func TestConnectivityIsKnownForPresentHostsWithAMember(t *testing.T) {
	t.Parallel()
	answers := network.Port{State: record.PortAnswers, Sent: 20, Resent: 1}
	none := network.Port{State: record.PortUnreachable}
	r := &round.Round{
		Probes: []network.Reading{
			{Member: 2, Peer: answers, Client: network.Port{State: record.PortRefused, Sent: 5, Resent: 2}},
			{Member: 3, Peer: none, Client: answers},
			{Member: 4, Peer: none, Client: none},
		},
		ClusterState: round.ClusterState{
			Reachable:  true,
			HostsAt:    time.Hour,
			Membership: members(1, 2, 3, 4),
			Hosts: []record.Host{
				{Name: "n1", MemberID: 1, Sees: []record.Reachability{
					{MemberID: 3, Peer: "answers"},
				}}, // older than the probes
				{
					Name: "n2", MemberID: 2,
					Sees: []record.Reachability{
						{MemberID: 1, Peer: "large-lost"},
						{MemberID: 3, Peer: "silent"},
						{MemberID: 1, Peer: "answers"}, // twice
					},
				},
				{Name: "n3", MemberID: 3, Sees: []record.Reachability{{MemberID: 1, Peer: "of a later version"}}},
				{Name: "s1", Sees: []record.Reachability{{MemberID: 1, Peer: "unreachable"}}},
				// etcd lists no such member
				{Name: "x1", MemberID: 9, Sees: []record.Reachability{{MemberID: 1, Peer: "unreachable"}}},
			},
		},
	}
	want := health.NetworkReading{Known: true, Self: "n1", Paths: []health.Path{
		{From: "n1", To: "n2", State: health.PathWell, Segments: health.Part{Of: 3, Among: 25, Known: true}},
		{From: "n1", To: "n3", State: health.PathLost, Segments: health.Part{Of: 1, Among: 20, Known: true}},
		{From: "n2", To: "n1", State: health.PathLargeLost},
	}}
	if got := networkReading(r, "n1"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	r.Reachable = false
	if got := networkReading(r, "n1"); got.Known || got.Absent == "" {
		t.Errorf("without a cluster: %+v", got)
	}
}

func members(ids ...uint64) (list cluster.Membership) {
	for _, id := range ids {
		list.Members = append(list.Members, cluster.Member{ID: id})
	}
	return list
}
