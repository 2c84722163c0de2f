// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// replaceBesideSteps are the same where that voter answers, and is removed when the other one votes.
func replaceBesideSteps() [][]string {
	return [][]string{
		{"begin-replace", "add-learner", "promote", "set-phase/removing", "remove-member"},
		{"begin-replace", "promote", "set-phase/removing", "remove-member"},
	}
}

// TestWhateverHappensInTheMidstOfTheRepairOfASlowDiskFullStrengthComesBack has one further host struck at each step of
// it, or the slow one. All that clients read and write meanwhile has an order, and nothing is left over.
func TestWhateverHappensInTheMidstOfTheRepairOfASlowDiskFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	mendedWhile(t, replaceBesideSteps(), "fsync * delay="+sickFsync.String(), func(s *sickWorld) {
		s.called("SLOW", "99 of 100 syncs of its etcd's own log take up to")
	})
}

// TestWhateverHappensInTheMidstOfTheRepairOfADiskThatFailsFullStrengthComesBack is the same where the sick voter
// does not answer, and is removed first. One that works again before that stays.
func TestWhateverHappensInTheMidstOfTheRepairOfADiskThatFailsFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	mendedWhile(t, replaceSteps(), "fsync * err=EIO", func(*sickWorld) {})
}

// mendedWhile has n4 take the place of n3, whose disk is at fault, at first as a spare and then as the standby, and
// strikes at each step.
func mendedWhile(t *testing.T, by [][]string, fault string, called func(s *sickWorld)) {
	t.Helper()
	dies := further{
		"the sick one's machine dies", func(w *world) { w.hosts[2].losesPower() },
		func(w *world) { w.start(w.hosts[2]) },
	}
	for standbys, steps := range by {
		for _, step := range steps {
			for _, also := range append(furthers(dies), further{what: "the disk is well again"}) {
				well := also.strike == nil
				t.Run(fmt.Sprintf("%d standbys after %s %s", standbys, step, also.what), func(t *testing.T) {
					t.Parallel()
					s := newSickWorldWith(t, worldOptions{
						standbys: standbys, proxied: true, set: map[string]string{"repair.cleanFor": "1h"},
					})
					if well {
						also.strike, also.mend = func(*world) { clearRules(t, s.disk) }, func(*world) {}
					}
					n3, n4 := s.hosts[2], s.hosts[3]
					s.lead(s.hosts[0])
					n4.stopAt("after " + step)
					s.watched()
					rule(t, s.disk, fault)
					called(s)
					s.within(sickGrace+stillSlow+bound, "n4 stands still after "+step, n4.stopped)
					also.during(s.world)
					began := time.Now()
					s.within(3*(sickGrace+stillSlow+bound), "three others than n3 vote and answer again", func() bool {
						listed, _ := s.is(n3)
						return (well || !listed) && s.full()
					})
					t.Logf("full strength %v after all was mended", time.Since(began).Round(100*time.Millisecond))
					clearRules(t, s.disk)
					s.rolesAgree()
					s.keepsWrites()
					learners := 0
					if s.isVoter(n3) { // it was spared, and n4 is what it was
						learners = standbys
					}
					s.verify(3, learners)
					s.checkHeld()
				})
			}
		}
	}
}
