// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// slowFsync is the delay of a write to the leader's disk: too short for etcd to elect another leader.
const slowFsync = 500 * time.Millisecond

// TestALeaderWithASlowDiskTransfersLeadership first shows, while the leader's agent is down, that etcd keeps the slow
// leader, and what that costs clients. When the agent runs again, another voter must lead, and writes must be fast.
func TestALeaderWithASlowDiskTransfersLeadership(t *testing.T) {
	t.Parallel()
	var disk *testbed.Mount
	set := map[string]string{
		"timing.callTimeout": "2500ms", "timing.lockTTL": "15s", "timing.transferInterval": "5s",
		"disk.directInterval": "1s", "disk.walInterval": "1s",
	}
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set, each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			disk = faulty(t, o, map[string]string{
				"disk.fsyncClear": "200ms", "disk.fsyncWarm": "250ms", "disk.fsyncSlow": "400ms", "disk.stall": "10s",
			})
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	w.lead(n1)
	w.eventually("n1 is healthy", func() bool { s, ok := n1.status(); return ok && s.Health.State == "OK" })

	n1.running = false
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if err := n1.KillAgent(ctx); err != nil {
		t.Fatal(err)
	}
	rule(t, disk, "fsync * delay="+slowFsync.String())
	w.never(15*time.Second, "another voter leads, although no quorumd has acted", func() bool {
		now := w.leader(n2)
		return now != 0 && now != w.memberID(n1)
	})
	slow := n2.writeTimes(10)
	began := time.Now()
	w.start(n1)
	w.eventually("another voter leads", func() bool {
		now := w.leader(n2)
		return now != 0 && now != w.memberID(n1)
	})
	took := time.Since(began)
	after := n2.writeTimes(30)
	t.Logf("%.1f s after its start the agent had transferred leadership; a write took %v before and %v after (medians)",
		took.Seconds(), slow, after)
	if slow < slowFsync || after > slowFsync/2 {
		t.Errorf("a write took %v with the slow leader and takes %v without it", slow, after)
	}
	w.eventually("the history records the leadership transfer", func() bool {
		lines, err := w.history()
		return err == nil && slices.ContainsFunc(lines, func(l record.Line) bool {
			return l.Code == string(policy.StepLeaderStepsDown) && l.Outcome == record.StepOK && l.Name == n1.Options.Name
		})
	})
	for _, args := range [][]string{{"status"}, {"history"}} { // as an operator sees it, for contrib/docs
		t.Logf("n1# quorumctl %s\n%s", args[0], me().ctl(n1, args...).output)
	}
	w.never(10*time.Second, "leadership returns to the host with the slow disk", func() bool {
		return w.leader(n2) == w.memberID(n1)
	})
	clearRules(t, disk)
	w.verify(3, 0)
}

// writeTimes returns the median latency of that many writes through this host's etcd.
func (h *host) writeTimes(n int) time.Duration {
	h.w.t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		_, err := h.etcd.Put(ctx, "timed", h.Options.Name)
		cancel()
		if err != nil {
			h.w.t.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[n/2].Round(time.Millisecond)
}
