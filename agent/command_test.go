// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// told is what the side that runs the programs tells.
type told struct {
	result hooks.Result
	err    error
}

func (t told) Start(context.Context, hooks.Run) error { return t.err }

func (t told) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }

func (t told) Find(string) error { return t.err }

func TestWhatWasAskedSinceTheRoundIsNotAtWorkWithTheProgramOfTheOneBefore(t *testing.T) {
	t.Parallel()
	a := &Agent{opt: Options{BootID: "boot-1", Wall: time.Now}}
	k := &local.Request{Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0)}
	r := &round.Round{Request: k}
	r.View.Cluster.Reachable = true
	r.View.Asked = &policy.Asked{Work: policy.WorkCommand, Command: policy.Hooks{State: policy.HooksRunning}}
	if got := a.maintenanceStatus(r, k).State; got != control.MaintenanceWorking {
		t.Errorf("what runs is %s", got)
	}
	anew := &local.Request{Work: policy.WorkReboot, Since: time.Unix(2, 0)}
	if got := a.maintenanceStatus(r, anew).State; got != control.MaintenanceWaiting {
		t.Errorf("what was asked since is %s", got)
	}
	rebooted := &local.Request{Work: policy.WorkReboot, Since: time.Unix(2, 0), BootID: "boot-0", Stopped: true}
	if got := a.maintenanceStatus(r, rebooted).State; got != control.MaintenanceReturning {
		t.Errorf("what has rebooted is %s", got)
	}
	if a.maintenanceStatus(&round.Round{}, k).State != control.MaintenanceWaiting {
		t.Error("what the round has not seen does not wait")
	}
	if r.View.Asked.Work != policy.WorkCommand || r.View.Asked.Stopped {
		t.Error("the round was changed, which others read")
	}
}

func TestTheStatesOfARequestAreThoseOfTheSocket(t *testing.T) {
	t.Parallel()
	for state, want := range map[policy.RequestState]string{
		policy.RequestWaiting: control.MaintenanceWaiting, policy.RequestStopping: control.MaintenanceStopping,
		policy.RequestSafe: control.MaintenanceSafe, policy.RequestWorking: control.MaintenanceWorking,
		policy.RequestReturning: control.MaintenanceReturning,
	} {
		if string(state) != want {
			t.Errorf("%s is %s there", state, want)
		}
	}
}
