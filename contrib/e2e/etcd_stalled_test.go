// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestALeaderWhoseDatabaseDiskHangsTransfersLeadership makes only the syncs of etcd's database hang. The log is still
// written, so the leader keeps sending heartbeats, and the fsync probe finds nothing. First, while the leader's agent
// is down, the test shows that etcd keeps that leader.
func TestALeaderWhoseDatabaseDiskHangsTransfersLeadership(t *testing.T) {
	t.Parallel()
	w, disk := newStallingWorld(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	n1.running = false
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if err := n1.KillAgent(ctx); err != nil {
		t.Fatal(err)
	}
	rule(t, disk, "fsync db hang")
	n2.write("after", "the hang")
	another := func() bool { now := w.leader(n2); return now != 0 && now != w.memberID(n1) }
	w.never(15*time.Second, "another voter leads, although no quorumd has acted", another)
	clearRules(t, disk)
	w.start(n1)
	w.eventually("n1 is healthy, leads and is idle", func() bool {
		s, ok := n1.status()
		return ok && s.Health.State == "OK" && !another() && w.isIdle(n1) && n1.timesWrites()
	})

	rule(t, disk, "fsync db hang")
	n2.write("after", "the second hang")
	began := time.Now()
	w.eventually("n1 reports its etcd", func() bool { return n1.hasFinding("STALLED", "ETCD_STALLED") })
	t.Logf("found after %.1f s: %s", time.Since(began).Seconds(), n1.findingText("ETCD_STALLED"))
	w.eventually("another voter leads", another)
	t.Logf("another voter leads after %.1f s", time.Since(began).Seconds())
	w.never(quiet, "leadership returns to n1", func() bool { return !another() })

	clearRules(t, disk)
	w.eventually("n1 is healthy again", func() bool {
		s, ok := n1.status()
		return ok && s.Health.State == "OK" && n1.metric("quorumd_etcd_request_hung_seconds") == 0
	})
	w.verify(3, 0)
}

// TestAVoterWhoseLogDiskHangsReportsItsEtcd makes only the syncs of etcd's log hang. An etcd that writes its log in the
// Raft loop stops sending heartbeats, and the others elect another leader. With asynchronous storage writes, only
// quorumd ends the leadership.
func TestAVoterWhoseLogDiskHangsReportsItsEtcd(t *testing.T) {
	t.Parallel()
	w, disk := newStallingWorld(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	rule(t, disk, "fsync *.wal hang")
	began := time.Now()
	w.eventually("n1 reports its etcd", func() bool { return n1.hasFinding("STALLED", "ETCD_STALLED") })
	t.Logf("found after %.1f s: %s", time.Since(began).Seconds(), n1.findingText("ETCD_STALLED"))
	w.eventually("another voter leads", func() bool {
		now := w.leader(n2)
		return now != 0 && now != w.memberID(n1)
	})
	t.Logf("another voter leads after %.1f s", time.Since(began).Seconds())
	clearRules(t, disk)
	w.verify(3, 0)
}

// newStallingWorld starts three voters. n1 leads, and its disk, which is returned, can hang.
func newStallingWorld(t *testing.T) (*world, *testbed.Mount) {
	t.Helper()
	var disk *testbed.Mount
	set := map[string]string{"timing.transferInterval": "5s", "disk.stall": "20s", "disk.fail": "10m"}
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set, each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			disk = faulty(t, o, map[string]string{
				"disk.fsyncClear": "200ms", "disk.fsyncWarm": "300ms", "disk.fsyncSlow": "1s",
			})
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	w.lead(w.hosts[0])
	w.eventually("n1 is healthy, and has timed a write", func() bool {
		s, ok := w.hosts[0].status()
		return ok && s.Health.State == "OK" && w.hosts[0].timesWrites()
	})
	return w, disk
}

// timesWrites reports whether the host has timed a linearizable read and a write through its etcd.
func (h *host) timesWrites() bool {
	text, ok := h.fetch("/metrics")
	return ok && strings.Contains(text, `quorumd_etcd_request_seconds{request="write"}`) &&
		h.metric(`quorumd_etcd_request_seconds{request="read"}`) > 0
}

// findingText returns the text of a finding of this host; empty if there is none.
func (h *host) findingText(code string) string {
	s, _ := h.status()
	for _, f := range s.Health.Findings {
		if f.Code == code {
			return f.Text
		}
	}
	return ""
}
