// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// kills is the number of times the agent is killed and restarted while its disk hangs.
const kills = 3

// A probe that is stuck in the kernel outlives its agent and cannot be killed. The next agent's probe detects it and
// sends no further writes to the disk. The disk stays STALLED.
func TestHungDiskGetsNoMoreWritesFromRestartedAgents(t *testing.T) {
	t.Parallel()
	m := testbed.MountFaultfs(t, memory(t))
	t.Cleanup(func() {
		if err := m.Clear(); err != nil {
			t.Error(err)
		}
	})
	h := start(t, m.Dir, nil)
	testbed.Eventually(t, readyBound, "the probe writes", func() bool { return queryHealth(h).Disk.Samples > 0 })
	if err := m.Rule("fsync * hang"); err != nil {
		t.Fatal(err)
	}
	until(t, h, readyBound, "STALLED", "DISK_STALLED")
	before := stats(t, m)
	for range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := h.KillAgent(ctx)
		cancel()
		if err == nil {
			err = h.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		until(t, h, readyBound, "STALLED", "DISK_STALLED")
		testbed.Eventually(t, readyBound, "the agent reports that its probe is refused", func() bool {
			return strings.Contains(queryHealth(h).Text, "so this may be stale")
		})
		if now := stats(t, m); now != before {
			t.Errorf("the disk got %s, and %s before", now, before)
		}
	}
	if err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, readyBound, "the probe of the last agent still writes", func() bool {
		return queryHealth(h).Disk.Samples > 0
	})
	until(t, h, readyBound, "SLOW", "DISK_FSYNC_SLOW")
}

// stats returns how many operations each rule has matched and how many it delays now, as faultfs prints them.
func stats(t *testing.T, m *testbed.Mount) string {
	t.Helper()
	output, err := m.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(output)
}
