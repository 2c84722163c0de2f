// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// A run to rest is one fair schedule from a state: faults have stopped, every agent acts in each round, what etcd does
// by itself happens, and when nothing else changes, time passes. It is deterministic, so a state that a run has passed
// once need not be checked again.

// passes bounds a run to rest.
const passes = 400

// ending is how faults end before a run.
type ending struct {
	healed bool // everything is healed; otherwise nothing
	stays  bool // but hosts that are down stay down
	gone   bool // and so do agents that are
	mute   bool // and an unhealthy voter is too slow to answer from then on, for good: its vote counts
	landed bool // late calls land; otherwise they never do
}

func (m *machine) endings() []ending {
	list := []ending{{healed: true, landed: true}, {healed: true}, {}}
	if m.Repair || m.Unhealthy {
		list = append(list, ending{healed: true, stays: true}, ending{healed: true, stays: true, landed: true})
	}
	if m.Unhealthy {
		list = append(list, ending{healed: true, stays: true, gone: true})
	}
	if m.Tardy {
		list = append(list, ending{healed: true, stays: true, mute: true})
	}
	return list
}

// comesToRest checks the runs from a state: with all faults healed, and the late calls landing or not, the target must
// be reached; with nothing healed, the operation must still be freed.
func (m *machine) comesToRest(from *world) breach {
	m.inOrder = true
	defer func() { m.inOrder, m.mute = false, false }()
	for _, e := range m.endings() {
		m.boots, m.mute = e.healed && !e.stays, e.mute
		w := m.end(from, e)
		if e.stays && !e.gone && !w.unreplaced(m.Target) || e.gone && !w.unhealthySurplus(m.Target) {
			continue
		}
		if found := m.run(&w, e); found != fine {
			return found
		}
	}
	return fine
}

// end returns the world in which faults have ended.
func (m *machine) end(from *world, e ending) world {
	w := *from
	w.forget(!e.landed)
	if e.healed {
		w.heal(e, m.Unhealthy)
	}
	if e.landed {
		w.landAll(m)
	}
	return w
}

// forget forgets what does not matter to a run: the number of faults and, if late is set, the late calls, which then
// never land.
func (w *world) forget(late bool) {
	w.faults = 0
	w.pause = 0     // every pause ends
	w.alarm = 0     // and so does every alarm
	w.rmOver = w.rm // and every request
	for i := range w.n {
		h := &w.hosts[i]
		h.faulted = 0
		if late {
			h.lateAdd, h.latePromote, h.lateRemove, h.lateWrite = 0, 0, 0, 0
		}
	}
	w.tidy()
}

// heal undoes all faults. With stays, hosts that are down and voters that are unhealthy stay so; with gone, agents that
// do not run do not come back.
func (w *world) heal(e ending, unhealthy bool) {
	w.askedIsOver()
	for i := range w.n {
		h := &w.hosts[i]
		if e.stays && h.down != 0 {
			continue
		}
		if e.mute && h.list == voter && h.fit == slow && h.unit == active { // it still votes, and no longer serves
			h.unit = starting
		}
		if h.unit == taken && h.stopped == 0 {
			h.unit = inactive
		}
		if h.down != 0 && h.held != 0 && h.data == current { // the agent starts it
			h.unit = taken
		} else if h.down != 0 || (h.unit == inactive && h.data == current) || (h.unit == failed && h.data == current) {
			h.unit = inactive
			if h.data == current {
				w.starts(i)
			}
		}
		h.down, h.cutOff, h.apart, h.blind = 0, 0, 0, 0
		if !e.gone {
			h.agent = up
		}
		if !e.stays || !unhealthy || h.list != voter || h.fit != slow {
			h.fit = fit
		}
	}
	w.tidy()
}

// landAll lands every late call.
func (w *world) landAll(m *machine) {
	for i := range w.n {
		for k := evLateAdd; k <= evLateWrite; k++ {
			m.apply(w, event{k, uint8(i), 0})
		}
	}
}

// run runs a world to rest and judges it there.
func (m *machine) run(w *world, e ending) breach {
	var way []uint64
	healed := e.healed
	mark := hashOf(w, e)
	for range passes {
		// a host operation is only its host's
		if _, known := m.rest[mark]; known || (!healed && (w.op == 0 || w.opCycle != 0)) {
			break
		}
		way = append(way, mark)
		moved := m.pass(w)
		round := slices.Contains(way, hashOf(w, e)) // such as a unit that fails at every start
		if (!moved || round) && !m.waitAWhile(w) && !moved {
			if found := m.judgeRest(w, e); found != fine {
				return found
			}
			break
		}
		mark = hashOf(w, e)
	}
	switch {
	case len(way) == passes && healed:
		return noRest
	case len(way) == passes && w.tended():
		return operationStuck
	}
	for _, mark := range way {
		m.rest[mark] = struct{}{}
	}
	return fine
}

func hashOf(w *world, e ending) uint64 {
	k := w.canonical()
	h := hash(&k)
	if e.healed {
		h ^= 1<<63 | 1
	}
	if e.stays {
		h = ^h
	}
	if e.gone {
		h = bits.RotateLeft64(h, 7)
	}
	if e.mute {
		h = bits.RotateLeft64(h, 13)
	}
	return h
}

// isTakenDown reports whether a host is down in its operation or for its request: only the host and operators end that,
// so every run covers its return.
func (w *world) isTakenDown(i int) bool { return w.cycles(i) || w.hosts[i].stopped != 0 }

// pass runs every host and agent once, and reports whether anything has changed.
func (m *machine) pass(w *world) bool {
	before := w.pack()
	for i := range w.n {
		for _, k := range []kind{evUp, evLand, evHostBoots, evAct, evRound, evAct, evLand, evProgress} {
			stays := k == evUp && (w.mayHang(i) || m.mute && w.isUnhealthy(i)) ||
				k == evHostBoots && !m.boots && !w.isTakenDown(i)
			if !w.possible(k, i) || stays {
				continue
			}
			next := *w
			if ok, _ := m.apply(&next, event{k, uint8(i), 0}); ok {
				*w = next
			}
		}
	}
	return w.pack() != before
}

// waitAWhile lets the shortest time pass that something waits for.
func (m *machine) waitAWhile(w *world) bool {
	before := w.pack()
	for _, k := range []kind{
		evReported, evSettled, evMissed, evTriedOver, evServed, evCommandEnds, evCooled, evWaits, evValidityOver,
		evTimeout, evLeaseOver, evGraceOver, evOrphaned, evBackoffOver, evStalled, evClean, evTooLong,
	} {
		hosts := w.n
		if k.global() {
			hosts = 1
		}
		for i := range hosts {
			if !w.possible(k, i) {
				continue
			}
			next := *w
			ok, _ := m.apply(&next, event{k, uint8(i), 0})
			next.faults = 0
			if ok && next.pack() != before {
				*w = next
				return true
			}
		}
	}
	return false
}

// judgeRest returns what is wrong with a world in which nothing changes any more.
func (m *machine) judgeRest(w *world, e ending) breach {
	if !e.healed {
		if w.op != 0 && w.quorum() && w.tended() && !w.held() {
			return operationStuck
		}
		return fine
	}
	if e.gone {
		return w.judgeUnhealthyGone(m.Target)
	}
	if e.stays {
		return w.judgeRepaired(m.Target, m.Repair)
	}
	voters, _ := w.votes()
	want := min(m.Target.Voters, w.n)
	if want%2 == 0 {
		want--
	}
	learners := 0
	for i := range w.n {
		learners += int(bit(w.hosts[i].list == learner))
	}
	for i := range w.n {
		if w.hosts[i].ask != nothing {
			return notBack
		}
	}
	if (m.Unhealthy || m.Voters > want) && voters == want+1 &&
		w.op == 0 && w.lock < 0 && w.allServe() && m.tellsSurplus(w) {
		return fine // all are healthy by now: operators see a finding
	}
	switch {
	case w.rm != 0:
		return removalStands
	case voters != want || w.op != 0 || w.lock >= 0 || !w.allServe():
		return targetMissed
	case voters == m.Target.Voters && learners != min(m.Target.Standbys, w.n-voters):
		return targetMissed
	case voters != m.Target.Voters && learners > 0:
		return targetMissed
	}
	return fine
}

// tellsSurplus reports whether every voter's host reports the surplus voter.
func (m *machine) tellsSurplus(w *world) bool {
	for i := range w.n {
		if s := w.look(i); w.hosts[i].list == voter && m.decide(&s)[byNumber].reason != policy.TooManyVoters {
			return false
		}
	}
	return true
}

// tended reports whether an agent is responsible for freeing a stuck operation: the agent of a live voter.
func (w *world) tended() bool {
	for i := range w.n {
		h := &w.hosts[i]
		if h.list == voter && w.serves(i) && h.agent == up && h.cutOff == 0 {
			return true
		}
	}
	return false
}
