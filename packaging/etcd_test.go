// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLintianAndRpmlintAcceptTheEtcdPackage(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "lintian", "--allow-root", "--suppress-tags",
		"spelling-error-in-binary", "--fail-on", "error,warning,info", "--display-info",
		built(t, "own", "amd64.deb")).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	rpmlint(t, built(t, "own", "x86_64.rpm"))
	out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--no-pager", "--offline=true",
		"--threshold=20", "etcd/etcd.service").CombinedOutput()
	if err != nil {
		t.Errorf("etcd.service has an exposure above 2.0: %v\n%s", err, out)
	}
}

func TestThePackagedEtcdRunsOnlyOnceItIsStarted(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"amd64.deb", "x86_64.rpm"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pack := built(t, "own", kind)
			h := bootHost(t, pack)
			install, remove := "dpkg -i /pk/", "dpkg -P quorumd-etcd"
			if strings.HasSuffix(kind, "rpm") { // its dependencies are not in rpm's database
				install, remove = "rpm -U --force --nodeps /pk/", "rpm -e quorumd-etcd"
			}
			h.run(install + filepath.Base(pack))
			state, _ := h.try("systemctl is-enabled etcd; systemctl is-active etcd")
			if state != "disabled\ninactive" {
				t.Fatalf("after the install:\n%s", state)
			}
			h.expect("stat -c '%U %a' /var/lib/etcd; etcd --version", "etcd 755", "etcd Version: 3.6.")
			h.run("systemctl start etcd")
			h.expect("etcdctl put a b && etcdctl get a", "OK", "b")
			pid := h.property("etcd", "MainPID")
			h.expect("stat -c '%U %a' /proc/"+pid+" /var/lib/etcd/default; grep CapEff /proc/"+pid+"/status",
				"etcd 700", "0000000000000000")
			if said := h.run("systemd-analyze verify --man=no etcd.service 2>&1 | grep -i etcd || :"); said != "" {
				t.Errorf("the unit: %s", said)
			}
			h.run(install + filepath.Base(pack)) // like an upgrade
			if now := h.property("etcd", "MainPID"); now != pid {
				t.Errorf("the upgrade has restarted etcd: process %s, it was %s", now, pid)
			}
			h.run(remove)
			if left, err := h.try("pgrep -x etcd"); err == nil {
				t.Errorf("after the removal this runs: %s", left)
			}
			h.expect("ls /var/lib/etcd/default", "member")
		})
	}
}

// TestAHostWithTheEtcdPackageIsSetUpWithTLSInFiveCommands follows the first-cluster page on one host of each Debian
// release, and on one with rpm. The latter is a Debian host on which rpm writes the files and runs the scriptlets,
// without the dependencies of the packages.
func TestAHostWithTheEtcdPackageIsSetUpWithTLSInFiveCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ root, kind, install string }{
		"Debian 12": {bookworm, "amd64.deb", "dpkg -i"},
		"Debian 13": {trixie, "amd64.deb", "dpkg -i"},
		"rpm":       {bookworm, "x86_64.rpm", "rpm -i --nodeps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setUpWithTLS(t, c.root, c.kind, c.install)
		})
	}
}

func setUpWithTLS(t *testing.T, root, kind, install string) {
	t.Helper()
	etcd, quorumd, own := built(t, "own", kind), built(t, "first", kind), built(t, "first", "amd64.deb")
	h := bootDebian(t, root, etcd, quorumd, own)
	h.run("mkdir -p /operator && dpkg -x /pk/" + filepath.Base(own) + " /operator/x") // the operator's machine
	h.run("cd /operator && x/usr/bin/quorumctl pki init && x/usr/bin/quorumctl pki host n1 127.0.0.1")

	h.run(install + " /pk/" + filepath.Base(etcd) + " /pk/" + filepath.Base(quorumd))
	h.expect("quorumctl init --name n1 --hosts n1=127.0.0.1 --tls /operator/quorumd-pki/n1.tar --mode manage",
		"127.0.0.1 on lo", "/usr/bin/etcd, version 3.6.", "etcd.service, disabled", "quorumd.yaml: OK",
		"→ systemctl enable etcd", "→ systemctl enable --now quorumd", "quorumctl bootstrap --yes")
	h.expect("ls -l /etc/quorumd/tls", "-rw-r----- 1 root etcd", "-rw-r----- 1 root quorumd")
	as := func(user string) string { // like the unit of that user, without supplementary groups
		return "setpriv --reuid " + user + " --regid $(id -g " + user + ") --clear-groups "
	}
	for user, its := range map[string]string{"etcd": "server.key peer.key", "quorumd": "client.key", "daemon": ""} {
		for _, key := range []string{"server.key", "peer.key", "client.key"} {
			_, err := h.try(as(user) + "cat /etc/quorumd/tls/" + key)
			if mayRead := strings.Contains(its, key); (err == nil) != mayRead {
				t.Errorf("user %s can read %s: %v, want %v", user, key, err == nil, mayRead)
			}
		}
	}
	// The limits are loose, so that the rest of the test does not depend on the speed of the disk.
	h.run("printf 'disk: {qualifySamples: 20, window: 20, fsyncWarm: 500ms, fsyncClear: 400ms, fsyncSlow: 2s, " +
		"stall: 10s}\\n' >>/etc/quorumd/quorumd.yaml")
	h.expect("quorumctl config check", "OK", "checked as quorumd")
	h.run("systemctl enable etcd")
	h.run("systemctl enable --now quorumd")
	h.waitUntil(30*time.Second, "the bootstrap is accepted", func() bool {
		_, err := h.try("quorumctl bootstrap --yes")
		return err == nil
	})
	h.run("quorumctl wait --for voter --timeout 2m")
	tls := "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/quorumd/tls/ca.crt "
	h.expect(tls+"--cert=/etc/quorumd/tls/client.crt --key=/etc/quorumd/tls/client.key put a b", "OK")
	if out, err := h.try(tls + "--command-timeout=2s get a"); err == nil {
		t.Errorf("a client without a certificate was accepted: %s", out)
	}

	pids := h.property("etcd", "MainPID") + " " + h.property("quorumd", "MainPID")
	h.run("cd /operator && x/usr/bin/quorumctl pki renew --all")
	h.expect("quorumctl pki install /operator/quorumd-pki/n1-*.tar", "newer certificates of n1",
		"load them at the next connection")
	h.expect("quorumctl pki status", "etcd server of n1", "179 d")
	h.expect(tls+"--cert=/etc/quorumd/tls/client.crt --key=/etc/quorumd/tls/client.key get a", "b")
	h.expect("quorumctl status", "voter, leader")
	if now := h.property("etcd", "MainPID") + " " + h.property("quorumd", "MainPID"); now != pids {
		t.Errorf("the renewal has restarted something: processes %s, they were %s", now, pids)
	}

	h.run("chmod 0600 /etc/quorumd/tls/server.key")
	out, err := h.try("quorumctl config check")
	if err == nil || !strings.Contains(out, "etcd.tls.key: /etc/quorumd/tls/server.key cannot be read") {
		t.Errorf("a key that etcd cannot read: %v\n%s", err, out)
	}
	h.run("chmod 0640 /etc/quorumd/tls/server.key && chown root:quorumd /etc/quorumd/tls/server.key")
	out, err = h.try("quorumctl config check")
	if err == nil || !strings.Contains(out, "etcd.tls.key: /etc/quorumd/tls/server.key cannot be read") {
		t.Errorf("a key for the wrong group: %v\n%s", err, out)
	}
}

func TestTheEtcdPackageReplacesTheDistributionsAndKeepsItsData(t *testing.T) {
	t.Parallel()
	own := built(t, "own", "amd64.deb")
	h := bootHost(t, etcdPackage(t), own, built(t, "first", "amd64.deb"))
	h.run("dpkg -i /pk/etcd-server_*.deb")
	h.waitUntil(30*time.Second, "etcd has data", func() bool {
		_, err := h.try("ls /var/lib/etcd/default/member")
		return err == nil
	})
	quorumd := built(t, "first", "amd64.deb")
	h.run("dpkg -i /pk/" + filepath.Base(quorumd))
	h.expect("quorumctl init --name n1 --hosts n1=127.0.0.1 --dry-run",
		"is too old for safe membership changes", "make etcd-package")
	h.configure(strings.ReplaceAll(config("manage"), "  allowUnsafeVersion: true\n", ""))
	h.run("systemctl start quorumd")
	h.waitUntil(30*time.Second, "quorumd names the package", func() bool {
		said, _ := h.try("quorumctl explain")
		return strings.Contains(said, "VERSION_UNSAFE") && strings.Contains(said, "package quorumd-etcd")
	})
	h.run("systemctl stop quorumd")
	h.expect("dpkg -i /pk/"+filepath.Base(own), "will remove etcd-server in favour of quorumd-etcd")
	if state := h.property("etcd", "ActiveState"); state != "inactive" {
		t.Errorf("etcd is %s, although it was never started", state)
	}
	h.expect("etcd --version; stat -c %U /var/lib/etcd/default/member", "etcd Version: 3.6.", "etcd")
}
