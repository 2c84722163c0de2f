// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestConflictingMaintenanceRequestIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	command := control.MaintenanceRequest{
		Work: policy.WorkCommand, Command: "upgrade", Reason: "a test", For: control.Duration(time.Hour),
	}
	for name, c := range map[string]struct {
		became func(*hoststate.State, *hoststate.Request) error // what happened to the first request
		ask    func(*control.MaintenanceRequest)
		says   string
	}{
		"the command was started": {
			became: func(f *hoststate.State, k *hoststate.Request) error {
				return f.ProgramEnded(k, policy.HooksDone, "")
			},
			ask:  func(*control.MaintenanceRequest) {},
			says: "has already been started",
		},
		"the operation has ended": {
			became: func(f *hoststate.State, _ *hoststate.Request) error { return f.OperationEnds(nil) },
			ask:    func(*control.MaintenanceRequest) {}, says: "just ending",
		},
		"the new request is for other work": {
			ask:  func(r *control.MaintenanceRequest) { r.Work, r.Command = policy.WorkRestart, "" },
			says: "this host already has a different request (command), by root: a test",
		},
		"there is no such command": {
			ask: func(r *control.MaintenanceRequest) { r.Command = "downgrade" }, says: "there is no command downgrade",
		},
		"this machine cannot be rebooted": {
			ask:  func(r *control.MaintenanceRequest) { r.Work, r.Command = policy.WorkReboot, "" },
			says: "no way to reboot this machine",
		},
	} {
		h := newHost(t)
		h.publisher.Show(managed())
		if _, err := h.RequestMaintenance(t.Context(), command, "root"); err != nil {
			t.Fatal(err)
		}
		before, _ := h.files.Asked()
		if c.became != nil {
			if err := c.became(h.files, before); err != nil {
				t.Fatal(err)
			}
			before, _ = h.files.Asked()
		}
		again := command
		c.ask(&again)
		_, err := h.RequestMaintenance(t.Context(), again, "alice")
		e, is := errors.AsType[*control.Error](err)
		if !is || e.Kind != control.Conflicts || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: the answer is %v", name, err)
		}
		if now, _ := h.files.Asked(); now == nil || *now != *before || h.woken != 1 {
			t.Errorf("%s: the request is %+v, and the loop was woken %d times", name, now, h.woken)
		}
	}
}

// locked returns a check for permission to reboot that always returns err.
func locked(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func TestForbiddenRebootIsRefusedBeforeEtcdIsStopped(t *testing.T) {
	t.Parallel()
	reboot := control.MaintenanceRequest{Work: policy.WorkReboot, Reason: "a test", For: control.Duration(time.Hour)}
	byHand := reboot
	byHand.External = true
	for name, c := range map[string]struct {
		check func(context.Context) error
		req   control.MaintenanceRequest
		says  string
	}{
		"no rule":           {locked(errors.New("logind says no → cp RULE")), reboot, "logind says no → cp RULE"},
		"a rule":            {locked(nil), reboot, ""},
		"root's own reboot": {locked(errors.New("no")), byHand, ""},
	} {
		h := newHost(t)
		h.opt.CheckReboot = c.check
		h.publisher.Show(managed())
		_, err := h.RequestMaintenance(t.Context(), c.req, "root")
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if asked, _ := h.files.Asked(); (asked == nil) != (c.says != "") {
			t.Errorf("%s: noted is %+v", name, asked)
		}
	}
	h := newHost(t)
	h.opt.CheckReboot = locked(errors.New("logind says no"))
	h.publisher.Show(managed())
	_, err := h.StartRollout(t.Context(), control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"}, "root")
	if err == nil || !strings.Contains(err.Error(), "on this host, logind says no") {
		t.Errorf("a rollout of reboots: %v", err)
	}
}
