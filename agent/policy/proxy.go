// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// A host without a voter may forward its clients to the voters of others. Which of them serve is decided here, from the
// same view as everything else; which one a connection goes to is the forwarder's, who knows how many each has.
//
// What is wanted is a voter that lives, is not sick, and does not leave. It is no promise that there is one: when none
// is left, voters that live serve, however slow, because a slow answer is better than none; and when none seems to
// live they all do, because then it may well be this host that does not see them.

// ProxyTarget is a voter as a place for clients of hosts without one.
type ProxyTarget struct {
	Member uint64 // its ID
	Name   string // of the member; empty until that has started once
	Use    bool   // new connections may go there, and those that are there may stay
	Why    string // for people, what speaks against it, even where it is used for want of a better one; or empty
}

// forwardBar speaks against sending clients to a voter.
type forwardBar struct {
	grave bool // a voter of which it holds is of no use to anybody, as far as this host knows
	holds func(v View, m Member) string
}

// forwardBars are looked at in this order; the first that holds is told.
func forwardBars() []forwardBar {
	return []forwardBar{
		{true, func(_ View, m Member) string {
			if m.Live {
				return ""
			}
			return "does not answer"
		}},
		{false, leaves},
		{false, func(v View, m Member) string {
			if h, present := v.hostOf(m); present && sick(h.Health) {
				return "is " + h.Health.String()
			}
			return ""
		}},
	}
}

// leaves tells whether the operation in flight takes a voter down or out.
func leaves(v View, m Member) string {
	if v.Op == nil {
		return ""
	}
	h, present := v.hostOf(m)
	switch {
	case v.Op.takesOut(m):
		return fmt.Sprintf("is taken out (%s)", v.Op.Kind)
	case v.Op.info().down && present && h.ID == v.Op.Host && v.Op.Phase != PhaseBack:
		return "is taken down"
	}
	return ""
}

// ProxyTargets tells which voters clients may be sent to, in the order of the member list. There is one to use whenever
// there is a voter. What a view says of a cluster that is not reachable, or not this host's, is no ground to send
// anybody anywhere: then ok is false, and what was last known stays.
func ProxyTargets(v View) (all []ProxyTarget, ok bool) {
	if !v.Cluster.Reachable || v.Cluster.Foreign() {
		return nil, false
	}
	const best, live, last = 0, 1, 2
	var ranks []int
	least := last
	for m := range v.Cluster.voters() {
		f, rank := ProxyTarget{Member: m.ID, Name: m.Name}, best
		for _, bar := range forwardBars() {
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
