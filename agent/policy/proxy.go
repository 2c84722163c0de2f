// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// A host without a voter can proxy its clients to the voters of other hosts. The policy decides which voters may serve
// clients. The proxy then picks one of them for each connection, because it counts the connections to each.
//
// A voter should be live, healthy and not about to be stopped or removed. If there is no such voter, all live voters
// may serve, because a slow answer is better than none. If no voter seems live, all voters may serve, because this host
// itself may be cut off.

// ProxyTarget is a voter as a target for the clients of hosts without a voter.
type ProxyTarget struct {
	Member uint64 // the voter's member ID
	Name   string // the member's name; empty until the member has started once
	Use    bool   // the proxy may open connections to the voter, and keep existing ones
	Why    string // why the voter is not a good target, even if it is used for lack of a better one; else empty
}

// proxyBar is a reason not to send clients to a voter.
type proxyBar struct {
	grave bool // clients would get no answer, according to this host's observations
	holds func(v View, m Member) string
}

// proxyBars returns the reasons in the order in which they are checked. The first that applies is reported.
func proxyBars() []proxyBar {
	return []proxyBar{
		{true, func(_ View, m Member) string {
			if m.Live {
				return ""
			}
			return "does not answer"
		}},
		{false, whyLeaving},
		{false, func(v View, m Member) string {
			if h, present := v.hostOf(m); present && Unhealthy(h.Health) {
				return "is " + h.Health.String()
			}
			return ""
		}},
	}
}

// whyLeaving returns how the operation in flight takes a voter down or removes it; empty if it does neither.
func whyLeaving(v View, m Member) string {
	if v.Op == nil {
		return ""
	}
	h, present := v.hostOf(m)
	switch {
	case v.Op.removesMember(m):
		return fmt.Sprintf("is being removed (%s)", v.Op.noun())
	case v.Op.info().down && present && h.ID == v.Op.Host && !v.Op.back():
		return "is taken down"
	}
	return ""
}

// ProxyTargets returns the voters as targets, in the order of the member list. If there is a voter, at least one is
// used. If the cluster is unreachable, is not this host's or has no voter, ok is false and the last targets stay valid.
func ProxyTargets(v View) (all []ProxyTarget, ok bool) {
	if !v.Cluster.Reachable || v.Cluster.Foreign() {
		return nil, false
	}
	const best, live, last = 0, 1, 2
	var ranks []int
	least := last
	for m := range v.Cluster.voters() {
		f, rank := ProxyTarget{Member: m.ID, Name: m.Name}, best
		for _, bar := range proxyBars() {
			if f.Why = bar.holds(v, m); f.Why != "" {
				rank = live
				if bar.grave {
					rank = last
				}
				break
			}
		}
		all, ranks, least = append(all, f), append(ranks, rank), min(least, rank)
	}
	for i := range all {
		all[i].Use = ranks[i] == least
	}
	return all, len(all) > 0
}
