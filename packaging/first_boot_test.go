// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"os"
	"strings"
	"testing"
	"time"
)

const (
	member    = "/var/lib/etcd/default/member"
	startHold = "/var/lib/quorumd-etcd/etcd.hold"
)

// reboot boots the host again and waits until it is up.
func (h *host) reboot() {
	h.t.Helper()
	boot := h.run("cat /proc/sys/kernel/random/boot_id")
	h.run("systemctl reboot")
	h.waitForReboot(boot)
}

func (h *host) exists(path string) bool {
	_, err := os.Lstat(h.root + path)
	return err == nil
}

// guard runs the start guard as the drop-in of etcd's unit does. It returns the output, and reports whether the guard
// keeps etcd from starting.
func (h *host) guard() (said string, held bool) {
	h.t.Helper()
	said = h.run("quorumd guard-etcd etcd.service 2>&1; echo status $?")
	return said, strings.HasSuffix(said, "status 75")
}

func TestAnEmptyEtcdDoesNotStartAtTheFirstBootAndOneWithDataAlwaysDoes(t *testing.T) {
	t.Parallel()
	h := bareHost(t) // like a host that was just installed from an image
	h.run("rm -rf /var/lib/quorumd-etcd/* /var/lib/quorumd/*; systemctl enable quorumd etcd")
	h.reboot()
	h.expect("journalctl --no-pager -b -u etcd", "etcd.service does not start yet: quorumd.service has not decided",
		"quorumctl status", "systemctl disable --now quorumd.service")
	if state := h.property("etcd", "ActiveState"); state != "inactive" || h.exists(member) {
		t.Fatalf("an empty etcd is %s; it has made a cluster: %t", state, h.exists(member))
	}
	h.bootstrap()
	h.run("systemctl mask --now quorumd; etcdctl put a b 2>/dev/null || :")
	h.reboot()
	h.waitUntil(30*time.Second, "etcd starts without quorumd", func() bool {
		return h.property("etcd", "ActiveState") == "active"
	})
}

// TestAnEtcdWithDataStartsAtEveryBoot checks the promise that etcd never depends on quorumd. In every mode of quorumd
// and in every state of its package, a host with data has no start guard, and the next boot starts etcd.
func TestAnEtcdWithDataStartsAtEveryBoot(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	for _, step := range []struct{ what, do, mode string }{
		{"the installation", "dpkg -i /pk/first.deb; systemctl enable quorumd", "observe"},
		{"mode manage", ":", "manage"},
		{"an upgrade", "dpkg -i --force-confold /pk/next.deb", ""},
		{"a rollback", "dpkg -i --force-confold /pk/first.deb", ""},
		{"a configuration that is refused", "echo 'modus: x' >>/etc/quorumd/quorumd.yaml", ""},
		{"a program that crashes", "cp /usr/bin/false /usr/bin/quorumd", "crashes"},
		{"a masked agent", "dpkg -i --force-confold /pk/first.deb; systemctl mask quorumd", ""},
		{"a removal", "systemctl unmask quorumd; dpkg -r quorumd", ""},
		{"a purge", "dpkg -P quorumd", ""},
	} {
		h.run(step.do)
		if step.mode == "observe" || step.mode == "manage" {
			h.configure(config(step.mode))
		}
		h.reboot()
		h.waitUntil(30*time.Second, "etcd runs after "+step.what, func() bool {
			return h.property("etcd", "ActiveState") == "active"
		})
		if h.exists(startHold) {
			t.Errorf("after %s there is a start guard although etcd has data", step.what)
		}
	}
}

// TestAnEmptyEtcdStartsIfQuorumdWillNotDecide runs the guard on a host without data.
func TestAnEmptyEtcdStartsIfQuorumdWillNotDecide(t *testing.T) {
	t.Parallel()
	h := bareHost(t)
	asked := func(what string, want bool) {
		t.Helper()
		if said, held := h.guard(); held != want {
			t.Errorf("%s: held back %t, want %t: %s", what, held, want, said)
		}
	}
	asked("the agent is not enabled", false)
	h.run("systemctl enable quorumd")
	asked("the agent starts with the machine", true)
	h.run("echo '/elsewhere /var/lib/etcd none bind,noauto 0 0' >/etc/fstab; systemctl daemon-reload")
	asked("a file system on the path is not mounted", false)
	h.run("rm /etc/fstab; systemctl daemon-reload")
	h.run("mkdir -p " + member)
	asked("there is a member", false)
	h.run("rm -r /var/lib/etcd/default; ln -s /elsewhere/default /var/lib/etcd/default")
	asked("a symlink is dangling", false)
	h.run("rm /var/lib/etcd/default; echo ETCD_NAME=n1 >/var/lib/quorumd-etcd/etcd.env")
	asked("quorumd has written the environment", false)
	h.run("rm /var/lib/quorumd-etcd/etcd.env")
	asked("the environment is removed again", true)
	h.run("systemctl mask quorumd")
	asked("the agent is masked", false)
	h.run("systemctl unmask quorumd; systemctl enable quorumd")
	h.configure(config("observe"))
	asked("quorumd only observes", false)
	h.run("systemctl start etcd")
	h.waitUntil(30*time.Second, "etcd runs", func() bool { return h.property("etcd", "ActiveState") == "active" })
}
