// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

// loseReplacement makes n3's disk slow, and kills n4's agent as soon as n4 is promoted, before it removes n3.
func (s *unhealthyWorld) loseReplacement() {
	s.t.Helper()
	n4 := s.hosts[3]
	s.lead(s.hosts[0])
	n4.stopAt("after promote")
	s.makeUnhealthy()
	s.within(unhealthyGrace+stillSlow+bound, "n4 has stopped after promote", n4.stopped)
	n4.kill()
	n4.resume()
}

// TestAVoterWithASlowDiskIsRemovedAlthoughTheAgentThatReplacesItIsGone makes another voter's host end the operation and
// remove the surplus voter. n4's etcd answers throughout; its agent returns afterwards.
func TestAVoterWithASlowDiskIsRemovedAlthoughTheAgentThatReplacesItIsGone(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorld(t, 1)
	s.loseReplacement()
	n3, n4 := s.hosts[2], s.hosts[3]
	s.within(bound, "another voter has ended the operation", func() bool { return !s.busy() })
	s.within(2*bound, "n3 is removed", func() bool {
		listed, _ := s.is(n3)
		return !listed && s.has(3, 0) && !s.busy()
	})
	s.show("history")
	s.start(n4)
	s.within(bound, "n4 is idle", func() bool { return n4.waitsFor(policy.Idle) })
	if seen, _ := s.watch.stop(); !slices.Equal(seen, []string{"n1 n2 n3 (n4)", "n1 n2 n3 n4", "n1 n2 n4"}) {
		t.Errorf("the members were %q", seen)
	}
	clearRules(t, s.disk)
	s.checkClients()
}

// TestASurplusVoterWhoseDiskHasRecoveredIsReported has a disk that recovers before the operation ends.
func TestASurplusVoterWhoseDiskHasRecoveredIsReported(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorldWith(t, worldOptions{set: map[string]string{"timing.orphanGrace": "150s"}})
	s.loseReplacement()
	clearRules(t, s.disk)
	n1, n4 := s.hosts[0], s.hosts[3]
	s.within(rejoinBound, "n1 reports that four vote", func() bool { return n1.waitsFor(policy.TooManyVoters) })
	s.show("status")
	s.start(n4)
	s.eventually("n4 reports it, too", func() bool { return n4.waitsFor(policy.TooManyVoters) })
	s.never(quiet, "a member is removed", func() bool { return !s.has(4, 0) })
	s.eventually("n3 is removed after all agents report that n4 is healthy", func() bool {
		return me().ctl(n1, "member", "remove", "n3", "--yes", "--live", "--reason", "a test").code == 0
	})
	s.eventually("three vote", func() bool { return s.has(3, 0) && n1.waitsFor(policy.Idle) })
	s.checkClients()
}
