// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const asQuorumd = "setpriv --reuid=quorumd --regid=quorumd --clear-groups "

// watched returns a host whose only voter quorumd manages, with additional lines of configuration.
func watched(t *testing.T, more string) *host {
	t.Helper()
	h := hostWithEtcd(t)
	h.run("mkdir -p /var/log/journal && journalctl --flush && dpkg -i /pk/first.deb")
	// In its own mount namespace, the service would read the boot ID of the machine, which a reboot of the container
	// does not change.
	var open strings.Builder
	for _, setting := range []string{
		"System", "Home", "Clock", "Hostname", "KernelLogs", "KernelModules",
		"KernelTunables", "ControlGroups",
	} {
		open.WriteString("Protect" + setting + "=no\n")
	}
	h.run("mkdir -p /etc/systemd/system/quorumd.service.d && printf " +
		"'[Service]\nProtectProc=default\nPrivateTmp=no\nPrivateDevices=no\n" + open.String() +
		"' >/etc/systemd/system/quorumd.service.d/boot.conf && systemctl daemon-reload")
	h.configure(config("manage") + more)
	h.run("systemctl enable --now quorumd")
	h.expect("quorumctl status", "mode manage", "voter, leader")
	return h
}

// journal returns the messages that journalctl prints with these arguments; empty on an error.
func (h *host) journal(args string) string {
	h.t.Helper()
	out, _ := h.try("journalctl --no-pager -o cat " + args + " | cat")
	return out
}

func TestAManualRebootWaitsForQuorumdAndThenContinuesWithAWarning(t *testing.T) {
	t.Parallel()
	h := watched(t, "")
	h.waitUntil(30*time.Second, "the machine waits for quorumd", func() bool {
		return strings.Contains(h.journal("-u quorumd"), "acquired the shutdown delay lock max_delay=5s")
	})
	h.expect("systemd-inhibit --list --no-pager", "quorumd", "shutdown", "delay", "leadership")
	boot := h.run("cat /proc/sys/kernel/random/boot_id")
	h.run("systemctl reboot")
	h.waitForReboot(boot)
	h.waitUntil(time.Minute, "etcd is back", func() bool {
		out, _ := h.try("quorumctl status")
		return strings.Contains(out, "voter, leader")
	})
	before := h.journal("-b -1 -u quorumd")
	t.Logf("before the reboot:\n%s", before)
	for _, want := range []string{
		"machine is shutting down", "IS GOING DOWN AND ETCD LOSES ITS QUORUM", "QUORUM_AT_RISK",
		"only one voter",
	} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q before the reboot in:\n%s", want, before)
		}
	}
	// While the machine boots, logind may answer late, so only the lines after the start of the shutdown count.
	if _, then, _ := strings.Cut(before, "machine is shutting down"); strings.Contains(then, "cannot acquire the "+
		"shutdown delay lock") {
		t.Errorf("the end of the bus at the shutdown is reported as a fault:\n%s", before)
	}
	// Priority 0 is the highest. The journal writes lines of this priority to every terminal.
	if loud := h.journal("-b -1 -u quorumd -p 0"); strings.Count(loud, "IS GOING DOWN AND ETCD LOSES ITS QUORUM") != 1 {
		t.Errorf("on the terminals:\n%s", loud)
	}
	h.waitUntil(30*time.Second, "no request is left", func() bool {
		out, _ := h.try("quorumctl status -o json | grep -c '\"maintenance\":'")
		return out == "0"
	})
}

func TestQuorumdMayDelayAShutdownAndRebootOnlyByRootsRuleAndForceNothing(t *testing.T) {
	onEachDebian(t, delaysAndReboots)
}

func delaysAndReboots(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	can := "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager "
	if out := h.run(asQuorumd + can + "CanReboot"); out == `s "yes"` {
		t.Errorf("quorumd may reboot before root allows it: %s", out)
	}
	if out, err := h.try(asQuorumd + can + "Reboot b false"); err == nil {
		t.Fatalf("quorumd reboots the machine: %s", out)
	}
	h.run("cp /usr/share/quorumd/polkit/51-quorumd-reboot.rules /etc/polkit-1/rules.d/")
	h.waitUntil(30*time.Second, "quorumd may reboot under root's rule", func() bool {
		out, _ := h.try(asQuorumd + can + "CanReboot")
		return out == `s "yes"`
	})
	if out := h.run(asQuorumd + can + "CanPowerOff"); out == `s "yes"` {
		t.Errorf("quorumd can power the machine off: %s", out)
	}
	if out := h.run("setpriv --reuid=65534 --regid=65534 --clear-groups " + can + "CanReboot"); out == `s "yes"` {
		t.Errorf("any user may reboot: %s", out)
	}
	h.run(asQuorumd + "systemd-inhibit --what=shutdown --mode=delay true")
	if out, err := h.try(asQuorumd + "systemd-inhibit --what=shutdown --mode=block true"); err == nil {
		t.Errorf("quorumd can block a shutdown: %s", out)
	}
	h.run("systemd-run --unit=apt systemd-inhibit --what=shutdown --mode=block --who=apt sleep 600")
	h.waitUntil(30*time.Second, "another inhibitor blocks a shutdown", func() bool {
		return strings.Contains(h.run("systemd-inhibit --list --no-pager"), "apt")
	})
	if out, err := h.try(asQuorumd + can + "Reboot b false"); err == nil {
		t.Errorf("quorumd overrides a package manager: %s", out)
	}
}

func TestHooksRunAsRootInTheirOwnUnit(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("manage"))
	h.run(`systemctl start quorumd-helper.socket
printf '#!/bin/sh\nid -u; env | grep QUORUMD_ | sort; grep CapEff /proc/self/status\n' >/etc/quorumd/hooks/before.d/10-look
printf '#!/bin/sh\necho cannot drain >&2; exit 1\n' >/etc/quorumd/hooks/after.d/10-fail
chmod +x /etc/quorumd/hooks/*.d/*`)
	start := func(when, id string) string {
		h.order(asQuorumd,
			fmt.Sprintf(`{"word":"hooks","agent":"quorumd","hooks":{"when":"%s","id":"%s","work":"reboot","reason":"new kernel","by":"root"}}`, when, id), "{}")
		var outcome string
		h.waitUntil(30*time.Second, "the hooks have run", func() bool {
			outcome, _ = h.try(asQuorumd + "cat /run/quorumd-hooks/quorumd/" + when + ".json")
			return strings.Contains(outcome, `"`+id+`"`) && !strings.Contains(outcome, "running")
		})
		return outcome
	}
	if out := start("before", "1"); !strings.Contains(out, `"done"`) {
		t.Errorf("before: %s", out)
	}
	h.waitUntil(30*time.Second, "the output is in the journal", func() bool {
		return strings.Contains(h.journal("-u 'quorumd-hooks@*'"), "CapEff")
	})
	log := h.journal("-u quorumd-hooks@before")
	for _, want := range []string{
		"0\n", "QUORUMD_BY=root", "QUORUMD_HOST=n1", "QUORUMD_REASON=new kernel",
		"QUORUMD_WHEN=before", "QUORUMD_WORK=reboot",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in:\n%s", want, log)
		}
	}
	if out := start("after", "2"); !strings.Contains(out, `"failed"`) || !strings.Contains(out, "cannot drain") {
		t.Errorf("after: %s", out)
	}
	if out := start("before", "3"); !strings.Contains(out, `"done"`) {
		t.Errorf("before, once more: %s", out)
	}
}

func TestARebootAgentIsAnsweredOnTheLoopback(t *testing.T) {
	t.Parallel()
	h := watched(t, "fleetlock: {listen: '127.0.0.1:9380'}\n")
	ask := func(path, header string) string {
		body := `{"client_params":{"id":"c3f1","group":"default"}}`
		return h.run(fmt.Sprintf(
			`bash -c 'exec 3<>/dev/tcp/127.0.0.1/9380; printf "POST %s HTTP/1.1\r\nHost: 127.0.0.1:9380\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%%s" '"'"'%s'"'"' >&3; cat <&3'`,
			path, header, len(body), body))
	}
	if out := ask("/v1/steady-state", `fleet-lock-protocol: true\r\n`); !strings.Contains(out, "200 OK") {
		t.Errorf("steady-state:\n%s", out)
	}
	if out := ask("/v1/pre-reboot", ""); !strings.Contains(out, "400 Bad Request") ||
		!strings.Contains(out, `"kind":"bad_request"`) {
		t.Errorf("without the header:\n%s", out)
	}
	h.expect("quorumctl status", "IDLE")
}

func TestWithoutLogindOneLineReportsItAndTheRestWorks(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("systemctl mask --now systemd-logind.service && dpkg -i /pk/first.deb")
	h.configure(config("manage"))
	h.run("systemctl start quorumd")
	h.expect("quorumctl status", "mode manage", "IDLE")
	h.waitUntil(30*time.Second, "the log reports it", func() bool {
		return strings.Contains(h.journal("-u quorumd"), "cannot acquire the shutdown delay lock")
	})
	<-time.After(5 * time.Second) // long enough for further attempts
	if log := h.journal("-u quorumd"); strings.Count(log, "cannot acquire the shutdown delay lock") != 1 {
		t.Errorf("the log says:\n%s", log)
	}
	h.run("systemctl unmask systemd-logind.service && systemctl start systemd-logind.service")
	h.waitUntil(2*time.Minute, "the machine waits for quorumd", func() bool {
		return strings.Contains(h.journal("-u quorumd"), "acquired the shutdown delay lock")
	})
}
