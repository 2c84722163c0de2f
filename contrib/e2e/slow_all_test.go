// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestNoLeadershipTransferWhileTheDisksOfAllVotersAreSlow shows that a common cause triggers no leadership transfer:
// another leader would be just as slow.
func TestNoLeadershipTransferWhileTheDisksOfAllVotersAreSlow(t *testing.T) {
	t.Parallel()
	var disks []*testbed.Mount
	set := map[string]string{
		"timing.callTimeout": "2500ms", "timing.lockTTL": "15s", "timing.transferInterval": "5s",
		"disk.directInterval": "1s", "disk.walInterval": "1s",
	}
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set, each: func(_ int, o *testbed.HostOptions) {
		disks = append(disks, faulty(t, o, map[string]string{
			"disk.fsyncClear": "150ms", "disk.fsyncWarm": "180ms", "disk.fsyncSlow": "200ms", "disk.stall": "10s",
		}))
	}})
	t.Cleanup(func() {
		for _, disk := range disks {
			clearRules(t, disk)
		}
	})
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	// The delay is too short for etcd to elect another leader by itself.
	for _, disk := range disks {
		rule(t, disk, "fsync * delay=300ms")
	}
	w.eventually("the leader reports that all are slow", func() bool {
		return slices.ContainsFunc(w.hosts, func(h *host) bool { return h.hasReason(policy.CommonCause) })
	})
	t.Logf("n1# quorumctl status\n%s", me().ctl(w.hosts[0], "status").output)
	// If the leader was found slow a little earlier than the others, it may have transferred leadership by now.
	before := 0
	w.eventually("etcd returns the history", func() (ok bool) {
		before, ok = w.transfers()
		return ok
	})
	w.never(20*time.Second, "leadership is transferred, or an operation begins", func() bool {
		n, ok := w.transfers()
		return ok && n > before || w.busy()
	})
	for _, disk := range disks {
		clearRules(t, disk)
	}
	w.verify(3, 0)
}

// transfers returns the number of leadership transfers by quorumd; false if etcd does not answer.
func (w *world) transfers() (n int, ok bool) {
	lines, err := w.history()
	for _, l := range lines {
		if l.Code == string(policy.StepLeaderStepsDown) {
			n++
		}
	}
	return n, err == nil
}
