// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// A liveness run is one fair schedule from a state until the world is quiescent, which means that nothing changes any
// more. Faults have stopped, every agent acts in each pass, etcd makes progress, and if nothing else changes, time
// passes. A run is deterministic, so a state on the path of a successful run needs no further check.

// maxPasses bounds a liveness run.
const maxPasses = 400

// ending is how faults end before a run.
type ending struct {
	healed         bool // all faults are healed, with the exceptions below; otherwise only pauses and alarms end
	hostsStayDown  bool // hosts that are down stay down, and unhealthy voters stay unhealthy
	agentsStayDown bool // agents that are down stay down
	staysTardy     bool // an unhealthy voter becomes and stays too slow to answer, but votes
	lateCallsLand  bool // late calls land; otherwise they never do
}

func (m *machine) endings() []ending {
	list := []ending{{healed: true, lateCallsLand: true}, {healed: true}, {}}
	if m.Repair || m.Unhealthy {
		list = append(list, ending{healed: true, hostsStayDown: true},
			ending{healed: true, hostsStayDown: true, lateCallsLand: true})
	}
	if m.Unhealthy {
		list = append(list, ending{healed: true, hostsStayDown: true, agentsStayDown: true})
	}
	if m.Tardy {
		list = append(list, ending{healed: true, hostsStayDown: true, staysTardy: true})
	}
	return list
}

// checkLiveness checks the runs from a state. If all faults are healed, the agents must reach the target, whether
// or not late calls land. If voters stay down or unhealthy, the agents must replace or remove them where the policy
// promises that. If nothing is healed, they must still end every operation except host operations and removals that
// must continue, and bring back a host that the cluster needs.
func (m *machine) checkLiveness(from *world) breach {
	m.inOrder = true
	defer func() { m.inOrder, m.staysTardy = false, false }()
	for _, e := range m.endings() {
		w, checked := m.applyEnding(from, e)
		if !checked {
			continue
		}
		if found := m.runUntilQuiescent(&w, e); found != fine {
			return found
		}
	}
	return fine
}

// applyEnding returns the world in which faults have ended, and prepares the machine for the run from it. checked is
// false if no promise applies to that run.
func (m *machine) applyEnding(from *world, e ending) (w world, checked bool) {
	m.bootsHosts, m.staysTardy = e.healed && !e.hostsStayDown, e.staysTardy
	w = *from
	w.forgetHistory(!e.lateCallsLand)
	if m.awaitsDecision() {
		w.oldest = 0
	}
	if e.healed {
		w.heal(e, m.Unhealthy)
	}
	if e.lateCallsLand {
		w.landAll(m)
	}
	switch {
	case e.agentsStayDown:
		return w, w.unhealthySurplus(m.target(w.resized))
	case e.hostsStayDown:
		return w, w.mustReplace(m.target(w.resized))
	}
	return w, true
}

// forgetHistory drops the fault count, pauses, alarms and, if late is set, late calls, which then never land. It lets
// requests to remove a member or to transfer leadership expire.
func (w *world) forgetHistory(late bool) {
	w.faults = 0
	w.pause = 0
	w.alarm = 0
	w.rmExpired, w.trExpired = w.rmRequested, w.trRequested
	for i := range w.n {
		h := &w.hosts[i]
		h.faulted = 0
		if late {
			h.lateAdd, h.latePromote, h.lateUpdate, h.lateRemove, h.lateWrite = 0, 0, 0, 0, 0
		}
	}
	w.tidy()
}

// heal heals all faults except those that the ending excludes. Unhealthy voters stay unhealthy only in scopes that
// replace them.
func (w *world) heal(e ending, unhealthy bool) {
	w.finishRequests()
	w.lowered = 0
	for i := range w.n {
		h := &w.hosts[i]
		if e.hostsStayDown && h.down != 0 {
			continue
		}
		if e.staysTardy && h.list == voter && h.health == slow && h.unit == active {
			h.unit = starting // the voter still votes, but no longer serves
		}
		if h.unit == stoppedForRequest && h.stopped == 0 {
			h.unit = inactive
		}
		if h.down != 0 && h.startGuard != 0 && h.data == current { // the agent has to start etcd
			h.unit = stoppedForRequest
		} else if h.down != 0 || (h.unit == inactive && h.data == current) || (h.unit == failed && h.data == current) {
			h.unit = inactive
			if h.data == current {
				w.starts(i)
			}
		}
		h.down, h.cutOff, h.isolated, h.blind = 0, 0, 0, 0
		if !e.agentsStayDown {
			h.agent = up
		}
		if !e.hostsStayDown || !unhealthy || h.list != voter || h.health != slow {
			h.health = healthy
		}
	}
	w.tidy()
}

// landAll applies every late call.
func (w *world) landAll(m *machine) {
	for i := range w.n {
		for k := evLateAdd; k <= evLateWrite; k++ {
			m.apply(w, event{k, uint8(i), 0})
		}
	}
}

// runUntilQuiescent runs a world until it is quiescent, and checks it then.
func (m *machine) runUntilQuiescent(w *world, e ending) breach {
	var path []uint64
	healed := e.healed
	mark := endingHash(w, e)
	for range maxPasses {
		// Without healing, only two things are checked: every operation ends, except host operations and removals
		// that must continue, and a host that the cluster needs returns. Only the host that is taken down ends a
		// host operation.
		if _, known := m.live[mark]; known || (!healed && (w.op == 0 || w.opCycle != 0) && !w.recallDue()) {
			break
		}
		path = append(path, mark)
		moved := m.pass(w)
		loops := slices.Contains(path, endingHash(w, e)) // a loop, such as a unit that fails at every start
		if (!moved || loops) && !m.advanceTime(w) && !moved {
			if found := m.judgeQuiescent(w, e); found != fine {
				return found
			}
			break
		}
		mark = endingHash(w, e)
	}
	switch {
	case len(path) == maxPasses && healed:
		return neverQuiescent
	case len(path) == maxPasses && w.recallDue():
		return neverRecalled
	case len(path) == maxPasses && w.hasVoterAgent():
		return operationStuck
	}
	for _, mark := range path {
		m.live[mark] = struct{}{}
	}
	return fine
}

func endingHash(w *world, e ending) uint64 {
	k := w.canonical()
	h := hash(&k)
	if e.healed {
		h ^= 1<<63 | 1
	}
	if e.hostsStayDown {
		h = ^h
	}
	if e.agentsStayDown {
		h = bits.RotateLeft64(h, 7)
	}
	if e.staysTardy {
		h = bits.RotateLeft64(h, 13)
	}
	return h
}

// isTakenDown reports whether a host is in its operation or has stopped etcd for its request. Only the host and
// operators can end that state, so the host boots in every run.
func (w *world) isTakenDown(i int) bool { return w.cycles(i) || w.hosts[i].stopped != 0 }

// pass runs every host and agent once, and reports whether anything has changed.
func (m *machine) pass(w *world) bool {
	before := w.pack()
	for i := range w.n {
		for _, k := range []kind{evUnitChanges, evLand, evHostBoots, evAct, evRound, evAct, evLand, evProgress} {
			stays := k == evUnitChanges && (w.mayHang(i) || m.staysTardy && w.isUnhealthy(i)) ||
				k == evHostBoots && !m.bootsHosts && !w.isTakenDown(i)
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

// advanceTime lets the shortest pending time pass, and reports whether there was one.
func (m *machine) advanceTime(w *world) bool {
	before := w.pack()
	for _, k := range []kind{
		evConnected, evReported, evSettled, evLearnerLags, evRetryDue, evServed, evCommandEnds, evCooled, evRecordAges,
		evValidityOver, evTimeout, evLeaseOver, evGraceOver, evOrphaned, evBackoffOver, evStalled, evEjectionWaitOver,
		evTooLong,
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
	return w.lateRemovalsExpire() || m.readdressAgain(w)
}

// lateRemovalsExpire drops removals and updates of peer URLs that have not been applied yet, and reports whether there
// were any. Etcd applies them within the lock's TTL or never.
func (w *world) lateRemovalsExpire() bool {
	before := w.pack()
	for i := range w.n {
		w.hosts[i].lateRemove, w.hosts[i].lateUpdate = 0, 0
	}
	w.tidy()
	return w.pack() != before
}

// judgeQuiescent checks a world in which nothing changes any more.
func (m *machine) judgeQuiescent(w *world, e ending) breach {
	if !e.healed {
		if w.recallDue() {
			return neverRecalled
		}
		if w.op != 0 && w.quorum() && w.hasVoterAgent() && !w.removalMustContinue() {
			return operationStuck
		}
		return fine
	}
	if e.agentsStayDown {
		return w.judgeUnhealthyGone(m.target(w.resized))
	}
	if e.hostsStayDown {
		return w.judgeRepaired(m.target(w.resized), m.Repair)
	}
	voters, _ := w.votes()
	target := m.target(w.resized)
	able := w.n - int(bit(w.retired != 0)) - int(bit(w.permanent != 0))
	want := min(target.Voters, able)
	if want%2 == 0 {
		want--
	}
	learners := 0
	for i := range w.n {
		learners += int(bit(w.hosts[i].list == learner && !w.isPermanent(i)))
	}
	for i := range w.n {
		if w.hosts[i].work != noWork {
			return hostNotBack
		}
	}
	if w.neverVerified() {
		return urlStays
	}
	if (m.Unhealthy || m.Voters > want) && !target.Resized && voters == want+1 &&
		w.op == 0 && w.lock < 0 && w.allServe() && m.reportsSurplus(w) {
		return fine // all voters have recovered, and a reason reports the surplus voter to operators
	}
	switch {
	case w.rmRequested != 0:
		return removalNeverEnds
	case w.trRequested != 0:
		return transferNeverEnds
	case w.retired != 0 && w.hosts[w.retired-1].list != unlisted:
		return targetMissed
	case voters != want || w.op != 0 || w.lock >= 0 || !w.allServe():
		return targetMissed
	case voters == target.Voters && learners != min(target.Standbys, able-voters-w.unwillingSpares()):
		return targetMissed
	case voters != target.Voters && learners > 0:
		return targetMissed
	case voters == target.Voters && w.permanent != 0 && (w.hosts[w.permanent-1].list == learner) != (w.limit >= 2):
		return targetMissed
	}
	return fine
}

// reportsSurplus reports whether every voter's host reports the surplus voter.
func (m *machine) reportsSurplus(w *world) bool {
	for i := range w.n {
		if s := w.observe(i); w.hosts[i].list == voter && m.decide(&s)[byNumber].reason != policy.TooManyVoters {
			return false
		}
	}
	return true
}

// hasVoterAgent reports whether the agent of a live voter runs and reaches etcd. Such an agent has to end a stuck
// operation.
func (w *world) hasVoterAgent() bool {
	for i := range w.n {
		h := &w.hosts[i]
		if h.list == voter && w.serves(i) && h.agent == up && h.cutOff == 0 {
			return true
		}
	}
	return false
}
