// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"testing"
	"time"
)

// TestWhateverHappensInTheMidstOfTheRepairOfASlowDiskFullStrengthComesBack has one further host struck at each step of
// it, or the slow one. All that clients read and write meanwhile has an order, and nothing is left over.
func TestWhateverHappensInTheMidstOfTheRepairOfASlowDiskFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	dies := further{
		"the slow one's machine dies", func(w *world) { w.hosts[2].die() }, func(w *world) { w.start(w.hosts[2]) },
	}
	for _, step := range []string{"begin-replace", "add-learner", "promote", "set-phase/removing", "remove-member"} {
		for _, also := range furthers(dies) {
			t.Run("after "+step+" "+also.what, func(t *testing.T) {
				t.Parallel()
				s := newSickWorldWith(t, worldOptions{proxied: true})
				n3, n4 := s.hosts[2], s.hosts[3]
				s.lead(s.hosts[0])
				n4.stopAt("after " + step)
				s.sicken()
				s.within(sickGrace+bound, "n4 stands still after "+step, n4.stopped)
				also.during(s.world)
				began := time.Now()
				s.within(3*(sickGrace+bound), "three vote and answer again without n3", func() bool {
					listed, _ := s.is(n3)
					return !listed && s.full()
				})
				t.Logf("full strength %v after all was mended", time.Since(began).Round(100*time.Millisecond))
				clearRules(t, s.disk)
				s.rolesAgree()
				s.keepsWrites()
				s.verify(3, 0)
			})
		}
	}
}

// TestWhateverHappensInTheMidstOfTheRepairOfADiskThatFailsFullStrengthComesBack is the same where the sick voter
// does not answer, and is removed first. One that works again before that stays.
func TestWhateverHappensInTheMidstOfTheRepairOfADiskThatFailsFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	dies := further{
		"the failing one's machine dies", func(w *world) {
			n3 := w.hosts[2]
			n3.kill()
			n3.etcdDies() // unless it has ended already
			n3.off = true
			n3.answers(false)
		}, func(w *world) { w.start(w.hosts[2]) },
	}
	for _, step := range []string{"begin-replace", "set-phase/removing", "remove-member", "add-learner", "promote"} {
		for _, also := range append(furthers(dies), further{what: "the disk works again"}) {
			t.Run("after "+step+" "+also.what, func(t *testing.T) {
				t.Parallel()
				s := newSickWorldWith(t, worldOptions{proxied: true})
				if also.strike == nil {
					also.strike, also.mend = func(*world) { clearRules(t, s.disk) }, func(*world) {}
				}
				n4 := s.hosts[3]
				s.lead(s.hosts[0])
				n4.stopAt("after " + step)
				s.watched()
				rule(t, s.disk, "fsync * err=EIO")
				s.eventually("n4 stands still after "+step, n4.stopped)
				also.during(s.world)
				began := time.Now()
				s.within(3*bound, "three vote and answer again", s.full)
				t.Logf("full strength %v after all was mended", time.Since(began).Round(100*time.Millisecond))
				clearRules(t, s.disk)
				s.rolesAgree()
				s.keepsWrites()
				s.verify(3, 0)
			})
		}
	}
}
