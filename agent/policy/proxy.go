// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// A host without a voter may proxy its clients to the voters of others. Which of them serve is decided here, from the
// same view as everything else; the proxy picks one for each connection, since it knows how many each has.
//
// A voter should be live, healthy and not about to leave. There may be none: then live voters serve, however slow,
// because a slow answer is better than none; and if none seems live, all do, because this host may be the one that is
// cut off.

// ProxyTarget is a voter as a target for clients of hosts without one.
type ProxyTarget struct {
	Member uint64 // its ID
	Name   string // of the member; empty until it has started once
	Use    bool   // new connections may go there, and existing ones may stay
	Why    string // what speaks against it, even if it is used for lack of a better one; or empty
}

// forwardBar is a reason not to send clients to a voter.
type proxyBar struct {
	grave bool // such a voter is of no use, as far as this host knows
	holds func(v View, m Member) string
}

// forwardBars are checked in this order; the first that holds is reported.
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

// leaves reports whether the operation in flight takes a voter down or removes it.
func whyLeaving(v View, m Member) string {
	if v.Op == nil {
		return ""
	}
	h, present := v.hostOf(m)
	switch {
	case v.Op.removesMember(m):
		return fmt.Sprintf("is taken out (%s)", v.Op.Kind)
	case v.Op.info().down && present && h.ID == v.Op.Host && v.Op.Phase != PhaseBack:
		return "is taken down"
	}
	return ""
}

// ProxyTargets returns which voters clients may be sent to, in the order of the member list. There is one to use
// whenever there is a voter. A view of a cluster that is unreachable, or not this host's, is no ground to change
// anything: then ok is false, and the last targets stay.
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
