// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// withCommands makes the world of withHooks, and writes the script as the command "upgrade" on every host.
func withCommands(t *testing.T, script func(h *host) string) *world {
	t.Helper()
	w := withHooks(t)
	for _, h := range w.hosts {
		h.command("upgrade", script(h))
	}
	return w
}

// witness returns lines of shell that record whether the host's etcd accepts connections, and the command's name and
// reason.
func (h *host) witness() string {
	address := strings.Replace(strings.TrimPrefix(h.Options.ClientURL, "http://"), ":", "/", 1)
	return `if bash -c 'exec 3<>/dev/tcp/` + address + `' 2>/dev/null; then etcd=up; else etcd=down; fi
echo "$QUORUMD_COMMAND with etcd $etcd, for $QUORUMD_REASON" >>../log`
}

// rollOut asks the second host's agent for a rollout of the command.
func (w *world) rollOut(name string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	_, err := w.hosts[1].Client.StartRollout(ctx, control.RolloutRequest{
		Work: policy.WorkCommand, Command: name,
		Reason: "a test",
	})
	return err
}

func TestARolloutRunsACommandOnceOnEveryHostWhileItsEtcdIsDown(t *testing.T) {
	t.Parallel()
	w := withCommands(t, (*host).witness)
	before := w.etcdPIDs()
	load := w.load()
	if err := w.rollOut("upgrade"); err != nil {
		t.Fatal(err)
	}
	w.rollout(record.RolloutDone)
	report := load.Stop()
	t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	for i, pid := range w.etcdPIDs() {
		h := w.hosts[i]
		if pid == before[i] || pid == 0 {
			t.Errorf("etcd of %s has PID %d, and had %d", h.Options.Name, pid, before[i])
		}
		name := h.Options.Name
		by := myName(t)
		want := "before command of " + name + " by " + by + "\nupgrade with etcd down, for a test\nafter command of " +
			name + " by " + by + "\n"
		if got := h.hookOutput(); got != want {
			t.Errorf("on %s was run:\n%s\nwant:\n%s", name, got, want)
		}
	}
	w.verify(3, 0)
}

func TestACommandThatFailsOnTheSecondHostStopsTheRolloutThere(t *testing.T) {
	t.Parallel()
	w := withCommands(t, func(*host) string {
		return `[ -e ../../first ] && { echo 'no space left' >&2; exit 7; }; : >../../first; echo ran >>../log`
	})
	if err := w.rollOut("upgrade"); err != nil {
		t.Fatal(err)
	}
	got := w.rollout(record.RolloutStopped)
	if !strings.HasSuffix(got.Text, ": upgrade: exit status 7: no space left") {
		t.Errorf("stopped because %q", got.Text)
	}
	ran, done := 0, 0
	for i, h := range w.hosts {
		ran += strings.Count(h.hookOutput(), "ran\n")
		if got.Hosts[i].State == record.HostDone {
			done++
		}
		w.eventually("etcd runs", h.etcdRuns)
	}
	if ran != 1 || done != 1 {
		t.Errorf("%d ran, %d are done: %+v", ran, done, got.Hosts)
	}
	w.never(2*time.Second, "another host goes down", func() bool {
		s, ok := w.hosts[2].status()
		return ok && s.Op != nil
	})
	w.verify(3, 0)
}

func TestAHostWithoutTheCommandStopsTheRolloutAndIsNotTakenDown(t *testing.T) {
	t.Parallel()
	w := withCommands(t, func(*host) string { return "echo ran >>../log" })
	if err := w.rollOut("upgrad"); err == nil || !strings.Contains(err.Error(), "there is no") {
		t.Errorf("a command that is not here: %v", err)
	}
	if refused := (*control.Error)(nil); !errors.As(w.rollOut("../before.d/10-test"), &refused) ||
		refused.Status != 400 {
		t.Errorf("a path: %v", refused)
	}
	n3 := w.hosts[2]
	if err := os.Remove(filepath.Join(n3.Options.Dir, "hooks", "commands.d", "upgrade")); err != nil {
		t.Fatal(err)
	}
	before := n3.etcdPID()
	if err := w.rollOut("upgrade"); err != nil {
		t.Fatal(err)
	}
	got := w.rollout(record.RolloutStopped)
	if !strings.Contains(got.Text, "on n3: upgrade: there is no ") {
		t.Errorf("stopped because %q", got.Text)
	}
	if now := n3.etcdPID(); now != before {
		t.Errorf("etcd of n3 had PID %d, and has %d", before, now)
	}
	if ran := n3.hookOutput(); ran != "" {
		t.Errorf("on n3 was run: %s", ran)
	}
	w.verify(3, 0)
}

func TestACommandOutlivesItsAgentAndIsNotRunTwice(t *testing.T) {
	t.Parallel()
	w := withCommands(t, func(*host) string {
		return `echo began >>../log; while [ ! -e ../go ]; do sleep 0.1; done; echo ended >>../log`
	})
	n1 := w.hosts[0]
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := n1.Client.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkCommand, Command: "upgrade",
		Reason: "a test",
	}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the command runs", func() bool { return strings.Contains(n1.hookOutput(), "began") })
	n1.kill()
	w.start(n1)
	w.eventually("the agent reports that it runs", func() bool {
		s, ok := n1.status()
		return ok && len(s.Reasons) > 0 && s.Reasons[0].Code == string(policy.CommandRunning)
	})
	n1.endMaintenance()
	w.never(2*time.Second, "etcd is started while it runs, or the machine is reported as safe to touch", func() bool {
		now := n1.maintenance()
		return n1.etcdRuns() || now != policy.RequestWorking && now != "unknown"
	})
	if err := os.WriteFile(filepath.Join(n1.Options.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.eventually("n1 is back", func() bool { return n1.endedWith(policy.Cycled) })
	by := myName(t)
	if got, want := n1.hookOutput(), "before command of n1 by "+by+"\nbegan\nended\nafter command of n1 by "+by+
		"\n"; got != want {
		t.Errorf("was run:\n%s", got)
	}
	w.verify(3, 0)
}
