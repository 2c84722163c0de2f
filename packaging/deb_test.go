// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/agent/policy"
)

// startLoad starts a load that writes to the host's etcd. stop ends the load and returns its report.
func startLoad(t *testing.T, h *host) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	c := h.command(ctx, "exec /pk/load load http://localhost:2379")
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		h.run("pkill -TERM -x load")
		err := c.Wait()
		cancel()
		if err != nil {
			t.Errorf("the load: %v", err)
		}
		return out.String()
	}
}

func hostWithEtcd(t *testing.T) *host {
	t.Helper()
	return debianWithEtcd(t, bookworm)
}

// onEachDebian runs a test on a host with etcd for each Debian release, because systemd and polkit interact differently
// in each.
func onEachDebian(t *testing.T, do func(t *testing.T, h *host)) {
	t.Helper()
	t.Parallel()
	for _, root := range []string{bookworm, trixie} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			do(t, debianWithEtcd(t, root))
		})
	}
}

func debianWithEtcd(t *testing.T, root string) *host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, next := built(t, "first", "amd64.deb"), built(t, "next", "amd64.deb")
	h := bootDebian(t, root, first, next, etcdPackage(t), self)
	h.run("mv /pk/" + filepath.Base(self) + " /pk/load; mv /pk/" + filepath.Base(first) + " /pk/first.deb; mv /pk/" +
		filepath.Base(next) + " /pk/next.deb")
	h.run("dpkg -i /pk/etcd-server_*.deb")
	h.waitUntil(30*time.Second, "etcd runs", func() bool { return h.property("etcd", "ActiveState") == "active" })
	return h
}

// configure writes the configuration as an operator would.
func (h *host) configure(text string) {
	h.t.Helper()
	write(h.t, h.root+"/etc/quorumd/quorumd.yaml", text)
	h.expect("quorumctl config check", "OK")
}

func TestInstallUpgradeRemovalAndPurgeLeaveARunningEtcdAlone(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	etcd := h.property("etcd", "MainPID")
	same := func(after string) {
		t.Helper()
		if pid := h.property("etcd", "MainPID"); pid != etcd || h.property("etcd", "NRestarts") != "0" {
			t.Fatalf("after %s etcd is process %s, it was %s", after, pid, etcd)
		}
	}
	stop := startLoad(t, h)

	before := h.run("systemctl show etcd -p " +
		"Restart,User,ExecStart,Environment,TimeoutStopUSec,LimitNOFILE,NotifyAccess,UnitFileState | sed " +
		"'s/start_time=.*//'")
	h.run("dpkg -i /pk/first.deb")
	same("the install")
	if after := h.run("systemctl show etcd -p " +
		"Restart,User,ExecStart,Environment,TimeoutStopUSec,LimitNOFILE,NotifyAccess,UnitFileState | sed " +
		"'s/start_time=.*//'"); after != before {
		t.Errorf("the install changed etcd's unit:\n%s\n%s", before, after)
	}
	if state, _ := h.try("systemctl is-enabled quorumd quorumd-runas.socket quorumd-helper.socket; systemctl " +
		"is-active quorumd quorumd-runas.socket quorumd-helper.socket"); state !=
		strings.TrimSpace(strings.Repeat("disabled\n", 3)+strings.Repeat("inactive\n", 3)) {
		t.Errorf("after the install:\n%s", state)
	}

	h.configure(config("observe"))
	h.run("systemctl enable --now quorumd")
	h.expect("quorumctl status", "1 of 1 voters up", "n1    voter, leader", "mode observe", "IDLE")
	if status := h.property("quorumd", "StatusText"); !strings.Contains(status, "voter, health") {
		t.Errorf("the status line is %q", status)
	}
	h.waitUntil(30*time.Second, "the probe measures", func() bool {
		return strings.Contains(h.run("quorumctl health"), "measured 0s ago")
	})
	h.waitUntil(30*time.Second, "the service checks memory and clock in the sandbox of its unit", func() bool {
		health := h.run("quorumctl health")
		return !slices.ContainsFunc([]string{"memory", "kills", "clock"}, func(check string) bool {
			return strings.Contains(health, "not available: "+check)
		})
	})
	same("the first checks")

	// If a conffile has changed both on the host and in the package, an upgrade asks, and fails without a terminal.
	if asked := h.run("dpkg-query -W -f='${Conffiles}' quorumd"); asked != "" {
		t.Errorf("an upgrade may ask about %s", asked)
	}
	h.configure(config("manage"))
	h.run("systemctl restart quorumd")
	h.expect("quorumctl status", "mode manage", "IDLE")
	same("the adoption")

	instance, agent := h.run("cat /run/quorumd/instance"), h.property("quorumd", "MainPID")
	h.run("dpkg -i /pk/next.deb")
	h.expect("quorumctl version", "9.9.9")
	if again := h.property("quorumd", "MainPID"); again == agent || h.property("quorumd", "ActiveState") != "active" {
		t.Errorf("after the upgrade the agent is process %s, it was %s", again, agent)
	}
	if now := h.run("cat /run/quorumd/instance"); now != instance {
		t.Errorf("the upgrade changed the agent's identity: %s, it was %s: it has lost its lock and its host record",
			now, instance)
	}
	h.expect("cat /etc/quorumd/quorumd.yaml", "mode: manage")
	same("the upgrade")

	h.expect("dpkg -r quorumd", "etcd was never changed on this host")
	same("the removal")
	if left, err := h.try("pgrep -u quorumd"); err == nil {
		t.Errorf("after the removal these run: %s", left)
	}
	h.expect("ls /etc/quorumd /var/lib/quorumd", "quorumd.yaml", "cluster.json")
	h.run("dpkg -P quorumd")
	same("the purge")
	if left, _ := h.try("ls -d /etc/quorumd /var/lib/quorumd /var/lib/quorumd-etcd /run/quorumd " +
		"/var/lib/etcd/.quorumd-probe /etc/systemd/system/etcd.service.d 2>/dev/null"); left != "" {
		t.Errorf("the purge left %s", left)
	}
	h.expect("ls /var/lib/etcd/default", "member")
	if report := stop(); !strings.Contains(report, ", 0 failed") {
		t.Errorf("the writes meanwhile: %s", report)
	} else {
		t.Log(report)
	}
	h.run("systemctl restart etcd") // the unit must be unchanged, too
}

// bareHost returns a host whose etcd is installed and enabled, but has no data and does not run.
func bareHost(t *testing.T) *host {
	t.Helper()
	h := hostWithEtcd(t)
	h.bare()
	return h
}

// bare removes etcd's data, and installs and configures quorumd.
func (h *host) bare() {
	h.t.Helper()
	h.run("systemctl stop etcd && rm -rf /var/lib/etcd/default && dpkg -i /pk/first.deb")
	h.configure(config("manage"))
}

// requestBootstrap repeats the request until the agent has observed the host, because only then does the agent accept
// the request.
func (h *host) requestBootstrap() {
	h.t.Helper()
	h.run("systemctl start quorumd")
	h.waitUntil(30*time.Second, "the bootstrap is accepted", func() bool {
		_, err := h.try("quorumctl bootstrap --yes")
		return err == nil
	})
}

// bootstrap makes a cluster with quorumd, through D-Bus and the distribution's unit.
func (h *host) bootstrap() {
	h.t.Helper()
	h.requestBootstrap()
	h.waitUntil(time.Minute, "etcd runs", func() bool { return h.property("etcd", "ActiveState") == "active" })
	h.waitUntil(30*time.Second, "the host is a voter", func() bool {
		return strings.Contains(h.run("quorumctl status"), "voter, leader")
	})
}

func TestEtcdStartsWithTheWrittenEnvironmentWithoutQuorumdAndAfterItsRemoval(t *testing.T) {
	t.Parallel()
	h := bareHost(t)
	h.bootstrap()
	token := func(after string) {
		t.Helper()
		if env := h.run("tr '\\0' '\\n' </proc/$(systemctl show --value -p MainPID etcd)/environ"); !strings.Contains(
			env, "ETCD_INITIAL_CLUSTER_TOKEN=quorumd-") {
			t.Errorf("%s etcd runs without quorumd's environment:\n%s", after, env)
		}
	}
	token("after the bootstrap")
	h.run("systemctl stop quorumd quorumd-runas.socket quorumd-helper.socket && systemctl restart etcd")
	token("without quorumd")
	h.expect("dpkg -r quorumd", "etcd keeps running", "/etc/systemd/system/etcd.service.d/quorumd.env")
	h.run("systemctl restart etcd")
	token("after the removal")
	h.run("dpkg -P quorumd; systemctl restart etcd")
	token("after the purge")
	h.run("dpkg -i /pk/next.deb; systemctl restart etcd")
	token("after a new install")
	if left, err := h.try("ls /etc/systemd/system/etcd.service.d"); err == nil {
		t.Errorf("the new install left %s", left)
	}
}

func TestAReloadLoadsAValidConfigurationAndRejectsAnInvalidOne(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("observe"))
	h.run("rm /usr/bin/kill") // a minimal Debian has no procps
	h.run("systemctl start quorumd")
	etcd, agent := h.property("etcd", "MainPID"), h.property("quorumd", "MainPID")
	reloaded := func(what, says, mode string) {
		t.Helper()
		h.run("systemctl reload quorumd")
		h.waitUntil(30*time.Second, what, func() bool {
			out, err := h.try("journalctl --no-pager -o cat -u quorumd; quorumctl status")
			return err == nil && strings.Contains(out, says) && strings.Contains(out, "mode "+mode) &&
				h.property("quorumd", "ActiveState") == "active"
		})
		if pid := h.property("quorumd", "MainPID"); pid != agent || h.property("quorumd", "NRestarts") != "0" {
			t.Errorf("%s: the agent is process %s, it was %s", what, pid, agent)
		}
		if pid := h.property("etcd", "MainPID"); pid != etcd {
			t.Errorf("%s: etcd is process %s, it was %s", what, pid, etcd)
		}
	}
	reloaded("the same file changes nothing", "configuration reloaded: no changes", "observe")
	write(t, h.root+"/etc/quorumd/quorumd.yaml", config("manage")+"\nmodus: manage\n")
	reloaded("an invalid file is rejected", "unknown key", "observe")
	h.expect("journalctl --no-pager -o cat -u quorumd -p err",
		"new configuration rejected; keeping the current one", "did you mean mode?")
	h.configure(config("manage"))
	reloaded("a valid one is loaded", "configuration changed; restarting keys=[mode]", "manage")
	h.configure(config("observe"))
	reloaded("a second valid one is loaded", "configuration changed; restarting keys=[mode]", "observe")
}

func TestTheJournalExplainsACodeAndItsRemedy(t *testing.T) {
	t.Parallel()
	h := bareHost(t)
	h.run("systemctl start quorumd")
	id := journalcatalog.ID(string(policy.ClusterUnreachable))
	h.waitUntil(30*time.Second, "quorumd logs that it finds no cluster", func() bool {
		return strings.Contains(h.run("journalctl --no-pager -o cat MESSAGE_ID="+id+" || :"),
			"waiting code=CLUSTER_UNREACHABLE")
	})
	h.expect("journalctl --no-pager -x -u quorumd QUORUMD_CODE=CLUSTER_UNREACHABLE", "quorumd[",
		"Subject: CLUSTER_UNREACHABLE: no voter answers", "Documentation: man:quorumd(8)", "quorumctl",
		"If no cluster exists yet", "quorumctl bootstrap, on")
	h.run("dpkg -r quorumd")
	if left := h.run("journalctl --list-catalog | grep -i quorumd || :"); left != "" {
		t.Errorf("the removal left in the catalog: %s", left)
	}
}

func TestWithoutPolkitEverythingButTheRebootWorks(t *testing.T) {
	t.Parallel()
	h := bareHost(t)
	h.run("systemctl mask --now polkit.service")
	h.bootstrap()
	h.waitUntil(30*time.Second, "the log reports that quorumd cannot delay a shutdown", func() bool {
		return strings.Contains(h.journal("-u quorumd"), "cannot acquire the shutdown delay lock")
	})
	h.run(`cd /etc/systemd/system && mkdir -p quorumd.service.d quorumd-runas.socket.d quorumd-helper.socket.d
cp /usr/share/doc/quorumd/examples/no-polkit.conf quorumd.service.d/
for socket in quorumd-runas quorumd-helper; do
	printf '[Socket]\nSocketUser=root\n' >$socket.socket.d/no-polkit.conf
done
systemctl daemon-reload; systemctl restart quorumd-runas.socket quorumd-helper.socket quorumd`)
	h.waitUntil(30*time.Second, "the host is a voter", func() bool {
		return strings.Contains(h.run("quorumctl status"), "voter, leader")
	})
	h.waitUntil(30*time.Second, "the machine waits for quorumd", func() bool {
		return strings.Contains(h.journal("-u quorumd"), "acquired the shutdown delay lock")
	})
	if caps := h.run("grep CapEff /proc/$(systemctl show --value -p MainPID quorumd)/status"); !strings.HasSuffix(caps,
		"0000000000000000") {
		t.Errorf("quorumd has capabilities: %s", caps)
	}
}

func TestAHeldEtcdDoesNotStartByItself(t *testing.T) {
	t.Parallel()
	h := bareHost(t)
	h.run("echo held >/var/lib/quorumd-etcd/etcd.hold; systemctl start etcd")
	if state := h.property("etcd", "ActiveState"); state != "inactive" ||
		h.property("etcd", "ConditionResult") != "no" {
		t.Fatalf("an etcd held back is %s", state)
	}
	h.bootstrap() // quorumd removes the start guard when it starts etcd
	if _, err := os.Stat(h.root + "/var/lib/quorumd-etcd/etcd.hold"); err == nil {
		t.Error("the start guard is still there")
	}
}

func TestAHungAgentIsRestartedAndEtcdKeepsRunning(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb; mkdir -p /etc/systemd/system/quorumd.service.d; printf " +
		"'[Service]\\nWatchdogSec=5s\\n' >/etc/systemd/system/quorumd.service.d/w.conf; systemctl daemon-reload")
	h.configure(config("manage"))
	h.run("systemctl start quorumd")
	etcd, agent := h.property("etcd", "MainPID"), h.property("quorumd", "MainPID")
	h.run("kill -STOP " + agent)
	h.waitUntil(90*time.Second, "systemd replaces the agent", func() bool {
		now := h.property("quorumd", "MainPID")
		return now != agent && now != "0" && h.property("quorumd", "ActiveState") == "active"
	})
	if pid := h.property("etcd", "MainPID"); pid != etcd {
		t.Errorf("etcd is process %s, it was %s", pid, etcd)
	}
}

// TestTheServiceReadsEtcdsSettings checks what the service can do within its sandbox: find a risky flag that is only on
// etcd's command line, run an external check, and run the etcd program to learn its version.
func TestTheServiceReadsEtcdsSettings(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("mkdir -p /etc/systemd/system/etcd.service.d; printf " +
		"'[Service]\\nExecStart=\\nExecStart=/usr/bin/etcd $DAEMON_ARGS --max-wals=0\\n' " +
		">/etc/systemd/system/etcd.service.d/risky.conf; systemctl daemon-reload; systemctl restart etcd")
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("observe"))
	write(t, h.root+"/etc/quorumd/checks.d/own",
		"#!/bin/sh\necho it runs as $(id -un) with cores of $(ulimit -c); exit 1\n")
	h.run("chmod 0755 /etc/quorumd/checks.d/own; systemctl start quorumd")
	h.waitUntil(time.Minute, "quorumd has run the check, and etcd's program", func() bool {
		status, _ := h.try("quorumctl status -o json")
		own, _ := h.try("quorumctl health CHECK_OWN")
		return strings.Contains(status, `"etcdVersion": "3.4.`) &&
			strings.Contains(own, "it runs as quorumd with cores of 0")
	})
	h.waitUntil(time.Minute, "quorumd has judged etcd's settings", func() bool {
		says, _ := h.try("quorumctl health")
		return strings.Contains(says, "ETCD_SETTINGS_RISKY") && strings.Contains(says, "max-wals is 0")
	})
	if says := h.run("quorumctl health"); strings.Contains(says, "cannot read etcd's command line") {
		t.Errorf("a check cannot read etcd's command line:\n%s", says)
	}
}
