// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// timePasses adds the worlds in which time passes or a fault is healed.
func (m *rolloutMachine) timePasses(w *rolloutWorld, i int, add rolloutAdder) {
	h, name := &w.hosts[i], hostName(i)
	change := func(what string, can bool, do func(to *rolloutWorld, h *rolloutHost)) {
		if to := *w; can {
			do(&to, &to.hosts[i])
			add(to, 0, "%s %s", name, what)
		}
	}
	change("serves", h.unit == starting && h.hostDown == 0, func(_ *rolloutWorld, h *rolloutHost) { h.etcdServes() })
	change("boots", h.hostDown != 0, func(to *rolloutWorld, _ *rolloutHost) { m.boots(to, i) })
	change("restarts its agent", h.agentDown != 0 && h.hostDown == 0,
		func(_ *rolloutWorld, h *rolloutHost) { h.agentDown = 0 })
	change("is reachable again", h.cutOff != 0, func(_ *rolloutWorld, h *rolloutHost) { h.cutOff = 0 })
	change("is healthy again", h.slow != 0, func(_ *rolloutWorld, h *rolloutHost) { h.slow = 0 })
	change("has served for long enough", w.owns(i) && w.phase == phaseBack && w.servedLong == 0,
		func(to *rolloutWorld, _ *rolloutHost) { to.servedLong = 1 })
	change("loses the lock because its lease has ended", int(w.lock) == i+1 && (h.hasToken == 0 || !w.reaches(i)),
		func(to *rolloutWorld, h *rolloutHost) { to.lock, h.hasToken = 0, 0 })
	change("observes the end of the cooldown", i == 0 && w.cooledDown == 0 && w.op == 0,
		func(to *rolloutWorld, _ *rolloutHost) { to.cooledDown = 1 })
}

// failures adds the worlds in which a host, its etcd or its agent crashes, is cut off or becomes slow, another leader
// is elected, or another program writes a record.
func (m *rolloutMachine) failures(w *rolloutWorld, i int, add rolloutAdder) {
	if int(w.faults) >= m.Budget {
		return
	}
	h, name := &w.hosts[i], hostName(i)
	fault := func(what string, can bool, do func(to *rolloutWorld, h *rolloutHost)) {
		if to := *w; can {
			to.faults++
			do(&to, &to.hosts[i])
			add(to, 0, "fault: %s %s", name, what)
		}
	}
	up, runs := h.agentDown|h.hostDown == 0, h.unit == active || h.unit == starting
	fault("loses its agent process", up, func(_ *rolloutWorld, h *rolloutHost) { h.agentDies() })
	fault("loses power", h.hostDown == 0, func(to *rolloutWorld, h *rolloutHost) {
		to.goesDown(i)
		h.down = 0
	})
	fault("loses its etcd process", runs, func(_ *rolloutWorld, h *rolloutHost) { h.unit, h.down = failed, 0 })
	fault("is cut off", h.cutOff == 0, func(_ *rolloutWorld, h *rolloutHost) { h.cutOff = 1 })
	fault("is slow", h.slow == 0 && i < rolloutVoters, func(_ *rolloutWorld, h *rolloutHost) { h.slow = 1 })
	fault("has the wrong etcd version", h.wrongVersion == 0 && i < rolloutVoters,
		func(_ *rolloutWorld, h *rolloutHost) { h.wrongVersion = 1 })
	fault("is elected leader", runs && i < rolloutVoters && int(w.leader) != i && w.quorum() && h.unit == active,
		func(to *rolloutWorld, _ *rolloutHost) { to.leader = uint8(i) })
	fault("has its operation record deleted", w.owns(i), func(to *rolloutWorld, h *rolloutHost) {
		to.op = 0
		if i >= rolloutVoters {
			h.down = 0
		}
		to.opWritten()
	})
	// The rollout record may be overwritten at any time, even during another host's operation. A host detects an old
	// record by the number of times that the rollout was resumed.
	for old := max(w.resumed, 2) - 1; old <= w.resumed; old++ {
		fault(fmt.Sprintf("has the rollout record overwritten with an older one, resumed %d", old),
			w.waiting>>i&1 == 0, func(to *rolloutWorld, _ *rolloutHost) {
				to.state, to.waiting, to.resumed, to.hold = rolloutRuns, to.waiting|1<<i, old, bit(m.Upgrade)
				to.rolloutWritten()
			})
	}
	fault("has the queue deleted", i == 0 && w.queueWriter != 0, func(to *rolloutWorld, _ *rolloutHost) {
		to.queueWriter, to.queueDown = 0, [policy.DownLength]uint8{}
	})
}

// operatorActs adds the worlds in which an operator has acted.
func (m *rolloutMachine) operatorActs(w *rolloutWorld, i int, add rolloutAdder) {
	if int(w.actions) >= m.OperatorActions {
		return
	}
	h, name := &w.hosts[i], hostName(i)
	action := func(what string, can bool, do func(to *rolloutWorld, h *rolloutHost)) {
		if to := *w; can {
			to.actions++
			do(&to, &to.hosts[i])
			add(to, 0, "operator: %s", what)
		}
	}
	set := func(state uint8) func(to *rolloutWorld, _ *rolloutHost) {
		return func(to *rolloutWorld, _ *rolloutHost) {
			to.state = state
			if state == rolloutRuns {
				to.resumed++
				to.trueResumed++
				to.decided = bit(m.Upgrade && to.hold == 0)
			}
			to.rolloutWritten()
		}
	}
	runs, halts := w.state == rolloutRuns, w.state == rolloutPaused || w.state == rolloutStopped
	if w.quorum() && i == 0 {
		action("pause the rollout", runs, set(rolloutPaused))
		action("resume the rollout", halts, set(rolloutRuns))
		action("abort the rollout", runs || halts, set(rolloutAborted))
	}
	untouched := h.work != noWork && h.standing().Untouched()
	action("cancel "+name, h.agentDown|h.hostDown == 0 && h.work != noWork && h.ended == 0 && (!untouched || !runs),
		func(_ *rolloutWorld, h *rolloutHost) {
			if h.ended = 1; untouched {
				h.endRequest()
			}
		})
	action("release the operation of "+name, w.quorum() && w.owns(i), func(to *rolloutWorld, h *rolloutHost) {
		to.op, h.released = 0, 1
		to.opWritten()
		if runs && to.waiting>>i&1 != 0 {
			to.state = rolloutStopped
			to.rolloutWritten()
		}
	})
}
