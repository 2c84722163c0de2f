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
	"github.com/quorumd/quorumd/contrib/lab"
)

// manner is a way to restart every member of a cluster.
type manner struct {
	name    string
	restart func(f *fleet, voters []*lab.Host)
}

// manners are those that operators have without quorumd, and quorumd's.
func manners() []manner {
	each := func(line string) func(f *fleet, voters []*lab.Host) {
		return func(f *fleet, voters []*lab.Host) {
			for _, h := range voters {
				f.shell(h, line)
			}
		}
	}
	return []manner{
		{"systemctl restart, without waiting", each("systemctl --no-block restart etcd")},
		{"systemctl restart, each waits for active", each("systemctl restart etcd")},
		{"SIGKILL, each waits for active", each("systemctl kill --signal=KILL etcd; systemctl restart etcd")},
		{"quorumctl rollout start restart", func(f *fleet, _ []*lab.Host) { f.rollOut("restart") }},
	}
}

// TestARolloutOfRestartsFailsNoWrite restarts three voters in every manner, under writes of a client that retries for 5 s. The
// figures of all stand side by side; quorumd's must fail no write.
func TestARolloutOfRestartsFailsNoWrite(t *testing.T) {
	f := standingFleet(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-42s  %8s  %6s  %8s\n", "MANNER", "WRITES", "FAILED", "GAP")
	for _, m := range manners() {
		before := f.etcdPIDs()
		report := f.under(func(voters []*lab.Host) { m.restart(f, voters) })
		fmt.Fprintf(&table, "%-42s  %8d  %6d  %8s\n", m.name, report.Acked, report.Failed, report.LongestGap.Round(time.Millisecond))
		after := f.etcdPIDs()
		for _, h := range f.role(control.RoleVoter) {
			if after[h.Name] == before[h.Name] {
				t.Errorf("%s: etcd on %s was not restarted", m.name, h.Name)
			}
		}
		if strings.HasPrefix(m.name, "quorumctl") && report.Failed > 0 {
			t.Errorf("%s: %d writes failed", m.name, report.Failed)
		}
		f.rest()
	}
	t.Logf("writes while all members are restarted:\n%s", &table)
}

// TestARolloutOfRebootsHasOneMemberDownAtATime reboots every host under writes.
func TestARolloutOfRebootsHasOneMemberDownAtATime(t *testing.T) {
	f := standingFleet(t)
	members, boots, began := f.roles(), f.boots(), time.Now()
	report := f.under(func([]*lab.Host) { f.rollOut("reboot") })
	t.Logf("%d writes acknowledged, %d failed, longest gap %v", report.Acked, report.Failed, report.LongestGap)
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	for name, boot := range f.boots() {
		if boot == boots[name] {
			t.Errorf("%s has not rebooted", name)
		}
	}
	f.oneDownAtATime(began)
	f.rest()
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
	t.Logf("quorumctl rollout status:\n%s", f.shell(f.Hosts[0], "quorumctl rollout status"))
}

// rollOut starts a rollout over all hosts and waits for its end.
func (f *fleet) rollOut(work string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
	defer cancel()
	asked := f.Hosts[0]
	r, err := control.Dial(asked.Path("/run/quorumd/control.sock")).StartRollout(ctx, control.RolloutRequest{Work: work, Reason: "the lab wants it"})
	f.check(err)
	began := time.Now()
	f.within(5*bound, "the rollout is done", func() bool {
		for _, h := range f.Hosts { // the one that was asked may be the one that reboots
			s, ok := f.status(h)
			if !ok || s.Rollout == nil || s.Rollout.ID != r.ID {
				continue
			}
			if s.Rollout.State == control.RolloutStopped {
				f.t.Fatalf("the rollout has stopped: %s", s.Rollout.Text)
			}
			return s.Rollout.State == control.RolloutDone
		}
		return false
	})
	f.t.Logf("%6.1f s: a rollout, %s, over %d hosts", time.Since(began).Seconds(), work, len(r.Hosts))
}

// absence is a time in which a host's etcd did not run, as its systemd has it.
type absence struct {
	host     string
	from, to time.Time
}

// oneDownAtATime sees in the hosts' journals that no two members were down at the same time since then.
func (f *fleet) oneDownAtATime(since time.Time) {
	f.t.Helper()
	var all []absence
	for _, h := range append(f.role(control.RoleVoter), f.role(control.RoleStandby)...) {
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
	for line := range strings.Lines(f.shell(h, fmt.Sprintf("journalctl --no-pager -o json --since=@%d _PID=1 UNIT=etcd.service", since.Unix()))) {
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
