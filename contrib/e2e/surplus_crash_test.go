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

// TestWhateverHappensWhileADeadVoterTooManyIsRemovedThreeVote has the host struck that removes it, or the dead one
// come back: before its removal that one stays, and four vote until a person takes one out.
func TestWhateverHappensWhileADeadVoterTooManyIsRemovedThreeVote(t *testing.T) {
	t.Parallel()
	type strike struct {
		what         string
		strike, mend func(by, dead *host)
	}
	none := func(*host, *host) {}
	for _, step := range []string{"begin-replace", "set-phase/removing", "remove-member"} {
		for _, also := range []strike{
			{
				"the agent that removes it dies", func(by, _ *host) { by.kill() },
				func(by, _ *host) { by.w.start(by) },
			},
			{ // another voter's ends what it has begun; nobody is dead while a voter's host has no word in it
				"the agent that removes it stays away", func(by, _ *host) { by.kill() },
				func(by, _ *host) {
					by.w.eventually("no operation is left", func() bool { return by.w.absent(by.w.keys().Op()) })
					by.w.start(by)
				},
			},
			{
				"the machine of that one dies", func(by, _ *host) { by.losesPower() },
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
				dead.die()
				w.within(grace+bound, "one stands still after "+step, func() bool {
					return slices.ContainsFunc(live, (*host).stopped)
				})
				by := live[slices.IndexFunc(live, (*host).stopped)]
				also.strike(by, dead)
				for _, h := range live {
					h.resume()
				}
				w.never(struckFor, "a host that works is removed", func() bool { return w.expelled(live) })
				also.mend(by, dead)
				want := 3
				if dead.running && step != "remove-member" {
					want = 4
				}
				began := time.Now()
				w.within(3*(grace+bound), "that is over", func() bool { return w.serve(want) })
				t.Logf("%d vote %v after all was mended", want, time.Since(began).Round(100*time.Millisecond))
				w.verify(want, 0)
				w.checkHeld()
				if w.expelled(live) {
					t.Error("a host that works was removed")
				}
				w.linearizable(registers)
			})
		}
	}
}
