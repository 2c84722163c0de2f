// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// networkGauges are the metrics of dead and unhealthy voters, and of this host's network connections to the other
// members: both ports of at most 16 members, labelled with the member's ID and name.
func networkGauges() []gauge {
	labels := []string{"member", "name", "port"}
	return []gauge{
		{
			"quorumd_voter_dead_seconds",
			"How long all live voters' hosts have reported a voter dead, as observed by this host; 0 if it is " +
				"not dead.",
			[]string{"member", "name"},
			deadVoters,
		},
		{
			"quorumd_voter_unhealthy_seconds",
			"How long a voter has reported itself SLOW or worse with independent confirmation; 0 if it has not.",
			[]string{"member", "name"},
			unhealthyVoters,
		},
		{
			"quorumd_network_reachable",
			"1 if a member's port answers this host's small and large requests, or refuses the connection.",
			labels,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				eachPort(r, func(port network.Port, of ...string) {
					if port.State != record.PortUnknown {
						emit(truth(!port.State.Broken()), of...)
					}
				})
			},
		},
		{
			"quorumd_network_rtt_seconds",
			"Time to connect to a member's port: median of the last 30 connections.", labels,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				eachPort(r, func(port network.Port, of ...string) {
					if port.RTT > 0 {
						emit(port.RTT.Seconds(), of...)
					}
				})
			},
		},
	}
}

func deadVoters(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	eachVoter(r, emit, func(v policy.View, since map[uint64]time.Duration) {
		for _, d := range policy.DeadVoters(v) {
			since[d.Member.ID] = d.For
		}
	})
}

func unhealthyVoters(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	eachVoter(r, emit, func(v policy.View, since map[uint64]time.Duration) {
		for _, s := range policy.UnhealthyVoters(v) {
			since[s.Member.ID] = s.For
		}
	})
}

// eachVoter emits a duration for every voter among the first network.MaxMembers members: the value that fill stores in
// the map, or 0.
func eachVoter(r *round.Round, emit func(float64, ...string), fill func(policy.View, map[uint64]time.Duration)) {
	if r == nil || !r.View.Cluster.Reachable {
		return
	}
	since := map[uint64]time.Duration{}
	fill(r.View, since)
	for i, m := range r.View.Cluster.Members {
		if !m.Learner && i < network.MaxMembers {
			emit(since[m.ID].Seconds(), record.MemberID(m.ID).String(), labelName(m.Name))
		}
	}
}

// labelBytes limits a member's name in a label, because etcd accepts any name.
const labelBytes = 64

func eachPort(r *round.Round, each func(port network.Port, of ...string)) {
	if r == nil {
		return
	}
	for _, s := range r.Probes {
		id, name := record.MemberID(s.Member).String(), labelName(s.Name)
		each(s.Peer, id, name, "peer")
		each(s.Client, id, name, "client")
	}
}

func labelName(name string) string {
	name = strings.ToValidUTF8(name, "?")
	for len(name) > labelBytes {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}
