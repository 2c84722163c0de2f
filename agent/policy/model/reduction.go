// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// A world drops state that no decision, event or check can distinguish any more, so that worlds which differ in nothing
// else are explored once. Each function states why that hides nothing. For every observation in some scopes,
// reduction_test.go checks that the policy decides the same. Obvious cases are in tidy.

// tidyUnit treats a failed unit as a stopped one if its data belongs to no member and the host's disk does not record
// that the host has one. Data that belongs to no member never becomes a member's again, and failed and stopped units
// differ only in whether the agent restarts etcd on a member's data. While the host has a request, they remain
// distinct.
func (h *host) tidyUnit() {
	if h.unit == failed && !h.dataLost() && h.data != current && h.recorded == 0 && h.work == noWork {
		h.unit = inactive
	}
}

// settleIrrelevant reports whether no current decision depends on the settle time of the member list: a learner was
// added and has not started, or is being rolled back. Before a decision depends on it again, the list or the record
// changes, and the settle time may pass after that as well as before. The etcd of a removed member is stopped only
// after that time, so none may run.
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

// forgetStartGuards drops the start guard of a host whose data is not that of a listed member if no boot can
// follow: the host runs, the budget has no fault left that takes a host down, and the scope has no requests. Apart
// from a boot, only an operator's start of a member's etcd depends on the guard. The join with which this host
// receives a member's data removes the guard.
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
