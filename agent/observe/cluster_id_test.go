// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

func TestAHostBelongsToTheConfiguredNotedOrServedCluster(t *testing.T) {
	t.Parallel()
	active := systemd.Status{LoadState: "loaded", State: systemd.Active}
	of := func(id uint64) *round.Round {
		return &round.Round{Data: round.HostState[datadir.Contents]{OK: true, Value: datadir.Contents{ClusterID: id}}}
	}
	for name, c := range map[string]struct {
		set    string
		noted  uint64
		unit   systemd.Status
		before *round.Round
		listed uint64
		want   uint64
	}{
		"nothing known": {"", 0, active, nil, 0, 0},
		"recorded":      {"", 5, active, of(6), 6, 5},
		"configured":    {"7", 5, active, of(6), 6, 7},
		"the local etcd serves the listed cluster": {"", 0, active, of(6), 6, 6},
		"a different cluster was listed":           {"", 0, active, of(6), 8, 0},
		"no cluster was listed":                    {"", 0, active, of(6), 0, 0},
		"etcd is inactive":                         {"", 0, systemd.Status{LoadState: "loaded"}, of(6), 6, 0},
	} {
		o := &Observer{before: c.before, opt: Options{Config: config.Config{Cluster: config.Cluster{ID: c.set}}}}
		o.home.ClusterID = c.listed
		r := &round.Round{Unit: c.unit}
		r.Noted.Cluster = c.noted
		if got := o.clusterID(r); got != c.want {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}

// While another cluster answers, this host still asks its own members.
func TestMembersOfAForeignClusterAreNotAskedOneByOne(t *testing.T) {
	t.Parallel()
	o := &Observer{}
	seen := func(own, id uint64) *round.Round {
		r := &round.Round{}
		r.Reachable, r.Membership = true, cluster.Membership{ClusterID: id, Members: []cluster.Member{{ID: id}}}
		r.View.Cluster = policy.Cluster{Reachable: true, ID: id, ExpectedID: own}
		return r
	}
	o.Done(seen(1, 1))
	o.Done(seen(1, 2))
	if got := o.lastListed(); got.ClusterID != 1 {
		t.Errorf("asked the members of cluster %d", got.ClusterID)
	}
	o.Done(seen(2, 2)) // a recovery was noted
	if got := o.lastListed(); got.ClusterID != 2 {
		t.Errorf("asked the members of cluster %d", got.ClusterID)
	}
}
