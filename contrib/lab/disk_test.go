//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestAHostWithASlowDiskStaysOutUntilItsDiskIsFast has four hosts, one of them with a slow disk. That host reports why
// it does not join, in its status and in its journal, and joins when its disk is healthy.
func TestAHostWithASlowDiskStaysOutUntilItsDiskIsFast(t *testing.T) {
	faultfs, err := testbed.FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, lab.Options{Hosts: 4, Faultfs: faultfs})
	slow := f.Hosts[3]
	f.check(slow.Disk.Slow(300 * time.Millisecond))
	f.check(f.Each(func(h *lab.Host) error {
		if h == slow { // the others have loose limits, because all share one machine
			return f.installManagedWith(h, func(s lab.Settings) {
				s["disk"]["qualifySamples"], s["disk"]["window"] = 20, 20
				s["disk"]["fsyncWarm"], s["disk"]["fsyncClear"] = "250ms", "200ms"
			})
		}
		return f.installManaged(h)
	}))
	f.bootstrap(f.Hosts[0])
	f.within(2*bound, "there are three voters", func() bool { return f.has(3, 0) && f.isIdle() })

	f.within(2*bound, "the host with the slow disk reports that the disk is unfit", func() bool {
		s, ok := f.status(slow)
		return ok && f.is(slow, policy.RoleSpare) && f.hasReason(slow, "NOT_QUALIFIED") &&
			len(s.Health.Findings) > 0 &&
			s.Health.Findings[0].Code == "DISK_UNFIT"
	})
	t.Logf("quorumctl health on %s:\n%s", slow.Name, f.shell(slow, "quorumctl health || :"))
	output := f.shell(slow, "journalctl --no-pager -x -u quorumd QUORUMD_CODE=DISK_UNFIT")
	t.Logf("journalctl -x:\n%s", output)
	for _, text := range []string{
		"Subject: DISK_UNFIT: The disk failed its qualifying run",
		"What to do: use a disk that makes writes durable at this speed",
	} {
		if !strings.Contains(output, text) {
			t.Errorf("the journal lacks %q", text)
		}
	}
	f.never(3*time.Second, "the host joins", func() bool { return !f.has(3, 0) || f.op() != nil })

	f.check(slow.Disk.Repair())
	f.eventually("the host joins when its disk is fast", func() bool { return f.is(slow, policy.RoleStandby) })
	f.verify(3, 1)
}
