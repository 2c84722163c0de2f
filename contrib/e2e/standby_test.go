// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestASpareReplacesAStandbyOnADeadMachine runs clients that read and write throughout.
func TestASpareReplacesAStandbyOnADeadMachine(t *testing.T) {
	t.Parallel()
	w := standbyWorld(t)
	n4, n5 := w.hosts[3], w.hosts[4]
	registers, err := testbed.StartRegisters(t.Context(), w.listening())
	must(t, err)
	defer registers.Close()
	n4.powerOff()
	w.within(2*bound, "n5 is the standby instead of n4", func() bool {
		_, learner := w.is(n5)
		return learner && w.has(3, 1)
	})
	w.start(n4)
	w.waitRolesAgree()
	w.verify(3, 1)
	if listed, _ := w.is(n4); listed {
		t.Error("n4 is a member again")
	}
	w.linearizable(registers)
}

// standbyWorld makes three voters, n4 as the standby, and n5 as a spare.
func standbyWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 5, standbys: 1})
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(w.hosts[3])
	w.within(2*formation, "n4 is the standby", func() bool { return w.has(3, 1) })
	w.start(w.hosts[4])
	w.waitRolesAgree()
	return w
}
