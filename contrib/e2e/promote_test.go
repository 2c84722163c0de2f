// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// watched makes n2 join in a new world, until it has caught up and is being watched before its promotion.
func watched(t *testing.T, stall time.Duration) *world {
	t.Helper()
	w := joiningWorld(t, worldOptions{proxied: true})
	n2 := w.hosts[1]
	n2.set("timing.promoteStable", watchedFor)
	n2.set("timing.learnerStall", stall.String())
	w.start(n2)
	w.eventually("n2 is watched", func() bool { return n2.waitsFor(policy.LearnerNotSteady) })
	return w
}

func TestALearnerThatHasCaughtUpAndIsCutOffIsNotPromoted(t *testing.T) {
	t.Parallel()
	const stall = 12 * time.Second
	w := watched(t, stall)
	n2 := w.hosts[1]
	w.hinder(testbed.Cut())
	w.never(stall-time.Second, "n2 was promoted, or the quorum is lost", func() bool {
		return w.isVoter(n2) || w.members() == nil
	})
	w.eventually("n2 is removed", func() bool { listed, _ := w.is(n2); return !listed && len(w.members()) > 0 })
	w.unhinder()
	w.verify(2, 0)
}

func TestALearnerThatHasCaughtUpAndIsKilledIsNotPromoted(t *testing.T) {
	t.Parallel()
	const stall = 12 * time.Second
	w := watched(t, stall)
	n2 := w.hosts[1]
	n2.breakEtcd("exit 1") // or the agent would start etcd again
	n2.killEtcd()
	w.never(stall-time.Second, "n2 was promoted, or the quorum is lost", func() bool {
		return w.isVoter(n2) || w.members() == nil
	})
	w.eventually("n2 is removed", func() bool { listed, _ := w.is(n2); return !listed && len(w.members()) > 0 })
	n2.repairEtcd()
	w.verify(2, 0)
}
