//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestARolloutOfRebootsHasOneMemberDownAtATime reboots every host under writes, for as many rounds as the test of
// restarts.
func TestARolloutOfRebootsHasOneMemberDownAtATime(t *testing.T) {
	f := formedFleetRunning(t)
	members := f.roles()
	var all []outcome
	for round := range *rounds {
		got := f.rebootAll()
		t.Logf("round %d: %+v", round+1, got)
		all = append(all, got)
	}
	t.Logf("writes while all hosts are rebooted:\n%s",
		outcomeTable([]string{"quorumctl rollout start reboot"},
			map[string][]outcome{"quorumctl rollout start reboot": all}))
	judge(t, "reboots", all)
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
	t.Logf("quorumctl rollout status:\n%s", f.shell(f.Hosts[0], "quorumctl rollout status"))
}

// rebootAll reboots all hosts with a rollout, under writes, and waits until all are idle again.
func (f *fleet) rebootAll() outcome {
	f.t.Helper()
	boots, began := f.boots(), time.Now()
	var got outcome
	report := f.underWrites(func(voters []*lab.Host) {
		stop := watchSync(f.t.Context(), voters)
		defer func() { got.fewer = stop() }()
		f.runRollout(control.RolloutRequest{Work: policy.WorkReboot})
	})
	got.note(report)
	for name, boot := range f.boots() {
		if boot == boots[name] {
			f.t.Errorf("%s has not rebooted", name)
		}
	}
	f.checkOneDownAtATime(began)
	f.waitIdle()
	return got
}

// TestARolloutOfACommandRunsItOnceOnEachHostWhileItsEtcdIsDown runs a program on all voters, as root in the packaged
// unit, under writes.
func TestARolloutOfACommandRunsItOnceOnEachHostWhileItsEtcdIsDown(t *testing.T) {
	f := formedFleetRunning(t)
	const script = `printf '#!/bin/sh\necho "$(id -un) $(systemctl show -P ActiveState etcd) $QUORUMD_COMMAND $QUORUMD_REASON" >>/var/log/commanded\n' ` +
		`>/etc/quorumd/hooks/commands.d/look && chmod +x /etc/quorumd/hooks/commands.d/look`
	f.check(f.Each(func(h *lab.Host) error {
		_, err := h.Shell(t.Context(), script)
		return err
	}))
	began := time.Now()
	var voters []*lab.Host
	report := f.underWrites(func(all []*lab.Host) {
		voters = all
		f.runRollout(control.RolloutRequest{Work: policy.WorkCommand, Command: "look", Hosts: names(all)})
	})
	t.Logf("%d writes acknowledged, %d failed, longest gap %v", report.Acked, report.Failed, report.LongestGap)
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	for _, h := range voters {
		if got, want := f.shell(h, "cat /var/log/commanded"), "root inactive look "+reason; got != want {
			t.Errorf("%s: the command saw %q, want %q once", h.Name, got, want)
		}
	}
	f.checkOneDownAtATime(began)
	f.waitIdle()
}

// reason is the reason of every rollout and resize of the lab.
const reason = "a test of the lab"

func names(hosts []*lab.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}

// runRollout starts a rollout and waits until it is done.
func (f *fleet) runRollout(request control.RolloutRequest) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
	defer cancel()
	request.Reason = reason
	r, err := control.Dial(f.Hosts[0].Path("/run/quorumd/control.sock")).StartRollout(ctx, request)
	f.check(err)
	began := time.Now()
	f.within(5*bound, "the rollout is done", func() bool {
		for _, h := range f.Hosts { // the host that is queried may be the one that reboots
			s, ok := f.status(h)
			if !ok || s.Rollout == nil || s.Rollout.ID != r.ID {
				continue
			}
			if s.Rollout.State == record.RolloutStopped {
				f.t.Fatalf("the rollout has stopped: %s", s.Rollout.Text)
			}
			return s.Rollout.State == record.RolloutDone
		}
		return false
	})
	f.t.Logf("%6.1f s: a rollout (%s) of %d hosts", time.Since(began).Seconds(), request.Work, len(r.Hosts))
}

// absence is a period in which a host's etcd did not run, according to its systemd.
type absence struct {
	host     string
	from, to time.Time
}

// checkOneDownAtATime checks in the journals since the given time that no two members were down at the same time.
func (f *fleet) checkOneDownAtATime(since time.Time) {
	f.t.Helper()
	var all []absence
	for _, h := range append(f.role(policy.RoleVoter), f.role(policy.RoleStandby)...) {
		all = append(all, f.absences(h, since)...)
	}
	slices.SortFunc(all, func(a, b absence) int { return a.from.Compare(b.from) })
	for i, a := range all {
		f.t.Logf("etcd on %s was down for %.1f s", a.host, a.to.Sub(a.from).Seconds())
		if i > 0 && a.from.Before(all[i-1].to) {
			f.t.Errorf("etcd went down on %s while it was down on %s", a.host, all[i-1].host)
		}
	}
	if len(all) == 0 {
		f.t.Error("no etcd was down at all")
	}
}

func (f *fleet) absences(h *lab.Host, since time.Time) []absence {
	f.t.Helper()
	var all []absence
	for line := range strings.Lines(f.shell(h,
		fmt.Sprintf("journalctl --no-pager -o json --since=@%d _PID=1 UNIT=etcd.service", since.Unix()))) {
		var entry struct {
			Message string `json:"MESSAGE"`
			At      string `json:"__REALTIME_TIMESTAMP"` // in µs
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // "No entries"
		}
		micros, err := strconv.ParseInt(entry.At, 10, 64)
		f.check(err)
		switch at := time.UnixMicro(micros); {
		case strings.HasPrefix(entry.Message, "Stopping etcd"):
			all = append(all, absence{host: h.Name, from: at})
		case strings.HasPrefix(entry.Message, "Started etcd") && len(all) > 0:
			all[len(all)-1].to = at
		}
	}
	for _, a := range all {
		if a.to.IsZero() {
			f.t.Errorf("etcd on %s went down and did not come back", a.host)
		}
	}
	return all
}
