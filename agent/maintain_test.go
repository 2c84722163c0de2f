// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestRequestsAreAnsweredWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		h, hang := f.hosts["s0000"], make(chan struct{})
		h.mu.Lock()
		h.hang = hang
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		req := control.MaintenanceRequest{
			Work: policy.WorkMaintenance, Reason: "a test", For: control.Duration(time.Hour),
		}
		began := time.Now()
		_, err := h.agent.RequestMaintenance(ctx, req, "root")
		if err == nil || !strings.Contains(err.Error(), "does not respond") {
			t.Errorf("the answer is %v", err)
		}
		if err := h.agent.EndMaintenance(ctx, "root"); err == nil {
			t.Error("the end was accepted although nothing can be recorded")
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the answer took %s", took)
		}
		close(hang)
		f.until(time.Minute, "the request is recorded and cancelled", func() bool {
			s := h.agent.Status()
			return s.Maintenance == nil && s.LastMaintenance != nil
		})
	})
}

func TestAQueuedRequestIsHurriedWhenTheMachineShutsDown(t *testing.T) {
	t.Parallel()
	for work, want := range map[policy.Work]bool{policy.WorkMaintenance: true, policy.WorkRestart: false} {
		inFleet(t, 1, func(t *testing.T, f *fleet) {
			h := f.hosts["v2"].agent
			req := control.MaintenanceRequest{Work: work, Reason: "a test", For: control.Duration(time.Hour)}
			if _, err := h.RequestMaintenance(t.Context(), req, "root"); err != nil {
				t.Fatal(err)
			}
			down := control.MaintenanceRequest{
				Work: policy.WorkReboot, Reason: "the machine goes down",
				For: control.Duration(time.Hour), External: true, Hurried: true,
			}
			if _, err := h.RequestMaintenance(t.Context(), down, "logind"); err == nil ||
				!strings.Contains(err.Error(), "already has a different request") {
				t.Errorf("%s: the answer is %v", work, err)
			}
			if k, _ := h.files.Asked(); k == nil || k.Work != work || k.Hurried != want {
				t.Errorf("%s: the request is %+v, want hurried %t", work, k, want)
			}
			if err := h.Unhurry(t.Context()); err != nil {
				t.Fatal(err)
			}
			if k, _ := h.files.Asked(); k == nil || k.Hurried {
				t.Errorf("%s: after the cancellation the request is %+v", work, k)
			}
		})
	}
}

func TestAnExtendedMaintenanceUpdatesTheOperationsDeadline(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.takeDown("v2")
		f.pass(10 * time.Minute)
		more := control.MaintenanceRequest{
			Work: policy.WorkMaintenance, Reason: "a test", For: control.Duration(3 * time.Hour),
		}
		if _, err := f.hosts["v2"].agent.RequestMaintenance(t.Context(), more, "root"); err != nil {
			t.Fatal(err)
		}
		want := time.Now().Add(time.Duration(more.For))
		f.until(time.Minute, "the operation ends later", func() bool { op, _ := f.op(); return op.Until.Equal(want) })
		_, written := f.op()
		f.pass(10 * time.Minute)
		if _, now := f.op(); now != written {
			t.Errorf("it is written repeatedly: at revision %d and then at %d", written, now)
		}
	})
}

func TestAQueuedRequestIsNotOverdue(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.takeDown("v2")
		f.ask("v3")
		f.pass(3 * time.Hour)
		for name, want := range map[string]bool{"v2": true, "v3": false} {
			s := f.hosts[name].agent.Status()
			if own := f.hosts[name].agent.publisher.Current().View.Asked.Overdue; s.Maintenance.Overdue != want ||
				own != want {
				t.Errorf("%s is overdue: status %t, view %t; want %t", name, s.Maintenance.Overdue, own, want)
			}
		}
		f.over("v2")
		f.until(5*time.Minute, "v3 is safe to touch", func() bool { return f.state("v3") == policy.RequestSafe })
		if op, _ := f.op(); op.HostName != "v3" || op.Until.Sub(op.Started) != time.Hour {
			t.Errorf("the operation of %s ends %s after it began, want the requested hour", op.HostName,
				op.Until.Sub(op.Started))
		}
	})
}

func TestARunningRolloutsRequestCannotBeCancelledOnItsHost(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.takeDown("v3")
		v1, v2 := f.hosts["v1"].agent, f.hosts["v2"].agent
		must(t, v2.files.TakeTurn(&hoststate.Request{
			Request: policy.Request{Work: policy.WorkReboot}, Rollout: "x", Since: time.Now().UTC(),
		}))
		value, err := record.Encode(record.Rollout{
			ID: "x", Work: "reboot", State: record.RolloutRunning,
			Hosts: []record.RolloutHost{{ID: "id-v2", Name: "v2", State: record.HostWaiting}},
		})
		must(t, err)
		_, err = v1.opt.Etcd.Txn(t.Context(), nil, clientv3.OpPut(v1.keys.Rollout(), string(value)))
		must(t, err)
		f.pass(10 * time.Second)
		if err := v2.EndMaintenance(t.Context(), "root"); err == nil ||
			!strings.Contains(err.Error(), "would request it again") {
			t.Errorf("the answer is %v", err)
		}
		_, err = v1.SetRollout(t.Context(), record.RolloutPaused, "root")
		must(t, err)
		f.pass(10 * time.Second)
		if err := v2.EndMaintenance(t.Context(), "root"); err != nil {
			t.Errorf("with a paused rollout: %v", err)
		}
	})
}
