// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestTheSizeInEtcdCountsInsteadOfTheConfiguredNumber(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.Interval, c.Cluster.Voters, c.Cluster.Standbys = time.Second, 5, 1
	b := NewBuilder(c, "boot-1", "i", false)
	size := func(voters int) *record.Size { return &record.Size{Voters: voters} }
	for i, k := range []struct {
		what       string
		size       *record.Size
		unreadable bool
		gone       bool // etcd does not answer
		want       policy.Target
	}{
		{"none", nil, false, false, policy.Target{Voters: 5}},
		{"resized to 1", size(1), false, false, policy.Target{Voters: 1, Resized: true}},
		{
			"resized to 1 a second ago",
			size(1), false, false,
			policy.Target{Voters: 1, Resized: true, ResizedFor: time.Second},
		},
		{"etcd does not answer", nil, false, true, policy.Target{Voters: 5}},
		{
			"resized to 1, after a short gap", &record.Size{Voters: 1, WithoutSnapshot: true}, false, false,
			policy.Target{Voters: 1, Resized: true, WithoutSnapshot: true, ResizedFor: 3 * time.Second},
		},
		{"to 7", size(7), false, false, policy.Target{Voters: 7, Resized: true}},
		{"unreadable", nil, true, false, policy.Target{Voters: 3}},
		{"to 7 again", size(7), false, false, policy.Target{Voters: 7, Resized: true}},
		{"deleted", nil, false, false, policy.Target{Voters: 5}},
	} {
		r := quiet(uint64(i)+1, time.Duration(i+1)*time.Second)
		if r.Size = k.size; k.unreadable {
			r.Unreadable = []policy.Unreadable{{Kind: policy.RecordSize}}
		}
		if k.gone {
			r.ClusterState = round.ClusterState{EtcdAt: r.At, Problem: "no voter answers"}
		}
		k.want.Standbys, k.want.Configured = 1, 5
		if got := b.View(r, nil).Target; got != k.want {
			t.Errorf("%s: %+v, want %+v", k.what, got, k.want)
		}
	}
}

func TestTheViewOfALeaderHasTheSizeInEtcd(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.Interval, c.Cluster.Voters = time.Second, 5
	r := quiet(1, time.Second)
	led := r.ClusterState
	led.By, led.Size = 1, &record.Size{Voters: 3}
	r.Led = &led
	if v := NewBuilder(c, "boot-1", "i", false).View(r, nil); v.Led == nil || v.Led.Target.Voters != 3 {
		t.Errorf("%+v", v.Led)
	}
}
