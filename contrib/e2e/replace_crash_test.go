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

// TestFullStrengthReturnsWhateverFailsDuringAReplacement injects a fault on one more host, or starts the dead one
// again, at each step, once with a spare and once with a standby as the replacement. All accesses of clients must be
// linearizable, and nothing may be left over.
func TestFullStrengthReturnsWhateverFailsDuringAReplacement(t *testing.T) {
	t.Parallel()
	back := otherFault{"the dead one comes back", func(w *world) { w.start(w.hosts[2]) }, func(*world) {}}
	for standbys, steps := range replaceSteps() {
		for _, step := range steps {
			for _, also := range otherFaults(back) {
				t.Run(fmt.Sprintf("%d standbys after %s %s", standbys, step, also.what), func(t *testing.T) {
					t.Parallel()
					replaceDuringFault(t, standbys, "after "+step, also)
				})
			}
		}
	}
}

func replaceDuringFault(t *testing.T, standbys int, at string, also otherFault) {
	t.Helper()
	w := repairWorldWith(t, worldOptions{hosts: 4, standbys: standbys, proxied: true})
	n3, n4 := w.hosts[2], w.hosts[3]
	registers, err := testbed.StartRegisters(t.Context(), w.listening())
	must(t, err)
	defer registers.Close()
	n4.stopAt(at)
	n3.powerOff()
	w.within(grace+bound, n4.Options.Name+" has stopped "+at, n4.stopped)
	also.injectDuring(w)
	began := time.Now()
	w.within(3*(grace+bound), "three vote and answer again", w.isFull) // n3's grace period may begin again
	t.Logf("full strength %v after all repairs", time.Since(began).Round(100*time.Millisecond))
	if w.expelled(w.hosts[:2]) {
		t.Error("a working host was removed")
	}
	if !n3.running {
		w.start(n3)
	}
	w.waitRolesAgree()
	w.verify(3, standbys)
	w.checkHeld()
	w.linearizable(registers)
}
