//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestNoOtherHostGoesDownDuringMaintenance upgrades quorumd on a host in maintenance, cuts the host's power and
// restores the power. The next host also has a request, and must wait throughout.
func TestNoOtherHostGoesDownDuringMaintenance(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	members := f.roles()
	h := f.follower(nil)
	next := f.leader()
	t.Logf("quorumctl maintenance on:\n%s", f.shell(h, "quorumctl maintenance on --reason 'new disk' --wait=2m"))
	f.checkDown(h)
	f.shell(next, "quorumctl cycle --reason 'new flags' --no-wait")
	waits := func(what string) {
		t.Helper()
		f.never(3*time.Second, "the next host goes down "+what, func() bool { return !f.serves(next) })
		f.eventually("the next host reports which host it waits for", func() bool {
			return f.hasReason(next, "OPERATION_IN_FLIGHT")
		})
	}
	waits("while the first is in maintenance")
	f.check(h.Install(t.Context(), packageFile(t, "next")))
	f.eventually(h.Name+" has an upgraded agent and is still in maintenance", func() bool {
		s, ok := f.status(h)
		return ok && s.Host.Version == "0.0.2" && s.Maintenance != nil && s.Maintenance.State == policy.RequestSafe
	})
	f.checkDown(h)

	f.check(h.PowerLoss(t.Context()))
	waits("while the first has no power")
	t.Logf("quorumctl maintenance status on %s:\n%s", next.Name, f.shell(next, "quorumctl maintenance status"))
	f.check(h.PowerOn(t.Context()))
	f.check(h.Booted(t.Context()))
	f.eventually("the agent of "+h.Name+" is back, and the host is still in maintenance", func() bool {
		s, ok := f.status(h)
		return ok && s.Maintenance != nil && s.Maintenance.State == policy.RequestSafe
	})
	f.checkDown(h)
	waits("when the first has power again")

	t.Logf("quorumctl maintenance off:\n%s", f.shell(h, "quorumctl maintenance off --wait=2m"))
	f.eventually("the first serves again", func() bool { return f.serves(h) })
	f.eventually("the next operation begins", func() bool {
		s, ok := f.status(next)
		return ok && s.LastMaintenance != nil && s.LastMaintenance.Code == policy.Cycled &&
			s.LastMaintenance.Reason == "new flags"
	})
	f.waitIdle()
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
}

// checkDown checks that the etcd of a host in maintenance is stopped.
func (f *fleet) checkDown(h *lab.Host) {
	f.t.Helper()
	if state, _ := h.Property(f.t.Context(), "etcd", "ActiveState"); state != "inactive" {
		f.t.Errorf("%s is in maintenance, and its etcd is %s", h.Name, state)
	}
}
