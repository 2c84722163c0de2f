// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/round"
)

func TestTheWayToEachMemberIsAMetricAndWhatIsNotKnownIsNone(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil, func() time.Duration { return 0 })
	sights := []network.Sight{
		{
			Member: 10, Name: "n2", Peer: network.Way{State: network.Answers, RTT: time.Millisecond},
			Client: network.Way{State: network.Refused},
		},
		{Member: 11, Name: "n\xff" + strings.Repeat("3", 99), Peer: network.Way{State: network.LargeLost}},
		{Member: 12, Name: "n2"}, // a name is given twice at times
	}
	got := map[string]float64{}
	for _, g := range networkGauges() {
		g.read(m, &round.Round{Sights: sights}, func(value float64, labels ...string) {
			metric := prometheus.MustNewConstMetric(g.desc(), prometheus.GaugeValue, value, labels...)
			if metric.Desc() == nil {
				t.Errorf("%s has labels that no scrape can show", g.name)
			}
			got[g.name+" "+strings.Join(labels, " ")] = value
		})
	}
	want := map[string]float64{
		"quorumd_network_reached a n2 peer": 1, "quorumd_network_rtt_seconds a n2 peer": 0.001,
		"quorumd_network_reached a n2 client":                              1,
		"quorumd_network_reached b n?" + strings.Repeat("3", 62) + " peer": 0,
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
