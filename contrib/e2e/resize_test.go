// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// resize asks this host to resize the cluster. It returns the plan, and the reason if the request is refused.
func (h *host) resize(req control.ResizeRequest) (control.Resize, string) {
	h.w.t.Helper()
	req.Reason = "a test"
	return ask(h, req, h.Client.Resize)
}

// ask sends a request to a host. It returns the answer, and the reason if the request is refused.
func ask[Request, Answer any](h *host, req Request, call func(context.Context, Request) (Answer, error)) (Answer,
	string,
) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(h.w.t.Context(), bound)
	defer cancel()
	answer, err := call(ctx, req)
	if err != nil {
		return answer, err.Error()
	}
	return answer, ""
}

// mustResize resizes the cluster with the plan of a dry run, and checks that both plans are the same.
func (h *host) mustResize(req control.ResizeRequest) control.Resize {
	h.w.t.Helper()
	asks := req
	asks.DryRun = true
	would, refused := h.resize(asks)
	if refused != "" {
		h.w.t.Fatal(refused)
	}
	req.IfRevision = &would.Revision
	does, refused := h.resize(req)
	if refused != "" {
		h.w.t.Fatal(refused)
	}
	if !slices.Equal(would.Steps, does.Steps) {
		h.w.t.Errorf("the dry run planned %+v, and the request %+v", would.Steps, does.Steps)
	}
	h.w.t.Logf("to %d voters: %+v", req.Voters, does.Steps)
	return does
}

// retrying writes to the cluster until the test ends. Each write is tried for 5 s, and each attempt takes at most 1 s.
func (w *world) retrying(rate int) *testbed.WriteLoad {
	w.t.Helper()
	var endpoints []string
	for _, h := range w.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	load, err := testbed.StartWriteLoad(w.t.Context(),
		testbed.LoadOptions{Endpoints: endpoints, Rate: rate, Retry: true, Timeout: 5 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { load.Stop() })
	return load
}

// hasSize waits until the cluster has that many voters and no operation is in flight.
func (w *world) hasSize(voters int) {
	w.t.Helper()
	w.within(4*formation, "the cluster has its size", func() bool { return w.has(voters, 0) && !w.busy() })
}

// left returns the names of the hosts whose voters have left, in order.
func (w *world) left() (names []string) {
	w.t.Helper()
	for _, line := range w.mustHistory() {
		if line.Operation == policy.KindLeave && line.Outcome == string(policy.Removed) {
			names = append(names, line.Name)
		}
	}
	return names
}

// mustHistory returns all lines of the history, oldest first.
func (w *world) mustHistory() []record.Line {
	w.t.Helper()
	lines, err := w.history()
	must(w.t, err)
	return lines
}

// checkPlan checks that the history from line first on shows the changes of a plan.
func (w *world) checkPlan(plan []policy.PlanStep, first int) {
	w.t.Helper()
	if err := testbed.CheckPlan(plan, w.mustHistory()[first:]); err != nil {
		w.t.Error(err)
	}
}

// checkReport stops the load, and fails the test if a write failed or none was acknowledged.
func checkReport(t *testing.T, load *testbed.WriteLoad) {
	t.Helper()
	r := load.Stop()
	t.Logf("%d writes, %d retried, slowest %s, longest gap %s", r.Acked, r.Retried, r.Slowest, r.LongestGap)
	if r.Failed > 0 || r.Acked == 0 {
		t.Errorf("%d of %d writes failed", r.Failed, len(r.Writes))
	}
}

func TestAResizedClusterGrowsAndShrinksAsPlannedWithoutAFailedWrite(t *testing.T) {
	t.Parallel()
	w := votersAndSpares(t, 2)
	load := w.retrying(50)
	before := len(w.mustHistory())
	plan := w.hosts[3].mustResize(control.ResizeRequest{Voters: 5})
	w.hasSize(5)
	w.waitRolesAgree()
	w.checkPlan(plan.Steps, before)

	first := w.hosts[0]
	first.observes("n1 sees five live voters", 5)
	before = len(w.mustHistory())
	plan = first.mustResize(control.ResizeRequest{Voters: 3})
	w.hasSize(3)
	checkReport(t, load)
	w.checkPlan(plan.Steps, before)
	left := w.left()
	if len(left) != len(plan.Steps) {
		t.Fatalf("%v left, and the plan was %+v", left, plan.Steps)
	}
	for i, step := range plan.Steps {
		if !strings.Contains(step.Text, left[i]+" leaves") || step.Voters != 4-i || !step.Final {
			t.Errorf("%s left, and the plan was %+v", left[i], step)
		}
	}
	for _, h := range w.hosts {
		if slices.Contains(left, h.Options.Name) {
			w.eventually(h.Options.Name+" is a spare whose etcd is stopped", func() bool {
				return h.role() == policy.RoleSpare && !h.etcdRuns()
			})
		}
	}
	w.verify(3, 0)
}

// observes waits until this host observes that many live voters and no operation.
func (h *host) observes(what string, voters int) {
	h.w.t.Helper()
	h.w.eventually(what, func() bool {
		s, ok := h.status()
		return ok && s.Cluster.Reachable && s.Cluster.Voters == voters && s.Op == nil &&
			s.Cluster.FaultTolerance == (voters-1)/2
	})
}

func TestTheLastButOneVoterLeavesOnlyWithASnapshotOrIfAllowed(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1 := w.hosts[0]
	if _, got := n1.resize(control.ResizeRequest{Voters: 1}); !strings.Contains(got, "no backup store is configured") {
		t.Fatalf("without a store: %q", got)
	}
	load := w.retrying(50)
	n1.mustResize(control.ResizeRequest{Voters: 1, WithoutSnapshot: true})
	w.hasSize(1)
	checkReport(t, load)
	if left := w.left(); len(left) != 2 {
		t.Errorf("%v left", left)
	}
	w.verify(1, 0)
}

func TestNoVoterLeavesForASingleOneWithoutASnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	w := allVoters(t, worldOptions{hosts: 3, voters: 3, set: map[string]string{
		"backup.store": fmt.Sprintf("{directory: %s}", dir),
	}})
	n1 := w.hosts[0]
	n1.mustResize(control.ResizeRequest{Voters: 1})
	w.eventually("every voter's host reports that a snapshot is missing", func() bool {
		for _, h := range w.hosts {
			s, ok := h.status()
			missing := func(r control.Reason) bool {
				return r.Code == string(policy.TooManyVoters) &&
					strings.Contains(r.Text, "no verified snapshot is younger")
			}
			if !ok || s.Role == policy.RoleVoter && !slices.ContainsFunc(s.Reasons, missing) {
				return false
			}
		}
		return true
	})
	w.never(10*time.Second, "a voter leaves without a snapshot", func() bool { return !w.has(3, 0) })
	if job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave}); job.Error != "" {
		t.Fatal(job.Error)
	}
	w.hasSize(1)
	w.verify(1, 0)
}

func TestALeaveCompletesAlthoughItsAgentIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after take-lock", "after begin-leave", "after set-phase/removing", "before remove-member",
		"after remove-member",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := threeIdleVoters(t)
			req := control.ResizeRequest{Voters: 1, WithoutSnapshot: true, DryRun: true}
			would, refused := w.hosts[0].resize(req)
			if refused != "" {
				t.Fatal(refused)
			}
			leaver := w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool {
				return strings.Contains(would.Steps[0].Text, h.Options.Name+" leaves")
			})]
			leaver.stopAt(at)
			load := w.retrying(20)
			req.DryRun = false
			if _, refused := w.hosts[0].resize(req); refused != "" {
				t.Fatal(refused)
			}
			leaver.waitStopped()
			leaver.crash(at, agentOnly)
			leaver.resume()
			w.start(leaver)
			w.hasSize(1)
			checkReport(t, load)
			w.verify(1, 0)
		})
	}
}

// Only n1 may act, so its voter leaves although that voter leads. Later it joins again, and its old data is moved
// aside.
func TestALeaderTransfersLeadershipBeforeItLeavesAndJoinsAgainLater(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1 := w.hosts[0]
	for _, h := range w.hosts[1:] {
		h.stop()
		h.set("mode", "observe")
		w.start(h)
	}
	w.lead(n1)
	w.eventually("n1 sees that the others only observe", func() bool {
		s, ok := n1.status()
		return ok && len(s.Hosts) == 3 && s.Cluster.FaultTolerance == 1 && !slices.ContainsFunc(s.Hosts,
			func(r control.HostRecord) bool { return r.Name != "n1" && r.Mode != string(policy.Observe) })
	})
	load := w.retrying(50)
	plan := n1.mustResize(control.ResizeRequest{Voters: 1, WithoutSnapshot: true})
	if !strings.Contains(plan.Steps[0].Text, "leadership is transferred from n1 to ") {
		t.Errorf("the plan is %+v", plan.Steps)
	}
	w.within(formation, "n1 has left", func() bool { return w.has(2, 0) && !w.busy() })
	if left := w.left(); !slices.Equal(left, []string{"n1"}) {
		t.Errorf("%v left", left)
	}
	if w.isVoter(n1) {
		t.Error("n1 still votes")
	}
	w.never(5*time.Second, "a host that only observes leaves", func() bool { return !w.has(2, 0) })
	n1.mustResize(control.ResizeRequest{Voters: 3})
	w.hasSize(3)
	checkReport(t, load)
	w.verify(3, 0)
}
