//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// failure is a failure of quorumd on a host whose etcd votes.
type failure struct {
	name      string
	breakWith string // a line of shell
	// unit and cli are what "systemctl status quorumd" and "quorumctl status" then print; one of the texts is enough.
	unit, cli  []string
	recovers   bool   // whether quorumd recovers by itself
	repairWith string // if not, a line of shell that repairs it
}

func failures() []failure {
	const unreachable = "cannot reach quorumd"
	return []failure{
		{
			name: "stopped", breakWith: "systemctl disable --now quorumd",
			unit: []string{"inactive (dead)"}, cli: []string{unreachable}, repairWith: "systemctl enable --now quorumd",
		},
		{
			name: "killed", breakWith: "systemctl kill --signal=KILL quorumd",
			unit: []string{"status=9/KILL", "Started quorumd"}, cli: []string{"voter"}, recovers: true,
		},
		{
			name: "hung", breakWith: "systemctl kill --kill-who=main --signal=STOP quorumd",
			unit: []string{"Watchdog timeout", "Failed with result 'watchdog'", "(Result: watchdog)"},
			cli:  []string{"voter"}, recovers: true,
		},
		{
			name: "crashing at start",
			breakWith: "cp /etc/quorumd/quorumd.yaml /root/ && echo 'modus: manage' >>/etc/quorumd/quorumd.yaml; " +
				"systemctl restart quorumd; true",
			unit: []string{"unknown key"}, cli: []string{unreachable},
			repairWith: "cp /root/quorumd.yaml /etc/quorumd/quorumd.yaml; systemctl reset-failed quorumd; " +
				"systemctl start " +
				"quorumd",
		},
		{
			name: "without its bus for a moment", breakWith: "systemctl restart dbus", unit: []string{`Status: "voter`},
			cli: []string{"voter"}, recovers: true,
		},
		{
			name:      "on a full disk",
			breakWith: "head -c 64M /dev/zero >/var/lib/quorumd/full; sync; systemctl restart quorumd; true",
			unit:      []string{`Status: "voter`}, cli: []string{"voter"}, repairWith: "rm /var/lib/quorumd/full",
		},
		{
			name: "without polkit", breakWith: "systemctl mask --now polkit; systemctl restart quorumd",
			unit: []string{`Status: "voter`}, cli: []string{"voter"},
			repairWith: "systemctl unmask polkit",
		},
	}
}

func TestEtcdServesWhateverFailsInQuorumd(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	h := f.follower(nil)
	// The shipped watchdog allows a minute. This one ends a hung agent in the same way, but sooner.
	f.shell(h, "mkdir -p /etc/systemd/system/quorumd.service.d && printf '[Service]\nWatchdogSec=6s\n' "+
		">/etc/systemd/system/quorumd.service.d/watchdog.conf && systemctl daemon-reload && systemctl restart quorumd")
	f.eventually("the agent is idle", func() bool { return f.hasReason(h, "IDLE") })
	for _, a := range failures() {
		began := time.Now()
		f.failAndRepair(h, a)
		t.Logf("%-28s survived with a reboot in %.1f s", a.name, time.Since(began).Seconds())
	}
	f.verify(3, 1)
}

// failAndRepair makes quorumd on a host fail, reboots the host, and repairs it.
func (f *fleet) failAndRepair(h *lab.Host, a failure) {
	f.t.Helper()
	pid, err := h.MainPID(f.t.Context(), "etcd")
	f.check(err)
	f.shell(h, a.breakWith)
	f.waitForOutput(h, a.name, "systemctl status --no-pager --lines=20 quorumd", a.unit)
	f.waitForOutput(h, a.name, "quorumctl status", a.cli)
	if now, err := h.MainPID(f.t.Context(), "etcd"); err != nil || now != pid {
		f.t.Errorf("quorumd %s: etcd's process was %d, and is %d: %v", a.name, pid, now, err)
	}
	f.writeThrough(h)
	if a.recovers {
		f.shell(h, a.breakWith) // quorumd has recovered, so make it fail again before the reboot
	}
	f.check(h.Reboot(f.t.Context()))
	f.eventually("etcd serves after a reboot of a host whose quorumd is "+a.name, func() bool { return f.serves(h) })
	f.writeThrough(h)
	if a.repairWith != "" {
		f.shell(h, a.repairWith)
	}
	f.eventually("the agent is idle again", func() bool { return f.hasReason(h, "IDLE") })
}

// waitForOutput waits until a command on the host prints one of these texts, whatever its exit code.
func (f *fleet) waitForOutput(h *lab.Host, state, command string, texts []string) {
	f.t.Helper()
	var output string
	defer func() {
		if f.t.Failed() {
			f.t.Logf("quorumd %s: %s prints\n%s", state, command, output)
		}
	}()
	f.eventually("quorumd "+state+": "+strings.Fields(command)[0]+" prints "+strings.Join(texts, " or "), func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
		defer cancel()
		output, _ = h.Shell(ctx, command+" 2>&1") // for a service that is down the command fails, as it should
		for _, text := range texts {
			if strings.Contains(output, text) {
				return true
			}
		}
		return false
	})
}

// unwrapLines joins text that was wrapped for a terminal into one line.
func unwrapLines(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeThrough writes through a host's own etcd.
func (f *fleet) writeThrough(h *lab.Host) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*callTimeout)
	defer cancel()
	if _, err := f.etcds[h].Put(ctx, "served-by", h.Name); err != nil {
		f.t.Errorf("etcd on %s does not serve: %v", h.Name, err)
	}
}

// TestAnImpossibleJoinReportsItsReason removes what a host needs to start etcd. The host reports what is missing, and
// joins when that is restored.
func TestAnImpossibleJoinReportsItsReason(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	const config, full = "/etc/quorumd/quorumd.yaml", "/var/lib/quorumd-etcd"
	for _, c := range []struct{ name, breakWith, repairWith, says string }{
		{
			"root's helper is masked", "systemctl mask --now quorumd-helper.socket",
			"systemctl unmask quorumd-helper.socket; systemctl start quorumd-helper.socket", "quorumd-helper.socket",
		},
		{
			"users other than root can write the configuration",
			"chmod g+w " + config, "chmod g-w " + config, "chmod go-w",
		},
		// While nothing changes, only an agent that has just started writes the environment again.
		{
			"the disk of the environment is full",
			"mount -t tmpfs -o size=8k,mode=0755 full " + full + "; head -c 64k /dev/zero >" + full +
				"/full; systemctl restart quorumd; true",
			"umount " + full, "no space left",
		},
	} {
		hosts := append(f.role(policy.RoleSpare), f.role(policy.RoleStandby)...)
		if len(hosts) != 2 {
			t.Fatalf("there are %d hosts that could join, want 2", len(hosts))
		}
		for _, h := range hosts {
			_, _ = h.Shell(t.Context(), c.breakWith) // filling the disk fails on purpose
		}
		f.removeStandby()
		f.eventually("a host that would join reports in its status and in that of its unit that "+c.name, func() bool {
			for _, h := range hosts {
				cli, _ := h.Shell(t.Context(), "quorumctl explain 2>&1")
				unit, _ := h.Shell(t.Context(), "systemctl status --no-pager --lines=0 quorumd 2>&1")
				if strings.Contains(unwrapLines(cli), c.says) && strings.Contains(unit, c.says) {
					t.Logf("quorumctl explain:\n%s\nsystemctl status quorumd:\n%s", cli, unit)
					return true
				}
			}
			return false
		})
		if voters := f.role(policy.RoleVoter); len(voters) != 3 {
			t.Errorf("there are %d voters", len(voters))
		}
		for _, h := range hosts {
			f.shell(h, c.repairWith)
		}
		f.verify(3, 1)
	}
}
