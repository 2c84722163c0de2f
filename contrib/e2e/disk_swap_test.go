// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// removeDisk moves a member's data away, as if the disk had been removed, and returns where the data is now.
func (h *host) removeDisk() (away string) {
	h.w.t.Helper()
	member := filepath.Join(h.DataDir(), "member")
	away = filepath.Join(h.DataDir(), "member.quorumd-old-disk")
	if err := os.Rename(member, away); err != nil {
		h.w.t.Fatal(err)
	}
	return away
}

// swapDisk empties a host's disk during its maintenance, like an operator who replaces the disk.
func (w *world) swapDisk(h *host) (away string) {
	w.t.Helper()
	h.request(control.MaintenanceRequest{Work: policy.WorkMaintenance, Reason: "new disk in slot 2"})
	w.eventually(h.Options.Name+" may be touched", func() bool { return h.maintenance() == policy.RequestSafe })
	return h.removeDisk()
}

// memberOf returns the member ID of a host in etcd's list; 0 if it has none.
func (w *world) memberOf(h *host) uint64 {
	for _, m := range w.members() {
		if m.PeerURLs[0] == h.Options.PeerURL {
			return m.ID
		}
	}
	return 0
}

// waitRejoined waits until a host votes again with a new member ID and no operation is in flight.
func (w *world) waitRejoined(h *host, before uint64) {
	w.t.Helper()
	began := time.Now()
	w.within(3*bound, h.Options.Name+" is a voter again", func() bool {
		id := w.memberOf(h)
		return id != 0 && id != before && w.isVoter(h) && h.role() == policy.RoleVoter && !w.busy()
	})
	w.t.Logf("%s is a voter again %s later", h.Options.Name, time.Since(began).Round(100*time.Millisecond))
}

// TestAHostWhoseDiskIsReplacedDuringItsMaintenanceVotesAgainUnattended tests the example of the README: no other host
// is ready, and voters are not replaced automatically.
func TestAHostWhoseDiskIsReplacedDuringItsMaintenanceVotesAgainUnattended(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n3 := w.hosts[2]
	before := w.memberOf(n3)
	load := w.load()
	away := w.swapDisk(n3)
	w.never(3*time.Second, "n3's member is given up during its maintenance", func() bool {
		return n3.maintenance() != policy.RequestSafe || w.memberOf(n3) != before
	})
	n3.endMaintenance()
	w.eventually("n3's operation has ended with MEMBER_LOST", func() bool { return n3.endedWith(policy.MemberLost) })
	w.waitRejoined(n3, before)
	if report := load.Stop(); report.Failed > 0 {
		t.Errorf("%d of %d writes failed", report.Failed, report.Acked+report.Failed)
	}
	if _, err := os.Stat(away); err != nil {
		t.Errorf("the old data has moved: %v", err)
	}
	w.waitRolesAgree()
	w.verify(3, 0)
	n3.requestWork(policy.WorkRestart)
	w.eventually("n3 is taken down and is back", func() bool { return n3.endedWith(policy.Cycled) })
}

// TestAfterADiskIsReplacedTheStandbyVotesAndTheHostBecomesTheStandby kills n3's agent right after its operation has
// ended, and puts the old disk back: n3 must not start the old member.
func TestAfterADiskIsReplacedTheStandbyVotesAndTheHostBecomesTheStandby(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 4, standbys: 1})
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(w.hosts[3])
	w.within(2*formation, "n4 is the standby", func() bool { return w.has(3, 1) })
	w.waitRolesAgree()
	n3, n4 := w.hosts[2], w.hosts[3]
	before := w.memberOf(n3)
	away := w.swapDisk(n3)
	n3.stopAt("after end-operation")
	n3.endMaintenance()
	n3.waitStopped()
	n3.kill()
	n3.resume()
	if err := os.Rename(away, filepath.Join(n3.DataDir(), "member")); err != nil {
		t.Fatal(err)
	}
	w.start(n3)
	began := time.Now()
	w.within(3*bound, "n4 votes, and n3 is the standby", func() bool {
		if n3.etcdRuns() && w.memberOf(n3) == before {
			t.Fatal("the member that was given up runs")
		}
		listed, learner := w.is(n3)
		return w.isVoter(n4) && listed && learner && w.has(3, 1) && !w.busy()
	})
	t.Logf("full strength %s later", time.Since(began).Round(100*time.Millisecond))
	w.waitRolesAgree()
	w.verify(3, 1)
}
