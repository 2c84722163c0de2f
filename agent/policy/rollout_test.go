// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestARolloutTakesUnhealthyHostsFirstThenNonVotersAndTheLeaderLast(t *testing.T) {
	t.Parallel()
	host := func(id string, state health.State) Host {
		return Host{ID: id, Name: id, PeerURL: peerPrefix + id, Manage: true, Stores: true, Health: state}
	}
	v := View{
		Hosts: []Host{
			host("leader", health.OK), host("follower-b", health.OK), host("follower-a", health.Warm),
			host("unhealthy", health.Slow),
			host("standby", health.OK), host("spare", health.OK),
		},
		Cluster: Cluster{Members: []Member{
			{ID: 1, PeerURL: peerPrefix + "leader", Leader: true},
			{ID: 2, PeerURL: peerPrefix + "follower-a"},
			{ID: 3, PeerURL: peerPrefix + "follower-b"},
			{ID: 4, PeerURL: peerPrefix + "unhealthy"},
			{ID: 5, PeerURL: peerPrefix + "standby", Learner: true},
		}},
	}
	want := []string{"unhealthy", "spare", "standby", "follower-a", "follower-b", "leader"}
	waiting := append([]string{"gone"}, want...) // an absent host is skipped
	var order []string
	for next := RolloutNext(v, waiting); next != ""; next = RolloutNext(v, waiting) {
		order = append(order, next)
		waiting = slices.DeleteFunc(waiting, func(id string) bool { return id == next })
	}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}

	for i, name := range []string{"a", "c", "b", "f", "d", "e"} { // the role outranks the name
		v.Hosts[i].Name = name
	}
	waiting, order = slices.Clone(want), nil
	for next := RolloutNext(v, waiting); next != ""; next = RolloutNext(v, waiting) {
		order = append(order, next)
		waiting = slices.DeleteFunc(waiting, func(id string) bool { return id == next })
	}
	if !slices.Equal(order, []string{"unhealthy", "spare", "standby", "follower-a", "follower-b", "leader"}) {
		t.Errorf("with names in a different order, the order is %v", order)
	}
	v.Hosts[1].Wants = WorkRestart
	if next := RolloutNext(v, want); next != "" {
		t.Errorf("%s is next, although a host has a request already", next)
	}
	v.Hosts[1].Wants = ""
	v.Hosts[3].Manage = false
	if next := RolloutNext(v, want); next != "spare" {
		t.Errorf("%s is next, and the unhealthy host's quorumd only observes", next)
	}
}
