// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// threeIdleVoters makes a world of three healthy voters, with no operation in flight.
func threeIdleVoters(t *testing.T) *world {
	t.Helper()
	return allVoters(t, worldOptions{hosts: 3, voters: 3})
}

// allVoters makes a world in which all hosts become voters.
func allVoters(t *testing.T, o worldOptions) *world {
	t.Helper()
	w := newWorld(t, o)
	w.start(w.hosts...)
	w.bootstrap()
	w.within(time.Duration(o.hosts-1)*formation, "all are voters", func() bool { return w.has(o.hosts, 0) })
	w.waitRolesAgree()
	return w
}

// requestWork requests an operation that takes the host down.
func (h *host) requestWork(work policy.Work) {
	h.w.t.Helper()
	h.request(control.MaintenanceRequest{Work: work, Reason: "a test"})
}

// requestRunning requests an operation of the host during which its etcd keeps running.
func (h *host) requestRunning() {
	h.w.t.Helper()
	h.request(control.MaintenanceRequest{Work: policy.WorkMaintenance, KeepRunning: true, Reason: "a test"})
}

func (h *host) request(req control.MaintenanceRequest) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var err error
	// A request that was reported as ended may be on disk for a moment longer, and until then the agent refuses the
	// next one.
	h.w.eventually("the last request has ended", func() bool {
		_, err = h.Client.RequestMaintenance(ctx, req)
		return err == nil || !strings.Contains(err.Error(), "is just ending")
	})
	if err != nil {
		h.w.t.Fatalf("cannot request a %[2]s of %[1]s: %[3]v", h.Options.Name, req.Work, err)
	}
}

func (h *host) endMaintenance() {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := h.Client.EndMaintenance(ctx); err != nil {
		h.w.t.Fatalf("the maintenance of %s cannot be ended: %v", h.Options.Name, err)
	}
}

// maintenance returns the state of the host's request: "" if it has none, "unknown" if its agent does not answer.
func (h *host) maintenance() policy.RequestState {
	s, ok := h.status()
	switch {
	case !ok:
		return "unknown"
	case s.Maintenance == nil:
		return ""
	}
	return s.Maintenance.State
}

// endedWith reports whether the host has no request and the last one ended with the given code.
func (h *host) endedWith(code policy.ReasonCode) bool {
	s, ok := h.status()
	return ok && s.Maintenance == nil && s.LastMaintenance != nil && s.LastMaintenance.Code == code
}

func TestMaintenanceOfTheLeaderTransfersLeadershipAndLastsUntilEnded(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	w.lead(n1)
	load := w.load()
	n1.requestWork(policy.WorkMaintenance)
	w.eventually("n1 is safe to touch", func() bool { return n1.maintenance() == policy.RequestSafe })
	if n1.etcdRuns() {
		t.Error("n1 is reported as safe to touch, and its etcd runs")
	}
	n2.requestWork(policy.WorkRestart)
	n1.kill()
	w.never(5*time.Second, "n2 was taken down as well, or n1's etcd was started during its maintenance", func() bool {
		return n2.maintenance() != policy.RequestWaiting || n1.etcdRuns()
	})
	w.start(n1)
	w.eventually("n1 reports that it is in maintenance", func() bool { return n1.waitsFor(policy.InMaintenance) })
	if n1.etcdRuns() {
		t.Error("n1's etcd was started before the maintenance was over")
	}
	n1.endMaintenance()
	w.eventually("n1 is back", func() bool { return n1.endedWith(policy.Cycled) })
	w.eventually("n2's operation has ended", func() bool { return n2.endedWith(policy.Cycled) })
	report := load.Stop()
	t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	if report.Failed > 0 { // contrib/lab tests the length of the gaps, on a quieter machine
		t.Errorf("%d writes failed", report.Failed)
	}
	w.waitRolesAgree()
	w.verify(3, 0)
}

// load writes to the cluster until the test ends.
func (w *world) load() *testbed.WriteLoad {
	w.t.Helper()
	return w.writes(100)
}

// writes writes to the cluster at the given rate per second.
func (w *world) writes(rate int) *testbed.WriteLoad {
	w.t.Helper()
	var endpoints []string
	for _, h := range w.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	load, err := testbed.StartWriteLoad(w.t.Context(), // on a busy machine an election takes many seconds
		testbed.LoadOptions{Endpoints: endpoints, Rate: rate, Retry: true, Timeout: time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { load.Stop() })
	return load
}

// etcdRuns reports whether the host's agent reports a running etcd; false if the agent does not answer.
func (h *host) etcdRuns() bool {
	s, ok := h.status()
	return ok && s.Unit.State == string(policy.UnitActive)
}

func TestARolloutRestartsEveryHostOnceAndTheLeaderLast(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	w.lead(w.hosts[0])
	before := w.etcdPIDs()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := w.hosts[1].Client.StartRollout(ctx,
		control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	load := w.load()
	w.eventually("the rollout is done", func() bool {
		s, ok := w.hosts[2].status()
		return ok && s.Rollout != nil && s.Rollout.State == record.RolloutDone
	})
	report := load.Stop()
	t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	for i, pid := range w.etcdPIDs() {
		if pid == before[i] || pid == 0 {
			t.Errorf("etcd of %s has PID %d, and had %d: it was not restarted", w.hosts[i].Options.Name, pid, before[i])
		}
	}
	if order := w.cycled(); len(order) != 3 || order[2] != "n1" {
		t.Errorf("the hosts were restarted in the order %v, the leader n1 is to be the last", order)
	}
	w.verify(3, 0)
}

func (w *world) etcdPIDs() []int {
	var out []int
	for _, h := range w.hosts {
		out = append(out, h.etcdPID())
	}
	return out
}

// cycled returns the hosts that were taken down and came back, in order.
func (w *world) cycled() []string {
	lines, err := w.history()
	if err != nil {
		w.t.Fatalf("cannot read the history: %v", err)
	}
	var out []string
	for _, l := range lines {
		if l.Kind == "operation" && l.Code == string(policy.Cycled) {
			out = append(out, l.Name)
		}
	}
	return slices.Clone(out)
}
