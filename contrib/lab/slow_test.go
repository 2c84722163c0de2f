//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// slowFlush is the added time of each flush of the slow disk. A sync of a file takes about three flushes. etcd's
	// histogram has a boundary at 256 ms, and a leader whose syncs take a second loses leadership without quorumd.
	slowFlush = 120 * time.Millisecond
	// transferBound is how long a slow leader may keep leadership on a busy machine.
	transferBound = 60 * time.Second
)

// TestALeaderWithASlowDiskTransfersLeadershipAndIsReplacedByTheStandby slows the leader's disk under writes. The leader
// first transfers leadership, then the standby becomes a voter in its place. When its disk is healthy again, the host
// returns as a spare.
func TestALeaderWithASlowDiskTransfersLeadershipAndIsReplacedByTheStandby(t *testing.T) {
	faultfs, err := testbed.FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, lab.Options{Hosts: 5, From: formedFleet(t), Faultfs: faultfs})
	f.eventually("the hosts have come back by themselves", func() bool { return f.has(3, 1) && f.isIdle() })
	slow, standby := f.leader(), f.role(policy.RoleStandby)[0]
	f.enableRepair(func(s lab.Settings) {
		s["repair"] = map[string]any{"unhealthy": grace.String(), "cleanFor": "0s"}
		s["timing"]["transferInterval"] = "5500ms"
		if s["host"]["name"] == slow.Name { // the others have loose limits, because all share a machine
			s["disk"]["fsyncClear"], s["disk"]["fsyncWarm"], s["disk"]["fsyncSlow"] = "150ms", "200ms", "250ms"
		}
	})
	f.waitIdle()
	if f.leader() != slow {
		t.Fatalf("%s leads, and not %s", f.leader().Name, slow.Name)
	}
	load := f.load(slow)
	defer load.Stop()
	f.check(slow.Disk.Slow(slowFlush))
	began := time.Now()
	f.within(transferBound, "another voter leads", func() bool { return f.leader() != slow })
	t.Logf("%s led for %.1f s with a disk whose flushes take %v longer", slow.Name, time.Since(began).Seconds(),
		slowFlush)
	f.eventually("the history records the leadership transfer", func() bool {
		lines, err := f.history()
		return err == nil && slices.ContainsFunc(lines, func(l record.Line) bool {
			return l.Code == string(policy.StepLeaderStepsDown) && l.Outcome == record.StepOK && l.Name == slow.Name
		})
	})
	f.eventually("all hosts report it", func() bool {
		return !slices.ContainsFunc(f.Hosts, func(h *lab.Host) bool {
			return !f.hasReason(h, string(policy.VoterUnhealthy))
		})
	})
	t.Logf("quorumctl status on %s:\n%s", standby.Name, f.shell(standby, "quorumctl status"))
	f.within(grace+bound, standby.Name+" votes in its place", func() bool { return f.fullWithout(slow) })
	t.Logf("full strength without it %.1f s after its disk became slow, with a grace period of %v",
		time.Since(began).Seconds(), grace)
	f.eventually("the spare is the standby now", func() bool { return f.has(3, 1) && f.isIdle() })
	f.checkWrites(load.Stop())
	f.checkRepairHistory(slow)
	f.check(slow.Disk.Repair())
	f.eventually(slow.Name+" is a spare", func() bool { return f.is(slow, policy.RoleSpare) })
	f.verify(3, 1)
	f.checkHeld()
}
