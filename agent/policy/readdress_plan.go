// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
)

// ReaddressPlan returns the steps that a readdress of these hosts takes if nothing fails, host by host in the order of
// a rollout. Each step states the fault tolerance after the step. While etcd restarts, the fault tolerance is one less.
func ReaddressPlan(v View, hosts []RolloutHost) (steps []PlanStep) {
	return planned(v, hosts, func(h RolloutHost, add func(PlanChange, string)) {
		leaderMoves(v, h, add)
		if h.NewPeerURL != "" {
			add(PlanUpdates, h.Name+": the peer URL in the member list changes from "+h.PeerURL+" to "+h.NewPeerURL+
				"; from here on the host completes the change")
		}
		text := h.Name + ": etcd restarts"
		if h.NewClientURL != "" {
			text += " and registers the client URL " + h.NewClientURL
		}
		if h.NewPeerURL == "" && h.NewClientURL == "" {
			text += "; its URLs are unchanged"
		}
		add(PlanRestarts, text+". The hosts of all other members report that their etcd has connected to it")
	})
}

// planned builds a plan: for every host, in the order of a rollout, it calls the function each, which adds that host's
// steps. None of the steps counts as changing how many voters are live.
func planned(v View, hosts []RolloutHost,
	each func(h RolloutHost, add func(change PlanChange, text string)),
) (steps []PlanStep) {
	rank := func(h RolloutHost) int {
		i := slices.IndexFunc(v.Hosts, func(o Host) bool { return o.ID == h.ID })
		if i < 0 {
			return 0
		}
		return v.rolloutRank(v.Hosts[i])
	}
	order := slices.SortedStableFunc(slices.Values(hosts), func(a, b RolloutHost) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	for _, h := range order {
		each(h, func(change PlanChange, text string) {
			step := v.planStep(text)
			if step.Change = change; change != "" {
				step.Host = h.Name
			}
			steps = append(steps, step)
		})
	}
	return steps
}

// leaderMoves adds the leadership transfer with which the leader's host begins.
func leaderMoves(v View, h RolloutHost, add func(PlanChange, string)) {
	for m := range v.Cluster.voters() {
		if m.PeerURL == h.PeerURL && m.Leader {
			add(PlanTransfers, "leadership is transferred from "+h.Name+" to another voter")
		}
	}
}

// AbsentMembers returns the names of the members whose hosts have no host record, so that a rollout of all hosts leaves
// them out.
func AbsentMembers(v View) (names []string) {
	for _, m := range v.Cluster.Members {
		if _, present := v.hostOf(m); !present {
			names = append(names, m.label())
		}
	}
	return names
}
