// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestTheNetworkToEachMemberIsAMetricUnlessUnknown(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil, func() time.Duration { return 0 })
	probes := []network.Reading{
		{
			Member: 10, Name: "n2", Peer: network.Port{State: record.PortAnswers, RTT: time.Millisecond},
			Client: network.Port{State: record.PortRefused},
		},
		{Member: 11, Name: "n\xff" + strings.Repeat("3", 99), Peer: network.Port{State: record.PortLargeLost}},
		{Member: 12, Name: "n2"}, // two members may have the same name
	}
	got := map[string]float64{}
	for _, g := range networkGauges() {
		g.read(m, &round.Round{Probes: probes}, func(value float64, labels ...string) {
			metric := prometheus.MustNewConstMetric(g.desc(), prometheus.GaugeValue, value, labels...)
			if metric.Desc() == nil {
				t.Errorf("%s has labels that no scrape can contain", g.name)
			}
			got[g.name+" "+strings.Join(labels, " ")] = value
		})
	}
	want := map[string]float64{
		"quorumd_network_reachable a n2 peer": 1, "quorumd_network_rtt_seconds a n2 peer": 0.001,
		"quorumd_network_reachable a n2 client":                              1,
		"quorumd_network_reachable b n?" + strings.Repeat("3", 62) + " peer": 0,
	}
	if len(got) != len(want) {
		t.Errorf("it shows %v", got)
	}
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %v, want %v", series, got[series], value)
		}
	}
}

func TestADeadVoterIsAMetricAndTheOthersAreZero(t *testing.T) {
	t.Parallel()
	voter := func(id uint64, name string, live bool) policy.Member {
		return policy.Member{ID: id, Name: name, PeerURL: "http://" + name, Live: live, Leader: id == 1}
	}
	host := func(name string) policy.Host {
		return policy.Host{
			ID: name, Name: name, PeerURL: "http://" + name, Role: policy.RoleVoter,
			Sees: []record.Reachability{
				{MemberID: 3, LostSince: time.Unix(1, 0), Link: record.LinkNone, For: time.Minute},
			},
		}
	}
	r := &round.Round{}
	r.View.Cluster.Reachable = true
	r.View.Cluster.Members = []policy.Member{voter(1, "n1", true), voter(2, "n2", true), voter(3, "n3", false)}
	r.View.Cluster.Members[2].AgentGoneFor = 50 * time.Second
	r.View.Cluster.Members = append(r.View.Cluster.Members, policy.Member{ID: 4, Learner: true})
	r.View.Hosts = []policy.Host{host("n1"), host("n2")}
	read := func() map[string]float64 {
		got := map[string]float64{}
		deadVoters(nil, r, func(value float64, labels ...string) { got[strings.Join(labels, " ")] = value })
		return got
	}
	if got, want := read(), (map[string]float64{"1 n1": 0, "2 n2": 0, "3 n3": 50}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.View.Hosts[1].Sees[0] = record.Reachability{MemberID: 3, Peer: record.PortAnswers}
	if got := read(); got["3 n3"] != 0 {
		t.Errorf("a host reaches it: %v", got)
	}
	if r.View.Cluster.Reachable = false; len(read()) != 0 {
		t.Errorf("no member answers: %v", read())
	}
}
