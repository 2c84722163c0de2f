// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// ruinPasses bounds a run to rest.
const ruinPasses = 200

// comesToRest checks one fair run from a world: everything is healed, agents act, and operators follow the
// documentation. At its end every host is a voter again, or the old quorum is back.
func (m *ruinMachine) comesToRest(start *ruins) bool {
	w := *start
	w.spent = 0
	var way []ruins
	for range ruinPasses {
		if m.rests[w] {
			break
		}
		way = append(way, w)
		before := w
		m.pass(&w)
		if w == before {
			if !m.atRest(&w) {
				return false
			}
			break
		}
	}
	if len(way) == ruinPasses {
		return false
	}
	for _, on := range way {
		m.rests[on] = true
	}
	return true
}

// pass heals, lets every agent act once, and lets operators do the next thing.
func (m *ruinMachine) pass(w *ruins) {
	for i := range m.Voters {
		h := &w.hosts[i]
		h.apart, h.dead = 0, 0
		if h.off != 0 {
			h.boot()
		}
		m.settle(w)
		if h.copying == copyRuns {
			h.copying = copyBroken
			if to, ok := m.copied(w, i); ok {
				*w = to
			}
		}
		if h.step == ruinNone {
			o := m.look(w, i)
			h.step, _ = ruinStep(m.decide(&o).Step)
			if h.on = h.plan; o.late != 0 {
				h.on = unplanned + o.seen
			}
		}
		if h.step != ruinNone {
			*w = m.act(w, i)[0]
		}
		m.settle(w)
	}
	m.peopleGoOn(w)
	m.settle(w)
}

// peopleGoOn abandons plans that are not carried out, and makes and applies one if nothing serves.
func (m *ruinMachine) peopleGoOn(w *ruins) {
	serving := m.serving(w)
	for i := range m.Voters {
		h := &w.hosts[i]
		k := h.plan
		if k == 0 || h.givenUp != 0 || serving>>made(k)&1 != 0 || serving>>oldCluster&1 != 0 {
			continue
		}
		s := &w.hosts[w.plans[k-1].survivor-1]
		stuck := h.copying != copyNone && w.plans[k-1].stale != 0
		if serving != 0 || s.plan != k && s.last != k || stuck {
			if to, ok := w.giveUp(i); ok {
				*w = to
			}
		}
	}
	if serving != 0 {
		return
	}
	for k := uint8(maxPlans); k > 0; k-- {
		p := w.plans[k-1]
		if p.survivor == 0 {
			continue
		}
		s := &w.hosts[p.survivor-1]
		if s.plan == k || s.last == k {
			return // it is in progress
		}
		if to, ok := m.apply(w, int(p.survivor)-1, k); ok && s.plan == 0 {
			*w = to
			return
		}
	}
	if to, ok := m.plan(w, 1); ok {
		*w = to
	}
}

// atRest reports whether every host is a voter of the serving cluster, and no host has a plan left.
func (m *ruinMachine) atRest(w *ruins) bool {
	c := m.seen(w, 0)
	for i := range m.Voters {
		h := &w.hosts[i]
		switch {
		case c == nowhere, h.plan != 0:
			return false
		case c == oldCluster: // operators remove the member of a host with a new disk
			if h.noted > oldCluster || h.data > oldCluster || h.data == oldCluster && h.runs == 0 {
				return false
			}
		case h.data != c || h.noted != c || h.runs == 0:
			return false
		}
	}
	return true
}
