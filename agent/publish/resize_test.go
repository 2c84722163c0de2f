// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
)

// resized is a round of three voters in a cluster that was resized to five.
func resized() *round.Round {
	r := &round.Round{View: policy.View{
		Target: policy.Target{Voters: 5, Configured: 3, Resized: true},
		Cluster: policy.Cluster{Reachable: true, Members: []policy.Member{
			{ID: 1, Live: true}, {ID: 2, Live: true}, {ID: 3, Live: true},
		}},
	}}
	r.Size = &record.Size{Voters: 5, By: "root", Reason: "two racks", Since: time.Unix(9, 0)}
	return r
}

func TestTheSizeOfTheClusterIsAMetric(t *testing.T) {
	t.Parallel()
	m := NewMetrics(&disk.Probe{}, func() time.Duration { return 0 })
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	if got := series(t, registry, "quorumd_cluster_size"); len(got) > 0 {
		t.Errorf("before the first round, a scrape shows %v", got)
	}
	m.last.Store(resized())
	want := map[string]float64{"quorumd_cluster_size[]": 5}
	if got := series(t, registry, "quorumd_cluster_size"); !maps.Equal(got, want) {
		t.Errorf("a scrape shows %v", got)
	}
}

func TestTheStatusShowsTheSizeAlsoWhileEtcdDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Cluster.Voters = 3
	p := &Publisher{opt: Options{Config: c, Now: func() time.Duration { return time.Minute }}}
	out := control.Cluster{Target: 3}
	if got := p.clusterStatus(out, &round.Round{}); got.Target != 3 || got.Size != nil {
		t.Errorf("never reached: %+v", got)
	}
	want := control.Size{Voters: 5, By: "root", Reason: "two racks", Since: time.Unix(9, 0)}
	if got := p.clusterStatus(out, resized()); got.Target != 5 || got.Size == nil || *got.Size != want {
		t.Errorf("reached: %+v", got)
	}
	p.reached.Store(resized())
	if got := p.clusterStatus(out, &round.Round{}); got.Target != 5 || got.Size == nil || *got.Size != want ||
		got.Reachable {
		t.Errorf("not reached now: %+v", got)
	}
}
