// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// replaceLiveSteps returns the steps of a replacement if the old voter answers: its member is removed after the new one
// votes.
func replaceLiveSteps() [][]string {
	return [][]string{
		{"begin-replace", "add-learner", "promote", "set-phase/removing", "remove-member"},
		{"begin-replace", "promote", "set-phase/removing", "remove-member"},
	}
}

// TestFullStrengthReturnsWhateverFailsDuringTheRepairOfASlowDisk injects a fault on another host, or on the one with
// the slow disk, at each step. All accesses of clients must be linearizable, and nothing may be left over.
func TestFullStrengthReturnsWhateverFailsDuringTheRepairOfASlowDisk(t *testing.T) {
	t.Parallel()
	repairDuringFaults(t, replaceLiveSteps(), "fsync * delay="+unhealthyFsync.String(), func(s *unhealthyWorld) {
		s.waitUnhealthy("SLOW", "99 of 100 WAL fsyncs of its etcd take up to")
	})
}

// TestFullStrengthReturnsWhateverFailsDuringTheRepairOfAFailedDisk does the same for a voter that does not answer and
// is therefore removed first. The voter stays if it works again before that.
func TestFullStrengthReturnsWhateverFailsDuringTheRepairOfAFailedDisk(t *testing.T) {
	t.Parallel()
	repairDuringFaults(t, replaceSteps(), "fsync * err=EIO", func(*unhealthyWorld) {})
}

// repairDuringFaults makes n4 replace n3, whose disk is faulty, once as a spare and once as the standby, and injects a
// fault at each step.
func repairDuringFaults(t *testing.T, by [][]string, fault string, called func(s *unhealthyWorld)) {
	t.Helper()
	dies := otherFault{
		"the unhealthy voter's machine dies", func(w *world) { w.hosts[2].cutPowerOff() },
		func(w *world) { w.start(w.hosts[2]) },
	}
	for standbys, steps := range by {
		for _, step := range steps {
			for _, also := range append(otherFaults(dies), otherFault{what: "the disk works again"}) {
				well := also.inject == nil
				t.Run(fmt.Sprintf("%d standbys after %s %s", standbys, step, also.what), func(t *testing.T) {
					t.Parallel()
					s := newUnhealthyWorldWith(t, worldOptions{
						standbys: standbys, proxied: true, set: map[string]string{"repair.cleanFor": "1h"},
					})
					if well {
						also.inject, also.repair = func(*world) { clearRules(t, s.disk) }, func(*world) {}
					}
					n3, n4 := s.hosts[2], s.hosts[3]
					s.lead(s.hosts[0])
					n4.stopAt("after " + step)
					s.startClients()
					rule(t, s.disk, fault)
					called(s)
					s.within(unhealthyGrace+stillSlow+bound, "n4 has stopped after "+step, n4.stopped)
					also.injectDuring(s.world)
					began := time.Now()
					s.within(3*(unhealthyGrace+stillSlow+bound), "three voters other than n3 vote and answer "+
						"again", func() bool {
						listed, _ := s.is(n3)
						return (well || !listed) && s.isFull()
					})
					t.Logf("full strength %v after all repairs", time.Since(began).Round(100*time.Millisecond))
					clearRules(t, s.disk)
					s.waitRolesAgree()
					s.checkClients()
					learners := 0
					if s.isVoter(n3) { // n3 stays, and n4 keeps its role
						learners = standbys
					}
					s.verify(3, learners)
					s.checkHeld()
				})
			}
		}
	}
}
