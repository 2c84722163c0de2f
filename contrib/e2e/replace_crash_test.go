// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import "testing"

func TestWhoeverIsKilledInTheMidstOfAReplacementFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after begin-replace", "after set-phase/removing", "after remove-member", "after add-learner", "after promote",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := repairWorld(t, 0)
			n3, n4 := w.hosts[2], w.hosts[3]
			n4.stopAt(at)
			n3.powerOff()
			w.within(grace+bound, n4.Options.Name+" stands still "+at, n4.stopped)
			n4.strike(at, agentOnly)
			n4.resume()
			w.start(n4)
			w.replaced(n3)
			w.verify(3, 0)
		})
	}
}
