// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestThreeVoteWhateverFailsWhileADeadSurplusVoterIsRemoved injects a fault on the removing host, or brings the dead
// voter back. If it is back before its removal, it stays, and there are four voters until an operator removes one.
func TestThreeVoteWhateverFailsWhileADeadSurplusVoterIsRemoved(t *testing.T) {
	t.Parallel()
	type hostFault struct {
		what           string
		inject, repair func(by, dead *host)
	}
	none := func(*host, *host) {}
	for _, step := range []string{"begin-replace", "set-phase/removing", "remove-member"} {
		for _, also := range []hostFault{
			{
				"the removing agent dies", func(by, _ *host) { by.kill() },
				func(by, _ *host) { by.w.start(by) },
			},
			{ // another voter's agent ends the operation; no voter is dead while a voter's host cannot confirm it
				"the removing agent stays down", func(by, _ *host) { by.kill() },
				func(by, _ *host) {
					by.w.eventually("no operation is left", func() bool { return by.w.absent(by.w.keys().Op()) })
					by.w.start(by)
				},
			},
			{
				"the removing machine dies", func(by, _ *host) { by.cutPowerOff() },
				func(by, _ *host) { by.w.start(by) },
			},
			{"the dead one comes back", func(_, dead *host) { dead.w.start(dead) }, none},
		} {
			t.Run("after "+step+" "+also.what, func(t *testing.T) {
				t.Parallel()
				w, voters := fourVoters(t)
				dead, live := voters[3], voters[:3]
				registers, err := testbed.StartRegisters(t.Context(), w.listening())
				must(t, err)
				defer registers.Close()
				for _, h := range live {
					h.stopAt("after " + step)
				}
				dead.powerOff()
				w.within(grace+bound, "one has stopped after "+step, func() bool {
					return slices.ContainsFunc(live, (*host).stopped)
				})
				by := live[slices.IndexFunc(live, (*host).stopped)]
				also.inject(by, dead)
				for _, h := range live {
					h.resume()
				}
				w.never(faultDuration, "a working host is removed", func() bool { return w.expelled(live) })
				also.repair(by, dead)
				want := 3
				if dead.running && step != "remove-member" {
					want = 4
				}
				began := time.Now()
				w.within(3*(grace+bound), "all voters serve again", func() bool { return w.votersServe(want) })
				t.Logf("%d vote %v after all repairs", want, time.Since(began).Round(100*time.Millisecond))
				w.verify(want, 0)
				w.checkHeld()
				if w.expelled(live) {
					t.Error("a working host was removed")
				}
				w.linearizable(registers)
			})
		}
	}
}
