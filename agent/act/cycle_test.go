// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

func TestStopForACancelledRequestLeavesTheNewRequestAlone(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	decided := &hoststate.Request{Request: policy.Request{Work: policy.WorkMaintenance}, Since: time.Unix(1, 0)}
	ask(t, opt, &hoststate.Request{
		Request: policy.Request{Work: policy.WorkMaintenance, KeepRunning: true}, Since: time.Unix(2, 0),
	})
	if err := New(opt).noteStop(t.Context(), &task{on: &round.Round{Request: decided}}); err == nil ||
		!strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the take-down ended with %v", err)
	}
	held, _ := opt.Files.StartGuarded()
	if now, _ := opt.Files.Asked(); now.Stopped || held {
		t.Errorf("etcd is noted as stopped for %+v, held back: %t", now, held)
	}
}

func TestNoOperationBeginsForACancelledRequest(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	r := decided(policy.StepBeginCycle, &hoststate.Request{
		Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0),
	})
	err := New(opt).beginCycle(t.Context(), &task{on: r})
	if err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("it ended with %v", err)
	}
}
