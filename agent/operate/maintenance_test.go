// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestWhatIsAskedForAgainstWhatStandsIsRefusedInItsOwnWords(t *testing.T) {
	t.Parallel()
	command := control.MaintenanceRequest{
		Work: control.WorkCommand, Command: "upgrade", Reason: "a test", For: time.Hour,
	}
	for name, c := range map[string]struct {
		stands func(*local.State, *local.Request) error // what has become of it
		ask    func(*control.MaintenanceRequest)
		says   string
	}{
		"its command was started": {
			stands: func(f *local.State, k *local.Request) error {
				return f.ProgramEnded(k, policy.HooksDone, "")
			},
			ask:  func(*control.MaintenanceRequest) {},
			says: "was started already",
		},
		"it is over": {
			stands: func(f *local.State, _ *local.Request) error { return f.OperationEnds(nil) },
			ask:    func(*control.MaintenanceRequest) {}, says: "just coming to its end",
		},
		"it is another work": {
			ask:  func(r *control.MaintenanceRequest) { r.Work, r.Command = control.WorkRestart, "" },
			says: "another command is asked for already, by root: a test",
		},
		"there is no such command": {
			ask: func(r *control.MaintenanceRequest) { r.Command = "downgrade" }, says: "there is no command downgrade",
		},
		"nobody reboots this machine": {
			ask:  func(r *control.MaintenanceRequest) { r.Work, r.Command = control.WorkReboot, "" },
			says: "no way to reboot this machine",
		},
	} {
		h := newHost(t)
		h.told.Show(managed())
		if _, err := h.AskMaintenance(t.Context(), command, "root"); err != nil {
			t.Fatal(err)
		}
		before, _ := h.files.Asked()
		if c.stands != nil {
			if err := c.stands(h.files, before); err != nil {
				t.Fatal(err)
			}
			before, _ = h.files.Asked()
		}
		again := command
		c.ask(&again)
		_, err := h.AskMaintenance(t.Context(), again, "alice")
		e, is := errors.AsType[*control.Error](err)
		if !is || e.Kind != control.Conflicts || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: the answer is %v", name, err)
		}
		if now, _ := h.files.Asked(); now == nil || *now != *before || h.woken != 1 {
			t.Errorf("%s: what is asked is %+v, and the loop was woken %d times", name, now, h.woken)
		}
	}
}
