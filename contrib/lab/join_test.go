//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

func TestFiveBareHostsBecomeThreeVotersAStandbyAndASpare(t *testing.T) {
	dir, done, err := sharedFleetDir()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	f := newFleet(t, lab.Options{Hosts: 5})
	f.form()
	f.verify(3, 1)
	f.eventually("one host is left as a spare", func() bool {
		return len(f.role(policy.RoleVoter)) == 3 && len(f.role(policy.RoleStandby)) == 1 &&
			len(f.role(policy.RoleSpare)) == 1
	})
	for _, h := range f.Hosts {
		if f.is(h, policy.RoleSpare) {
			f.checkNeverRan(h)
			continue
		}
		f.checkDriven(h)
	}
	for _, h := range f.Hosts {
		boot, err := h.BootID(t.Context())
		f.check(err)
		// In a container the agent appends the start time of process 1 to the boot ID.
		if s, _ := f.status(h); !strings.HasPrefix(s.Host.BootID, strings.TrimSpace(boot)) {
			t.Errorf("the agent on %s is of boot %q, the host of %q", h.Name, s.Host.BootID, boot)
		}
		if output := f.shell(h,
			"journalctl --no-pager -o cat -u 'quorumd-runas@*' -p warning | sort | uniq -c"); output != "" &&
			!strings.Contains(output, "No entries") {
			t.Errorf("the runas services on %s log warnings:\n%s", h.Name, output)
		}
	}
	t.Logf("systemctl status etcd on n1:\n%s", f.shell(f.Hosts[0], "systemctl status --no-pager --lines=0 etcd"))
	t.Logf("quorumctl status on n1:\n%s", f.shell(f.Hosts[0], "quorumctl status"))
	if _, err := os.Stat(dir); err != nil {
		f.save(dir)
	}
}

// checkDriven checks that exactly one job of systemd started etcd, in the distribution's unit, and that systemd logged
// no kill.
func (f *fleet) checkDriven(h *lab.Host) {
	f.t.Helper()
	fragment, err := h.Property(f.t.Context(), "etcd", "FragmentPath")
	f.check(err)
	if want := "/lib/systemd/system/etcd.service"; fragment != want {
		f.t.Errorf("%s: etcd's unit is %s, the distribution's is %s", h.Name, fragment, want)
	}
	jobs, kills := 0, 0
	for line := range strings.Lines(f.shell(h, "journalctl --no-pager -o json _PID=1 UNIT=etcd.service")) {
		var entry struct {
			Message string `json:"MESSAGE"`
			Type    string `json:"JOB_TYPE"`
			Result  string `json:"JOB_RESULT"`
		}
		f.check(json.Unmarshal([]byte(line), &entry))
		// the job of a skipped unit is done, too
		if entry.Type == "start" && entry.Result == "done" && strings.HasPrefix(entry.Message, "Started ") {
			jobs++
		}
		if strings.Contains(entry.Message, "killed") {
			kills++
		}
	}
	if jobs != 1 || kills != 0 {
		f.t.Errorf("%s: systemd logged %d start jobs that were done and %d kills, want one and none", h.Name, jobs,
			kills)
	}
}

// checkNeverRan checks that a spare's etcd has never run. At boot systemd skips the unit and logs that.
func (f *fleet) checkNeverRan(h *lab.Host) {
	f.t.Helper()
	for line := range strings.Lines(f.shell(h,
		"journalctl --no-pager -o cat UNIT=etcd.service + _SYSTEMD_UNIT=etcd.service")) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "No entries") &&
			!strings.Contains(line, "etcd.hold") {
			f.t.Errorf("%s is a spare, and its etcd did this: %s", h.Name, line)
		}
	}
}
