// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestIfTheReplacementHostIsLostForGoodAnotherTakesOver cuts the power of the replacing host at each step of the
// replacement. A voter's agent ends the operation, and another host replaces the dead voter. Until full strength is
// reached, the replacing host stays off, and no operator acts.
func TestIfTheReplacementHostIsLostForGoodAnotherTakesOver(t *testing.T) {
	t.Parallel()
	for standbys, steps := range replaceSteps() {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%d standbys after %s", standbys, step), func(t *testing.T) {
				t.Parallel()
				loseReplacementAt(t, standbys, "after "+step)
			})
		}
	}
}

func loseReplacementAt(t *testing.T, standbys int, at string) {
	t.Helper()
	w := repairWorldWith(t, worldOptions{hosts: 5, standbys: standbys})
	n3, n4, n5 := w.hosts[2], w.hosts[3], w.hosts[4]
	registers, err := testbed.StartRegisters(t.Context(), w.listening())
	must(t, err)
	defer registers.Close()
	n4.stopAt(at)
	n3.powerOff()
	w.within(grace+bound, n4.Options.Name+" has stopped "+at, n4.stopped)
	n4.cutPowerOff()
	n4.resume()
	began := time.Now()
	w.start(n5)
	w.within(3*(grace+bound), "three vote and answer, and neither n3 nor n4 is a member", func() bool {
		third, _ := w.is(n3)
		fourth, _ := w.is(n4)
		return !third && !fourth && w.isFull()
	})
	t.Logf("full strength %v after n4 was lost as well", time.Since(began).Round(100*time.Millisecond))
	if w.expelled(w.hosts[:2]) {
		t.Error("a working host was removed")
	}
	w.start(n3, n4)
	w.waitRolesAgree()
	w.verify(3, standbys)
	w.checkHeld()
	w.linearizable(registers)
}
