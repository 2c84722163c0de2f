// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/health"
)

// leavers returns the hosts whose voters may leave, in the order in which they leave: first retired hosts, then
// unhealthy ones, then those in the failure domain with the most voters. Among hosts that are equal so far, the leader
// comes last. Among the retired hosts, those whose named successor does not vote yet come last.
func leavers(v View) []Host {
	inDomain, leader := map[string]int{}, ""
	var list []Host
	for m := range v.Cluster.voters() {
		if m.Leader {
			leader = m.PeerURL
		}
		h, present := v.hostOf(m)
		if domain := cmp.Or(h.Domain, m.Domain); domain != "" {
			inDomain[domain]++
		}
		if present && h.Manage && !h.InOperation {
			list = append(list, h)
		}
	}
	first := func(holds bool) int {
		if holds {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(first(v.isRetired(a.ID)), first(v.isRetired(b.ID))),
			cmp.Compare(first(!v.awaitsSuccessor(a)), first(!v.awaitsSuccessor(b))),
			cmp.Compare(first(leavesUnhealthy(a)), first(leavesUnhealthy(b))),
			cmp.Compare(inDomain[b.Domain], inDomain[a.Domain]),
			cmp.Compare(first(a.PeerURL != leader), first(b.PeerURL != leader)), // the leader last
			cmp.Compare(known(b.P99), known(a.P99)),                             // the slower disk first
			cmp.Compare(b.ID, a.ID),
		)
	})
	return list
}

// awaitsSuccessor reports whether a host is named to replace h, and does not vote yet.
func (v View) awaitsSuccessor(h Host) bool {
	return slices.ContainsFunc(v.keptPlaces(), func(k keptPlace) bool { return k.retired.PeerURL == h.PeerURL })
}

// leavesUnhealthy reports whether a host is unhealthy, so that its voter leaves before healthy ones.
func leavesUnhealthy(h Host) bool {
	return Unhealthy(h.Health) && blocks(h.Health, h.Ungated, health.Joins)
}

// notFirstToLeave reports whether another voter leaves first, this host's named successor must join first, or this host
// is in an operation or only observes. A host that does not act must not block the others forever.
func notFirstToLeave(v View) (string, bool) {
	if m, listed := v.member(); listed && m.Learner {
		return "", false
	}
	list := leavers(v)
	position := slices.IndexFunc(list, func(h Host) bool { return h.ID == v.Self.ID })
	own, _ := v.member()
	k, awaited := v.keptVoter(own, v.Self.ID)
	switch {
	// the replacement that has joined is for another retired voter
	case awaited && v.retiring() > 1 && v.votersMissing():
		return k.Name + ", which replaces this host, has not joined yet", true
	case position < 0:
		return "this host is in an operation, or its quorumd only observes", true
	case position == 0 || min(v.IdleFor, v.Target.ResizedFor) >= patience(v, position):
		return "", false
	}
	return list[0].Name + " leaves first", true
}

// nextToLeave describes which voter leaves next, or why none does now.
func (v View) nextToLeave() string {
	list := leavers(v)
	if len(list) == 0 {
		return "no voter's host runs quorumd in mode manage"
	}
	if v.Pause != nil {
		return paused(v.Pause).Text
	}
	if text, holds := aloneWithoutSnapshot(v); holds {
		return text
	}
	if m, voter := v.voterOf(list[0]); voter {
		if text, last := lastOfUpgrade(v, m, Version{}); last {
			return text
		}
	}
	for m := range v.Cluster.voters() { // no voter leaves while another one is in doubt
		if doubt := v.notProven(m, health.Maintenance); doubt != "" && m.PeerURL != list[0].PeerURL {
			return fmt.Sprintf("%s leaves next, but voter %s %s", list[0].Name, m.label(), doubt)
		}
	}
	return list[0].Name + " leaves next"
}
