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

// TestFiveVoteAgainWhateverFailsWhileTwoOfOneRackAreReplaced cuts the power of two of five voters that share a failure
// domain. At each step of the first replacement it injects a fault on one more host, or brings one of the two back.
func TestFiveVoteAgainWhateverFailsWhileTwoOfOneRackAreReplaced(t *testing.T) {
	t.Parallel()
	type hostFault struct {
		what           string
		inject, repair func(w *world, by *host)
	}
	for _, step := range []string{"begin-replace", "set-phase/removing", "remove-member", "promote"} {
		for _, also := range []hostFault{
			{
				"the replacing agent dies", func(_ *world, by *host) { by.kill() },
				func(w *world, by *host) { w.start(by) },
			},
			{
				"the replacing machine dies", func(_ *world, by *host) { by.cutPowerOff() },
				func(w *world, by *host) { w.start(by) },
			},
			{
				"the leader's machine dies", func(w *world, _ *host) { w.hosts[0].cutPowerOff() },
				func(w *world, _ *host) { w.start(w.hosts[0]) },
			},
			{"one comes back", func(w *world, _ *host) { w.start(w.hosts[4]) }, func(*world, *host) {}},
		} {
			t.Run("after "+step+" "+also.what, func(t *testing.T) {
				t.Parallel()
				w := rackWorld(t)
				dead, ready := w.hosts[3:5], w.hosts[5:]
				registers, err := testbed.StartRegisters(t.Context(), w.listening())
				must(t, err)
				defer registers.Close()
				for _, h := range ready {
					h.stopAt("after " + step)
				}
				for _, h := range dead {
					h.powerOff()
				}
				w.within(grace+bound, "one has stopped after "+step, func() bool {
					return slices.ContainsFunc(ready, (*host).stopped)
				})
				by := ready[slices.IndexFunc(ready, (*host).stopped)]
				also.inject(w, by)
				for _, h := range ready {
					h.resume()
				}
				w.never(faultDuration, "a working host is removed", func() bool { return w.expelled(w.hosts[:3]) })
				also.repair(w, by)
				began := time.Now()
				w.within(4*(grace+bound), "five vote and answer again", func() bool { return w.votersServe(5) })
				t.Logf("full strength %v after all repairs", time.Since(began).Round(100*time.Millisecond))
				if w.expelled(w.hosts[:3]) {
					t.Error("a working host was removed")
				}
				for _, h := range dead {
					if !h.running {
						w.start(h)
					}
				}
				w.waitRolesAgree()
				w.verify(5, 0)
				w.checkHeld()
				w.linearizable(registers)
			})
		}
	}
}

// rackWorld makes five voters, led by n1, and two spares. n4 and n5 share a failure domain.
func rackWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{
		hosts: 7, voters: 5,
		set: map[string]string{"repair.dead": grace.String(), "repair.cleanFor": cleanFor.String()},
		each: func(i int, o *testbed.HostOptions) {
			if i == 4 || i == 5 {
				o.Set["host.domain"] = "rack-b"
			}
		},
	})
	w.start(w.hosts[:5]...)
	w.bootstrap()
	w.within(4*formation, "there are 5 voters", func() bool { return w.has(5, 0) })
	w.start(w.hosts[5:]...)
	w.eventually("the spares are ready", func() bool { return w.hosts[5].healthy() && w.hosts[6].healthy() })
	w.waitRolesAgree()
	w.lead(w.hosts[0])
	return w
}
