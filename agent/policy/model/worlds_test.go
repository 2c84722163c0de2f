// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// voterView returns the view of host h, a voter of a cluster with that many voters in which nothing is wrong. Each kind
// of world adds the members and the hosts, and changes what differs.
func voterView(h, voters int) policy.View {
	name := hostName(h)
	return policy.View{
		Self: policy.Self{
			ID: name, Name: name, PeerURL: name, Mode: policy.Manage, Drives: true, Etcd: etcdVersion(),
			DataMount: mount, MemberID: memberID(h), ClusterID: clusterID,
		},
		Target: policy.Target{Voters: voters, Configured: voters}, Limits: limits(), IdleFor: ages,
		Unit: policy.Unit{State: policy.UnitActive, Since: ages, Ran: true, EnvReady: true, SinceStart: policy.Never},
		Data: policy.Data{
			State: policy.DataMember, ClusterID: clusterID, MemberID: memberID(h), Free: 1 << 40, FreeKnown: true,
			Mount: mount,
		},
		Health: policy.Health{State: health.OK, Qualified: true}, Clock: policy.Clock{Known: true},
		Bootstrap: policy.Bootstrap{Done: true, Listed: true, LastCluster: clusterID},
		Cluster: policy.Cluster{
			Reachable: true, Listed: true, Fresh: true, ID: clusterID, ExpectedID: clusterID, StableFor: ages,
			DBSize: 1 << 20, Intact: true, Roomy: true,
		},
		HostsFresh: true, Lock: policy.Lock{Known: true, Token: tokenNow},
	}
}

// withoutQuorum returns the view as it would be if no voter answered.
func withoutQuorum(v policy.View) policy.View {
	v.Cluster = policy.Cluster{ExpectedID: clusterID, Error: "no voter answers"}
	v.HostsFresh, v.Lock = false, policy.Lock{}
	return v
}

// worlds describes an exploration of small worlds, separate from the scopes of the model.
type worlds[W comparable] struct {
	first      W
	successors func(W) (next []W, events []string) // the worlds after each possible event
	breach     func(W) string                      // the promise that the last event broke, or an empty string
	faults     func(W) int                         // the number of faults so far
	ends       func(W) bool                        // nothing more has to happen
	liveness   string                              // the promise that every world can come to an end
}

// explore returns the first broken promise with its trace, or an empty string, and the number of states. A world from
// which no course of events without faults comes to an end breaks the promise in liveness.
func (s worlds[W]) explore() (string, int) {
	type edge struct {
		from  int
		event string
	}
	all, number, came := []W{s.first}, map[W]int{s.first: 0}, []edge{{-1, ""}}
	before := [][]int{nil} // predecessors without a fault
	trace := func(i int) string {
		var lines []string
		for ; came[i].from >= 0; i = came[i].from {
			lines = append(lines, came[i].event)
		}
		slices.Reverse(lines)
		return strings.Join(lines, "\n")
	}
	for i := 0; i < len(all); i++ {
		next, events := s.successors(all[i])
		for k, n := range next {
			at, known := number[n]
			if !known {
				at, number[n] = len(all), len(all)
				all, came, before = append(all, n), append(came, edge{i, events[k]}), append(before, nil)
			}
			if promise := s.breach(n); promise != "" {
				return promise + "\n" + trace(at), len(all)
			}
			if s.faults(n) == s.faults(all[i]) {
				before[at] = append(before[at], i)
			}
		}
	}
	if i := slices.Index(reaching(all, before, s.ends), false); i >= 0 {
		return fmt.Sprintf("%s\n%s\n%+v", s.liveness, trace(i), all[i]), len(all)
	}
	return "", len(all)
}

// reaching reports for each world whether some course of events without faults leads from it to an end.
func reaching[W any](all []W, before [][]int, end func(W) bool) []bool {
	ends, queue := make([]bool, len(all)), []int{}
	for i, w := range all {
		if end(w) {
			ends[i], queue = true, append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, p := range before[queue[0]] {
			if !ends[p] {
				ends[p], queue = true, append(queue, p)
			}
		}
	}
	return ends
}
