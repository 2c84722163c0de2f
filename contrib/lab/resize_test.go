//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestAClusterIsResizedWithoutAFailedWrite makes three voters five and three again, under writes that clients retry for
// 5 s. The agent of the first host that leaves is killed meanwhile.
func TestAClusterIsResizedWithoutAFailedWrite(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	f.waitHealthy()
	load := f.retryingWrites()
	for _, voters := range []int{5, 3} {
		t.Log(f.shell(f.Hosts[0], fmt.Sprintf("quorumctl cluster resize %d --dry-run", voters)))
		began, before := time.Now(), len(f.mustHistory())
		plan := f.resize(voters)
		if voters == 3 {
			f.killLeaver()
		}
		f.within(6*bound, fmt.Sprintf("%d vote", voters), func() bool {
			return f.votes(voters) && f.isIdle() && (voters == 5 || f.has(3, 1))
		})
		t.Logf("%6.1f s: %d voters, after %d planned steps", time.Since(began).Seconds(), voters, len(plan.Steps))
		if voters == 5 { // the agent of a host that leaves is killed, so another host may leave
			f.checkPlan(plan.Steps, before)
		}
	}
	f.checkWritten(load.Stop)
	t.Log(f.shell(f.Hosts[0], "quorumctl history --since 30m"))
	f.verify(3, 1)
}

// mustHistory returns all lines of the history, oldest first.
func (f *fleet) mustHistory() []record.Line {
	f.t.Helper()
	lines, err := f.history()
	f.check(err)
	return lines
}

// checkPlan checks that the history from line first on shows the changes of a plan. Which voter leaves also depends
// on the latest write times of the disks, which all hosts share here, so the hosts that leave may differ.
func (f *fleet) checkPlan(plan []policy.PlanStep, first int) {
	f.t.Helper()
	lines := f.mustHistory()[first:]
	var left []string
	for _, l := range lines {
		removed := l.Kind == "step" && l.Code == string(policy.StepRemoveMember) && l.Outcome != record.StepError
		if removed && !slices.Contains(left, l.Name) {
			left = append(left, l.Name)
		}
	}
	plan = slices.Clone(plan)
	for i := range plan {
		if plan[i].Change == policy.PlanLeaves && len(left) > 0 {
			plan[i].Host, left = left[0], left[1:]
		}
	}
	if err := testbed.CheckPlan(plan, lines); err != nil {
		f.t.Error(err)
	}
}

// retryingWrites starts writes through all hosts. Each is retried for 5 s.
func (f *fleet) retryingWrites() *testbed.WriteLoad {
	f.t.Helper()
	var endpoints []string
	for _, h := range f.Hosts {
		endpoints = append(endpoints, h.ClientURL())
	}
	load, err := testbed.StartWriteLoad(f.t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, Rate: 50, Retry: true, Timeout: 5 * time.Second,
		Prefix: fmt.Sprintf("load/%d/", time.Now().UnixNano()),
	})
	f.check(err)
	f.t.Cleanup(func() { load.Stop() })
	return load
}

// checkWritten ends the writes, and fails the test if one failed or none was acknowledged.
func (f *fleet) checkWritten(end func() testbed.LoadReport) {
	f.t.Helper()
	r := end()
	f.t.Logf("%d writes acknowledged, %d retried, %d failed, longest gap %v", r.Acked, r.Retried, r.Failed,
		r.LongestGap)
	if r.Failed > 0 || r.Acked == 0 {
		f.t.Errorf("%d writes failed", r.Failed)
	}
}

// resize asks the first host to resize the cluster.
func (f *fleet) resize(voters int) control.Resize {
	f.t.Helper()
	plan, err := f.askResize(voters, false)
	f.check(err)
	return plan
}

func (f *fleet) askResize(voters int, dryRun bool) (control.Resize, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	return control.Dial(f.Hosts[0].Path("/run/quorumd/control.sock")).Resize(ctx, control.ResizeRequest{
		Voters: voters, Reason: reason, WithoutSnapshot: voters == 1, DryRun: dryRun,
	})
}

// votes reports whether the member list has that many voters.
func (f *fleet) votes(want int) bool {
	n := 0
	for _, m := range f.members() {
		if !m.IsLearner && m.Name != "" {
			n++
		}
	}
	return n == want
}

// killLeaver kills the agent of the first host that leaves, as soon as that is recorded.
func (f *fleet) killLeaver() {
	f.t.Helper()
	var leaver *lab.Host
	f.eventually("a voter leaves", func() bool {
		for _, h := range f.Hosts {
			s, ok := f.status(h)
			if !ok || s.Op == nil || s.Op.Kind != policy.KindLeave {
				continue
			}
			for _, own := range f.Hosts {
				if own.Name == s.Op.HostName {
					leaver = own
				}
			}
		}
		return leaver != nil
	})
	f.t.Logf("quorumd on %s is killed: %s", leaver.Name,
		strings.TrimSpace(f.shell(leaver, "systemctl kill --signal=KILL quorumd && echo killed")))
}
