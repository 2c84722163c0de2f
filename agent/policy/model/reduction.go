// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// A world forgets what no decision, event or judge can read or tell apart any more, so that worlds without any other
// difference are explored once. Each function states why that hides nothing. reduction_test.go checks for every sight of
// some scopes that the policy decides alike. Obvious cases are in tidy.

// tidyUnit treats a unit that has failed as one that was stopped, if its data belongs to no member and is known not to.
// The difference only decides whether etcd is started again on a member's data, also while no voter can report whose
// data it is. Everywhere else both are down, and such data never becomes a member's again. While the host has a
// request, an operator's stop remains distinct.
func (h *host) tidyUnit() {
	if h.unit == failed && !h.dataLost() && h.data != current && h.recorded == 0 && h.work == noWork {
		h.unit = inactive
	}
}

// settleIrrelevant reports whether no decision depends on the settle time of the member list at the moment: a learner was
// added and has not started, or is being rolled back. Before a decision depends on it again, the list or the record
// changes, and time may pass after that as well as before. An etcd of a removed member is stopped only after that time,
// so none may run.
func (w *world) settleIrrelevant() bool {
	if w.op == 0 || w.opPhase != phaseAdded && w.opPhase != phaseRollback {
		return false
	}
	for i := range w.n {
		if h := &w.hosts[i]; h.data == old && (h.unit == starting || h.unit == active) {
			return false
		}
	}
	return true
}

// forgetStartGuards forgets the start guard where no boot can follow: the host runs, no fault that takes a host down is left
// in the budget, and no reboot is requested. Apart from a boot, only an operator's start of a member's etcd depends on
// it. If the data belongs to no member yet, the join that makes it a member's releases the guard.
func (m *machine) forgetStartGuards(w *world) {
	crashes := m.faults&HostCrash != 0 && int(w.faults) < m.budget && !m.inOrder
	if crashes || m.Requests > 0 {
		return
	}
	for i := range w.n {
		if h := &w.hosts[i]; h.down == 0 && h.data != current {
			h.startGuard = 0
		}
	}
}
