// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// timePasses completes what only takes time, and heals.
func (m *rollMachine) timePasses(w *rolling, i int, add rollAdder) {
	h, name := &w.hosts[i], hostName(i)
	change := func(what string, can bool, do func(to *rolling, h *rolled)) {
		if to := *w; can {
			do(&to, &to.hosts[i])
			add(to, 0, "%s", name+" "+what)
		}
	}
	change("serves", h.unit == starting && h.off == 0, func(_ *rolling, h *rolled) { h.serves() })
	change("is switched on", h.off != 0, func(to *rolling, _ *rolled) { m.boots(to, i) })
	change("has its agent back", h.dead != 0 && h.off == 0, func(_ *rolling, h *rolled) { h.dead = 0 })
	change("is reached again", h.apart != 0, func(_ *rolling, h *rolled) { h.apart = 0 })
	change("is healthy again", h.slow != 0, func(_ *rolling, h *rolled) { h.slow = 0 })
	change("has served for long enough", w.owns(i) && w.phase == phaseBack && w.back == 0,
		func(to *rolling, _ *rolled) { to.back = 1 })
	change("loses the lock: its lease has ended", int(w.lock) == i+1 && (h.belief == 0 || !w.reaches(i)),
		func(to *rolling, h *rolled) { to.lock, h.belief = 0, 0 })
	change("waits for the cool-down", i == 0 && w.cool == 0 && w.op == 0, func(to *rolling, _ *rolled) { to.cool = 1 })
}

// goesWrong crashes a host, its etcd or its agent, cuts it off, makes it slow, or writes a record that only agents
// write.
func (m *rollMachine) goesWrong(w *rolling, i int, add rollAdder) {
	if int(w.faults) >= m.Budget {
		return
	}
	h, name := &w.hosts[i], hostName(i)
	fault := func(what string, can bool, do func(to *rolling, h *rolled)) {
		if to := *w; can {
			to.faults++
			do(&to, &to.hosts[i])
			add(to, 0, "fault: %s", name+" "+what)
		}
	}
	up, runs := h.dead|h.off == 0, h.unit == active || h.unit == starting
	fault("loses its agent", up, func(_ *rolling, h *rolled) { h.dies() })
	fault("loses its power", h.off == 0, func(to *rolling, h *rolled) {
		to.goesDown(i)
		h.low = 0
	})
	fault("loses its etcd", runs, func(_ *rolling, h *rolled) { h.unit, h.low = failed, 0 })
	fault("is cut off", h.apart == 0, func(_ *rolling, h *rolled) { h.apart = 1 })
	fault("is slow", h.slow == 0 && i < rollVoters, func(_ *rolling, h *rolled) { h.slow = 1 })
	fault("has the wrong etcd version", h.stale == 0 && i < rollVoters, func(_ *rolling, h *rolled) {
		h.stale = 1
	})
	fault("is elected", runs && i < rollVoters && int(w.leader) != i && w.quorum() && h.unit == active,
		func(to *rolling, _ *rolled) { to.leader = uint8(i) })
	fault("has its operation record deleted", w.owns(i), func(to *rolling, h *rolled) {
		to.op = 0
		if i >= rollVoters {
			h.low = 0
		}
		to.opWritten()
	})
	// at any time, also during another host's operation: the number of resumes shows a host that this one is old
	for old := max(w.resumed, 2) - 1; old <= w.resumed; old++ {
		fault(fmt.Sprintf("has the rollout record overwritten with an older one, resumed %d", old),
			w.waiting>>i&1 == 0, func(to *rolling, _ *rolled) {
				to.state, to.waiting, to.resumed = rollRuns, to.waiting|1<<i, old
				to.rollWritten()
			})
	}
	fault("has the queue deleted", i == 0 && w.queued != 0, func(to *rolling, _ *rolled) {
		to.queued, to.down = 0, [policy.DownLength]uint8{}
	})
}

// peopleDo applies an operator's action.
func (m *rollMachine) peopleDo(w *rolling, i int, add rollAdder) {
	if int(w.said) >= m.People {
		return
	}
	h, name := &w.hosts[i], hostName(i)
	word := func(what string, can bool, do func(to *rolling, h *rolled)) {
		if to := *w; can {
			to.said++
			do(&to, &to.hosts[i])
			add(to, 0, "operator: %s", what)
		}
	}
	set := func(state uint8) func(to *rolling, _ *rolled) {
		return func(to *rolling, _ *rolled) {
			to.state = state
			if state == rollRuns {
				to.resumed++
				to.stretch++
			}
			to.rollWritten()
		}
	}
	runs, halts := w.state == rollRuns, w.state == rollPaused || w.state == rollStopped
	if w.quorum() && i == 0 {
		word("pause it", runs, set(rollPaused))
		word("resume it", halts, set(rollRuns))
		word("abort it", runs || halts, set(rollAborted))
	}
	untouched := h.ask != nothing && h.standing().Untouched()
	word("cancel "+name, h.dead|h.off == 0 && h.ask != nothing && h.ended == 0 && (!untouched || !runs),
		func(_ *rolling, h *rolled) {
			if h.ended = 1; untouched {
				h.endRequest()
			}
		})
	word("release the operation of "+name, w.quorum() && w.owns(i), func(to *rolling, h *rolled) {
		to.op, h.freed = 0, 1
		to.opWritten()
		if runs && to.waiting>>i&1 != 0 {
			to.state = rollStopped
			to.rollWritten()
		}
	})
}
