// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// What no decision, no event and no judge can read any more, or tell apart, is forgotten, so that worlds which differ
// in nothing else are explored once. Each says here why that hides nothing; forget_test.go asks the policy about every
// sight of some scopes whether it decides alike. Some more of it stands in tidy, where it is plain.

// tidyUnit takes a unit that has ended for one that was stopped, where what lies there is of no member and known to be
// of none. Which of the two it is decides only whether etcd is started again on a member's data, also while nobody can
// be asked whose they are; everywhere else both are down, and such data never become a member's again. While something
// is asked of the host, a person's stop of it is told apart.
func (h *host) tidyUnit() {
	if h.unit == failed && !h.bereft() && h.data != current && h.known == 0 && h.ask == nothing {
		h.unit = inactive
	}
}

// settlesLater reports whether nobody asks now whether the last change of the member list has settled: a learner has
// been added and has not started, or is taken back. Before anybody asks again the list changes anew or the record does,
// and time may pass after that as well as before. An etcd of a removed member is stopped only then, so none may run.
func (w *world) settlesLater() bool {
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

// forgetHolds forgets what keeps etcd from starting at a boot where no boot can come: the host runs, the faults that
// the story may have are spent, or none takes a host down, and nobody is asked to reboot. Beside a boot only a person's
// start of a member's etcd asks for it, and where data are no member's yet, the join that makes them one lets go.
func (m *machine) forgetHolds(w *world) {
	crashes := m.faults&HostCrash != 0 && int(w.faults) < m.budget && !m.inOrder
	if crashes || m.Asks > 0 {
		return
	}
	for i := range w.n {
		if h := &w.hosts[i]; h.down == 0 && h.data != current {
			h.held = 0
		}
	}
}
