// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// A voter whose disk hangs or fails answers no linearizable read. It is removed first, like a dead voter. But its agent
// answers, so it is never dead, and repair.dead (off here) has no effect on it.

const (
	// neverForSlow is a grace period longer than any test: if a voter is replaced earlier, its disk hangs or has
	// failed.
	neverForSlow = "1h"
	// hangsFor is how long a disk must have hung, according to the voter's health state, before the voter is replaced.
	hangsFor = time.Minute
	// gapBound is the longest time that clients may be without an acknowledged write, on a busy machine.
	gapBound = 10 * time.Second
)

// waitRemovedFirst waits until n4 votes and n3 does not. n3 must be removed first. A standby votes so soon after the
// removal that the state in between, with two voters, may not be observed.
func (s *unhealthyWorld) waitRemovedFirst() {
	s.t.Helper()
	n3 := s.hosts[2]
	s.eventually("n4 votes, and n3 does not", func() bool {
		n3.promptStatus() // its agent never waits for the disk
		listed, _ := s.is(n3)
		return !listed && s.has(3, 0) && !s.busy()
	})
	s.show("status")
	s.show("history")
	seen, led := s.watch.stop()
	if s.t.Logf("the members were %q", seen); led || slices.Contains(seen, "n1 n2 n3 n4") {
		s.t.Errorf("the members were %q; n3 led until it was removed: %v", seen, led)
	}
	s.checkStepOrder(policy.StepBeginReplace, policy.StepRemoveMember, policy.StepPromote)
}

// endFault ends the fault of n3's disk. It checks that nothing is left over and that clients could write throughout.
func (s *unhealthyWorld) endFault() {
	s.t.Helper()
	clearRules(s.t, s.disk)
	s.eventually("n3's etcd is stopped", func() bool { return s.hosts[2].etcdPID() == 0 })
	s.waitRolesAgree()
	if gap := s.checkClients(); gap > gapBound {
		s.t.Errorf("no write was acknowledged for %v", gap)
	}
	s.verify(3, 0)
}

func TestASpareReplacesAFollowerWithAHungDiskAfterAMinute(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorldWith(t, worldOptions{set: map[string]string{"repair.unhealthy": neverForSlow, "disk.fail": "1h"}})
	n3 := s.hosts[2]
	s.lead(s.hosts[0])
	s.startClients()
	began := time.Now()
	rule(t, s.disk, "fsync * hang")
	s.waitUnhealthy("STALLED", "it answers no linearizable read")
	s.within(hangsFor+bound, "n3 is removed", func() bool { listed, _ := s.is(n3); return s.has(2, 0) && !listed })
	took := time.Since(began)
	if t.Logf("n3 was removed after %.1f s", took.Seconds()); took < hangsFor {
		t.Errorf("n3 was removed when its disk had hung for %v", took)
	}
	s.waitRemovedFirst()
	s.endFault()
}

// TestTheStandbyReplacesAVoterWithAFailedDiskAtOnce has an etcd that exits because it cannot write its log, and exits
// again after every start.
func TestTheStandbyReplacesAVoterWithAFailedDiskAtOnce(t *testing.T) {
	t.Parallel()
	for what, leads := range map[string]int{"a follower": 0, "the leader": 2} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newUnhealthyWorldWith(t, worldOptions{standbys: 1, set: map[string]string{"repair.unhealthy": neverForSlow}})
			s.lead(s.hosts[leads])
			s.startClients()
			began := time.Now()
			rule(t, s.disk, "fsync * err=EIO")
			s.waitUnhealthy("FAILED", "it answers no linearizable read")
			s.waitRemovedFirst()
			t.Logf("full strength %.1f s after the disk began to fail", time.Since(began).Seconds())
			s.endFault()
			s.never(quiet, "n3 is trusted again without an operator", func() bool { return !s.has(3, 0) })
		})
	}
}

// TestAVoterWhoseDiskWorksAgainBeforeItsRemovalStays has n3's etcd come back. n3's health state is still FAILED, but no
// other evidence supports it.
func TestAVoterWhoseDiskWorksAgainBeforeItsRemovalStays(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"after begin-replace", "before remove-member"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := newUnhealthyWorldWith(t, worldOptions{standbys: 1, set: map[string]string{"repair.unhealthy": neverForSlow}})
			n3, n4 := s.hosts[2], s.hosts[3]
			before := s.memberID(n3)
			s.lead(s.hosts[0])
			s.startClients()
			n4.stopAt(at)
			rule(t, s.disk, "fsync * err=EIO")
			s.eventually(n4.Options.Name+" has stopped "+at, n4.stopped)
			clearRules(t, s.disk)
			s.eventually("n3 answers", func() bool { return s.leader(n3) != 0 })
			if at == "after begin-replace" {
				n4.resume()
			} else { // n4 had decided before n3 was back; after a restart it decides again
				n4.kill()
				n4.resume()
				s.start(n4)
			}
			s.verify(3, 1)
			s.never(3*quiet, "n3 is another member, or trusted again", func() bool {
				return s.memberID(n3) != before || !s.isVoter(n3) || !n3.hasFinding("FAILED", "DISK_FAILED")
			})
			s.show("status")
			s.show("history")
			s.checkClients()
		})
	}
}
