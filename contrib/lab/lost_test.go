//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestAHostLostInMaintenanceBlocksTheOthersUntilItIsReleased has a voter in maintenance lose power, return with a
// broken disk, and then lose power again. The host stays off until another host has replaced it. The test cannot
// boot a different kernel, because the hosts of a lab share the machine's kernel.
func TestAHostLostInMaintenanceBlocksTheOthersUntilItIsReleased(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	h := f.follower(nil)
	next, other := f.leader(), f.follower(h)
	f.shell(h, "quorumctl maintenance on --reason 'new disk' --for 1m --wait=2m")
	f.shell(next, "quorumctl cycle --reason 'new flags' --no-wait")
	waits := func(what string) {
		t.Helper()
		f.never(2*time.Second, "another host goes down "+what, func() bool {
			return !f.serves(next) || !f.serves(other)
		})
		f.eventually("the next host reports which host it waits for", func() bool {
			return f.waitsFor(next, "OPERATION_IN_FLIGHT", "cycle of "+h.Name)
		})
	}

	f.check(h.PowerLoss(t.Context()))
	f.check(h.PowerOn(t.Context()))
	f.check(h.Booted(t.Context()))
	f.check(h.Disk.Break())
	f.eventually("the host reports that its disk is broken", func() bool {
		s, ok := f.status(h)
		return ok && s.Health.State == "FAILED"
	})
	waits("while the first has a broken disk")
	f.eventually(h.Name+" reports that its maintenance is overdue", func() bool {
		return f.hasReason(h, "MAINTENANCE_OVERDUE") && f.metric(h, "quorumd_maintenance_overdue") == 1
	})
	f.shell(h, "quorumctl maintenance off --no-wait")
	f.eventually(h.Name+" reports that it cannot come back", func() bool { return f.hasReason(h, "DATA_UNUSABLE") })
	t.Logf("quorumctl status on %s, whose disk is broken:\n%s", h.Name, f.shell(h, "quorumctl status || :"))

	f.check(h.PowerLoss(t.Context())) // the host stays off until checkHarmlessReturn
	f.eventually("the host record of "+h.Name+" has expired", func() bool {
		s, ok := f.status(other)
		return ok && !slices.ContainsFunc(s.Hosts, func(r control.HostRecord) bool { return r.Name == h.Name })
	})
	waits("when the first is gone")
	for _, o := range f.Hosts {
		if o != h && f.metric(o, "quorumd_operation_overdue") != 1 {
			t.Errorf("the metrics of %s do not show that the operation is overdue", o.Name)
		}
	}
	status := ""
	// quorumctl says what to do only after the lost host's lock has expired
	f.eventually("another host reports that it is overdue, and what to do", func() bool {
		status = f.shell(other, "quorumctl status; quorumctl operation show")
		return !slices.ContainsFunc([]string{"OVERDUE by ", "new disk", "quorumctl retire " + h.Name + " --lost"},
			func(text string) bool {
				return !strings.Contains(status, text)
			})
	})
	t.Logf("quorumctl status and operation show on %s:\n%s", other.Name, status)

	f.releaseOperation(other, h)
	f.eventually("the next one does not go down while the lost one is a voter", func() bool {
		return f.waitsFor(next, "QUORUM_AT_RISK", h.Name)
	})
	f.remove(h) // the standby replaces it
	f.eventually("the next operation begins", func() bool {
		s, ok := f.status(next)
		return ok && s.LastMaintenance != nil && s.LastMaintenance.Code == policy.Cycled &&
			s.LastMaintenance.Reason == "new flags"
	})
	f.checkHarmlessReturn(h)
}

// releaseOperation releases the operation of another host as an operator, and checks that the history records who did
// that, and why.
func (f *fleet) releaseOperation(by, of *lab.Host) {
	f.t.Helper()
	f.t.Logf("quorumctl operation release on %s:\n%s", by.Name,
		f.shell(by, "quorumctl operation release --force --reason 'it was stolen'"))
	lines, err := f.history()
	f.check(err)
	i := slices.IndexFunc(lines, func(l record.Line) bool { return l.Code == "RELEASED" })
	if i < 0 {
		f.t.Fatal("the history does not record that the operation was released")
	}
	l := lines[i]
	f.t.Logf("history: %s %s: %s", l.Name, l.Code, l.Text)
	for _, text := range []string{"cycle of " + of.Name, "root", "it was stolen"} {
		if !strings.Contains(l.Text, text) {
			f.t.Errorf("the history lacks %q", text)
		}
	}
	if l.Name != by.Name {
		f.t.Errorf("the history records a release on %s, want %s", l.Name, by.Name)
	}
}

// checkHarmlessReturn powers on a host whose member was removed meanwhile, and checks that it becomes a spare and that
// no other host takes a step.
func (f *fleet) checkHarmlessReturn(h *lab.Host) {
	f.t.Helper()
	f.eventually("there are 3 voters and a standby without it", func() bool { return f.has(3, 1) && f.isIdle() })
	before, past := f.roles(), len(f.steps())
	f.check(h.PowerOn(f.t.Context()))
	f.check(h.Booted(f.t.Context()))
	f.eventually(h.Name+" is a spare", func() bool {
		s, ok := f.status(h)
		return ok && s.Role == policy.RoleSpare && s.Maintenance == nil
	})
	f.waitIdle()
	f.verify(3, 1)
	if after := f.roles(); fmt.Sprint(after) != fmt.Sprint(before) {
		f.t.Errorf("the members were %v, and are %v", before, after)
	}
	for _, step := range f.steps()[past:] {
		if !strings.HasPrefix(step, h.Name+" ") {
			f.t.Errorf("when %s came back: %s", h.Name, step)
		}
	}
}

// waitsFor reports whether a host's agent has this reason, with a text that contains text.
func (f *fleet) waitsFor(h *lab.Host, code, text string) bool {
	s, ok := f.status(h)
	return ok && slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
		return r.Code == code && strings.Contains(r.Text, text)
	})
}

// metric returns a value that a host's agent exports to Prometheus; -1 if it does not.
func (f *fleet) metric(h *lab.Host, name string) float64 {
	ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.Address+":9379/metrics", nil)
	f.check(err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	value := -1.0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			_, err := fmt.Sscan(text, &value)
			f.check(err)
		}
	}
	return value
}
