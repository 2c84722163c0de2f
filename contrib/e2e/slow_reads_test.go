// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// verySlowFsync is the delay of a write to the leader's disk. A linearizable read through the leader takes at least
	// twice as long, and an agent's call times out after 2 s. From about 900 ms on, etcd itself sometimes elects
	// another leader.
	verySlowFsync = 700 * time.Millisecond
	// otherLedFor is how long another voter must have led by transferDeadline. On an idle machine a leader with such a
	// disk leads for at most 20 s; the unit tests of the agent check this to the second. On a busy machine etcd itself
	// sometimes elects another leader, and then elects the first one again.
	otherLedFor, transferDeadline = 12 * time.Second, 60 * time.Second
)

// TestALeaderWithADiskTooSlowForReadsTransfersLeadership runs with the default times, except for a shorter
// timing.transferInterval and a longer disk.stall.
func TestALeaderWithADiskTooSlowForReadsTransfersLeadership(t *testing.T) {
	t.Parallel()
	expectAnotherLeader(t, verySlowFsync)
}

// TestALeaderWithAnAlmostStuckDiskLosesLeadership accepts a transfer by quorumd and an election by etcd, which is
// usually faster.
func TestALeaderWithAnAlmostStuckDiskLosesLeadership(t *testing.T) {
	t.Parallel()
	expectAnotherLeader(t, 900*time.Millisecond)
}

func expectAnotherLeader(t *testing.T, delay time.Duration) {
	t.Helper()
	var disk *testbed.Mount
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			disk = faulty(t, o, nil)
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	w.shipped(map[string]string{
		"timing.transferInterval": "5s", "disk.window": "30", "disk.stall": "5s",
		"disk.fsyncClear": "40ms", "disk.fsyncWarm": "80ms", "disk.fsyncSlow": "200ms",
	})
	w.lead(n1)
	w.eventually("n1 is healthy and idle", func() bool {
		s, ok := n1.status()
		return ok && s.Health.State == "OK" && w.isIdle(n1)
	})
	load, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{
		Endpoints: []string{n2.Options.ClientURL, n3.Options.ClientURL}, Rate: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Stop() })
	another := func() bool {
		now := w.leader(n2)
		return now != 0 && now != w.memberID(n1)
	}
	w.never(6*time.Second, "another voter leads", another) // n1 must have led for this long

	rule(t, disk, "fsync * delay="+delay.String())
	began := time.Now()
	var led time.Time // when n1 last led
	w.within(transferDeadline, "another voter leads, and n1 does not", func() bool {
		if !another() {
			led = time.Now()
		}
		return time.Since(led) > otherLedFor
	})
	t.Logf("n1 led for %.1f s after each write to its disk took %v longer", led.Sub(began).Seconds(), delay)
	t.Logf("n1# quorumctl status\n%s", me().ctl(n1, "status").output)
	clearRules(t, disk)
	w.eventually("n1 serves again", n1.writes)
	if report := load.Stop(); report.Acked == 0 {
		t.Error("no write was acknowledged: this proves nothing")
	}
}

// shipped restarts all agents with the default times and the given settings.
func (w *world) shipped(set map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for _, h := range w.hosts {
		h.running = false
		if err := h.StopAgent(ctx); err != nil {
			w.t.Fatal(err)
		}
		h.Options.Shipped = true
		for _, key := range []string{"disk.directInterval", "disk.walInterval"} {
			delete(h.Options.Set, key)
		}
		for key, value := range set {
			h.set(key, value)
		}
	}
	w.start()
}
