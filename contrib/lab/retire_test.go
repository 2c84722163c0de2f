//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestRetiredHostsLeaveWithoutAFailedWriteAndStayOut retires the leader, under writes that clients retry for 5 s. The
// retired host reboots, and its agent is reinstalled. Then a host in maintenance is lost and retired, too, and powered
// on again later.
func TestRetiredHostsLeaveWithoutAFailedWriteAndStayOut(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	f.waitHealthy()
	load := f.retryingWrites()
	old, by := f.leader(), f.follower(nil)
	t.Log(f.shell(by, "quorumctl retire "+old.Name+" --reason 'end of lease' --dry-run"))
	began := time.Now()
	t.Log(f.shell(by, "quorumctl retire "+old.Name+" --reason 'end of lease' --yes"))
	f.within(4*bound, old.Name+" can be switched off", func() bool {
		return f.retired(by, old.Name) == control.RetiredLeft && f.has(3, 1) && f.isIdle()
	})
	t.Logf("%.1f s until the retired host had left and a new standby was there", time.Since(began).Seconds())
	f.checkWritten(load.Stop)

	f.check(old.Reboot(t.Context()))
	f.check(old.Booted(t.Context()))
	f.shell(old, "systemctl stop quorumd && dpkg --purge quorumd")
	f.check(f.installManaged(old))
	f.eventually("the new agent of "+old.Name+" reports that its host is retired", func() bool {
		return f.hasReason(old, string(policy.HostRetired))
	})

	lost := f.follower(by)
	f.shell(lost, "quorumctl maintenance on --reason 'new disk' --wait=2m")
	f.check(lost.PowerLoss(t.Context()))
	f.eventually(lost.Name+" is retired as lost", func() bool {
		_, err := by.Shell(t.Context(), "quorumctl retire "+lost.Name+" --lost --reason 'mainboard is dead' --yes")
		return err == nil
	})
	f.within(2*bound, "the standby has replaced it", func() bool {
		return f.retired(by, lost.Name) == control.RetiredLeft && f.has(3, 0) && f.isIdle()
	})
	f.check(lost.PowerOn(t.Context()))
	f.check(lost.Booted(t.Context()))
	f.eventually("the lost host is back, and reports that it is retired", func() bool {
		return f.hasReason(lost, string(policy.HostRetired))
	})
	t.Log(f.shell(by, "quorumctl retire; quorumctl history --since 30m"))
	for id, name := range f.roles() {
		if strings.HasPrefix(name, old.Name) || strings.HasPrefix(name, lost.Name) {
			t.Errorf("%s is member %x", name, id)
		}
	}
	f.verify(3, 0)
}

// TestLeadershipIsTransferredOnRequest asks a follower's host to transfer leadership to itself.
func TestLeadershipIsTransferredOnRequest(t *testing.T) {
	f := formedFleetRunning(t)
	f.waitHealthy()
	load := f.retryingWrites()
	h := f.follower(nil)
	t.Log(f.shell(h, fmt.Sprintf("quorumctl leader transfer %s --reason test --wait=1m --yes", h.Name)))
	if f.leader() != h {
		t.Errorf("%s leads, want %s", f.leader().Name, h.Name)
	}
	f.checkWritten(load.Stop)
	f.verify(3, 1)
}

// retired returns the state in which a host's status lists the retired host with that name.
func (f *fleet) retired(by *lab.Host, name string) string {
	s, ok := f.status(by)
	if i := slices.IndexFunc(s.Retired, func(r control.Retired) bool { return r.Name == name }); ok && i >= 0 {
		return s.Retired[i].State
	}
	return ""
}
