// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// A leader that is not well may give way at any look. It needs no lock and changes nothing in a world in which every
// voter may lead at every look; so it is judged when it is decided on, beside all that the others do meanwhile. How
// often it is done is for the walk in giveway_test.go, which knows who leads.

// mayGiveWay tells whether it matters that a host leads which has no operation of its own.
func (w *world) mayGiveWay(h int) bool {
	a := &w.hosts[h]
	return a.fit == slow && a.list == voter && w.serves(h) && !w.opHosts(h)
}

// judgeGiveWay asks whether the leadership may be handed over, and to whom.
func (w *world) judgeGiveWay(h, to int) breach {
	a, t := &w.hosts[h], &w.hosts[to]
	removed := w.opRemove != 0 || w.rm != 0 && int(w.rmBy) == h
	switch {
	case w.opHosts(h) || w.noted(h) || w.owns(h) || a.fit != slow:
		return gaveWayInTurn
	case t.list != voter || !w.serves(to):
		return gaveWayToDead
	case !w.present(to) || t.fit == slow || t.fit == unknown:
		return gaveWayToWorse
	case t.ask != nothing && !w.isOver(to), t.turn(), w.opHosts(to), removed && int(w.rmWho) == to:
		return gaveWayToTaken
	}
	return fine
}

// giveWayMistakes are mistakes about a leader that is not well.
func giveWayMistakes() []Mistake {
	others := func(change func(v *policy.View, h *policy.Host)) rules {
		return seeing(func(v *policy.View) {
			for i := range v.Hosts {
				if v.Hosts[i].ID != v.Self.ID {
					change(v, &v.Hosts[i])
				}
			}
		})
	}
	// of two voters, so that the other one is the best there is
	asked := func(sc *Scenario) { of(2, 2, 1, VerdictChange)(sc); sc.Asks = 1 }
	return []Mistake{
		{
			Name: "a leader gives way to a host that is to be taken down", breach: gaveWayToTaken, scope: asked,
			rules: others(func(_ *policy.View, h *policy.Host) { h.Wants, h.Waiting = "", "" }),
		},
		{
			Name: "a leader gives way to a member that is being removed", breach: gaveWayToTaken,
			scope: func(sc *Scenario) { of(3, 3, 1, VerdictChange)(sc); sc.Removals = 1 },
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op.MemberID = 0
				}
			}),
		},
		{
			Name: "a leader gives way to another that is sick", breach: gaveWayToWorse,
			scope: of(2, 2, 2, VerdictChange),
			rules: others(func(_ *policy.View, h *policy.Host) { h.Health = health.OK }),
		},
		{
			Name: "a leader gives way to one of which nothing is known", breach: gaveWayToWorse,
			scope: of(2, 2, 2, VerdictChange),
			rules: others(func(_ *policy.View, h *policy.Host) {
				if h.Health == health.Unknown {
					h.Health = health.OK
				}
			}),
		},
		{
			Name:   "a leader reads the wrong way round which other voters are down, and gives way to one that is",
			breach: gaveWayToDead, scope: of(3, 3, 2, VerdictChange|EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live = m.Live == (m.PeerURL == v.Self.PeerURL) })
			}),
		},
		{
			Name: "a leader gives way within its own turn", breach: gaveWayInTurn,
			scope: func(sc *Scenario) { of(3, 3, 1, VerdictChange)(sc); sc.Asks = 1 },
			rules: seeing(func(v *policy.View) { v.Lock.Mine = v.Lock.Mine && v.Op != nil }),
		},
	}
}
