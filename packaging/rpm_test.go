// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheRPMsScriptletsMatchThoseOfTheDeb(t *testing.T) {
	t.Parallel()
	first, next := built(t, "first", "x86_64.rpm"), built(t, "next", "x86_64.rpm")
	h := bootHost(t, first, next, etcdPackage(t))
	h.run("dpkg -i /pk/etcd-server_*.deb")
	h.waitUntil(30*time.Second, "etcd runs", func() bool { return h.property("etcd", "ActiveState") == "active" })
	etcd := h.property("etcd", "MainPID")
	same := func(after string) {
		t.Helper()
		if pid := h.property("etcd", "MainPID"); pid != etcd {
			t.Fatalf("after %s etcd is process %s, it was %s", after, pid, etcd)
		}
	}

	// --nodeps is necessary because the dependencies are installed as Debian packages, which are not in rpm's database.
	h.run("rpm -i --nodeps /pk/" + filepath.Base(first))
	same("the install")
	h.expect("rpm -V --nodeps quorumd; id quorumd; stat -c %U /var/lib/quorumd", "uid=", "quorumd")
	if state, _ := h.try("systemctl is-enabled quorumd; systemctl is-active quorumd"); state != "disabled\ninactive" {
		t.Errorf("after the install:\n%s", state)
	}
	if said := h.run("systemd-analyze verify --man=no quorumd.service quorumd@x.service quorumd-runas.socket " +
		"etcd.service 2>&1 | grep -i quorumd || :"); said != "" {
		t.Errorf("the units: %s", said)
	}
	h.expect("journalctl --list-catalog", "HOST_CONFLICT: another host uses the same ID")
	h.configure(config("manage"))
	h.run("systemctl enable --now quorumd")
	h.expect("quorumctl status", "voter, leader")

	h.run("rpm -U --nodeps /pk/" + filepath.Base(next))
	same("the upgrade")
	h.expect("quorumctl version", "9.9.9")
	h.expect("cat /etc/quorumd/quorumd.yaml", "mode: manage")
	h.expect("ls /etc/quorumd", "quorumd.yaml")

	h.expect("rpm -e quorumd", "etcd was never changed on this host")
	same("the removal")
	if left, err := h.try("pgrep -u quorumd"); err == nil {
		t.Errorf("after the removal these run: %s", left)
	}
	h.expect("ls /etc/quorumd", "quorumd.yaml")
	if left := h.run("journalctl --list-catalog | grep -i quorumd || :"); left != "" {
		t.Errorf("the removal left in the catalog: %s", left)
	}
	if list, _ := h.try("systemctl list-unit-files 'quorumd*'"); !strings.Contains(list, "0 unit files") {
		t.Errorf("the removal left %s", list)
	}
}

func TestAHostWithSeveralClustersRunsAnAgentForEachOfThem(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("observe"))
	write(t, h.root+"/etc/quorumd/blue.yaml", config("observe")+`
paths: {state: /var/lib/quorumd/blue, runtime: /run/quorumd/blue}
control: {socket: /run/quorumd/blue/control.sock}
metrics: {listen: "127.0.0.1:9380"}
host: {name: n1-blue, id: n1-blue}
`)
	h.expect("quorumctl config check /etc/quorumd/blue.yaml", "OK")
	h.run("systemctl start quorumd quorumd@blue")
	h.expect("quorumctl --socket /run/quorumd/blue/control.sock status", "this host: n1-blue")
	h.expect("quorumctl status", "this host: n1 ")
	h.expect("systemctl list-units --no-legend --state=running 'quorumd-runas@*'", "quorumd-runas@")
	h.run("systemctl stop quorumd@blue")
	h.expect("quorumctl status", "this host: n1 ")
}
