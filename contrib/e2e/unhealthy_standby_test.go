// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// standbyGrace is how long a standby must have been unhealthy before it is removed.
const standbyGrace = 30 * time.Second

// TestASpareReplacesAStandbyWithAnUnhealthyDisk runs clients that read and write throughout.
func TestASpareReplacesAStandbyWithAnUnhealthyDisk(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]string{
		"it is slow": "fsync * delay=" + unhealthyFsync.String(), "it hangs": "fsync * hang",
		"it fails": "fsync * err=EIO",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var disk *testbed.Mount
			w := newWorld(t, worldOptions{
				hosts: 5, standbys: 1, set: map[string]string{
					"timing.learnerStall": standbyGrace.String(), "disk.directInterval": "1s", "disk.walInterval": "1s",
				}, each: func(i int, o *testbed.HostOptions) {
					if i == 4 {
						disk = faulty(t, o, map[string]string{
							"disk.fsyncClear": "200ms", "disk.fsyncWarm": "250ms", "disk.fsyncSlow": "400ms",
							"disk.stall": "10s",
						})
					}
				},
			})
			t.Cleanup(func() { clearRules(t, disk) })
			n1, n4, n5 := w.hosts[0], w.hosts[3], w.hosts[4]
			w.start(w.hosts[:3]...)
			w.bootstrap()
			w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
			w.start(n4)
			w.within(2*formation, "n4 is the standby", func() bool { return w.has(3, 1) })
			w.start(n5)
			w.eventually("n5 is ready", n5.healthy)
			w.waitRolesAgree()
			registers, err := testbed.StartRegisters(t.Context(), w.listening())
			must(t, err)
			defer registers.Close()
			began := time.Now()
			rule(t, disk, fault)
			w.eventually("n1 reports what becomes of the standby", func() bool {
				return n1.hasReason(policy.StandbyLost)
			})
			t.Logf("n1# quorumctl status\n%s", me().ctl(n1, "status").output)
			w.within(standbyGrace+2*bound, "n5 is the standby instead of n4", func() bool {
				n4.promptStatus()
				_, learner := w.is(n5)
				return learner && w.has(3, 1) && !w.busy()
			})
			t.Logf("n5 was the standby after %.1f s", time.Since(began).Seconds())
			w.eventually("the history has the reason", func() bool {
				lines, err := w.history()
				return err == nil && slices.ContainsFunc(lines, func(l record.Line) bool {
					return l.Kind == "operation" && l.Code == string(policy.StandbyLost)
				})
			})
			clearRules(t, disk)
			w.eventually("n4's etcd is stopped", func() bool { return n4.etcdPID() == 0 })
			w.waitRolesAgree()
			w.linearizable(registers)
			w.verify(3, 1)
			if listed, _ := w.is(n4); listed {
				t.Error("n4 is a member again")
			}
		})
	}
}
