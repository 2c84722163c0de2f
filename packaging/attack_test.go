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

// attacker runs a command the way an attacker who has taken over the agent can: as user quorumd, without capabilities
// and without a way to gain any.
const attacker = "setpriv --reuid=quorumd --regid=quorumd --clear-groups --no-new-privs --inh-caps=-all " +
	"--bounding-set=-all "

// order sends an order to the root helper as some user, and fails the test if the answer lacks a text.
func (h *host) order(as, text, want string) {
	h.t.Helper()
	out, err := h.try(as + "/pk/load order '" + text + "'")
	if err != nil || !strings.Contains(out, want) {
		h.t.Errorf("%.200s is answered %s, %v; want %s", text, out, err, want)
	}
}

// refused fails the test if user quorumd can do something.
func (h *host) refused(script string) {
	h.t.Helper()
	if out, err := h.try(attacker + "sh -c '" + script + "'"); err == nil {
		h.t.Errorf("user quorumd may %s: %s", script, out)
	}
}

func (h *host) etcdEnvironment() string {
	return h.run("tr '\\0' '\\n' </proc/$(systemctl show --value -p MainPID etcd)/environ")
}

func TestUserQuorumdCannotChangeWhatSystemdReadsForEtcd(t *testing.T) {
	onEachDebian(t, attackEnvironment)
}

func attackEnvironment(t *testing.T, h *host) {
	h.bare()
	h.bootstrap()
	h.expect("stat -c '%U:%G %a %F' /var/lib/quorumd-etcd /var/lib/quorumd-etcd/etcd.env", "root:root 755 directory",
		"root:quorumd 640 regular file")
	for _, script := range []string{
		"rm -f /var/lib/quorumd-etcd/etcd.env", "mkfifo /var/lib/quorumd-etcd/x",
		"ln -sf /etc/shadow /var/lib/quorumd-etcd/etcd.env",
		"echo LD_PRELOAD=/x >>/var/lib/quorumd-etcd/etcd.env", "mv /var/lib/quorumd-etcd /var/lib/x",
		"touch /var/lib/quorumd-etcd/etcd.hold",
		"touch /run/quorumd-hooks/x", "mkdir /etc/systemd/system/etcd.service.d",
	} {
		h.refused(script)
	}
	// quorumd reads the settings with which etcd was started.
	h.run(attacker + "grep -q ETCD_NAME /var/lib/quorumd-etcd/etcd.env")
	// An etcd.env in quorumd's own directory has no effect.
	for _, lay := range []string{"mkfifo", "ln -s /etc/shadow", "echo LD_PRELOAD=/tmp/evil.so >"} {
		h.run(attacker + "sh -c 'rm -f /var/lib/quorumd/etcd.env; " + lay + " /var/lib/quorumd/etcd.env'")
		h.run("timeout 30 systemctl restart etcd")
		if env := h.etcdEnvironment(); strings.Contains(env, "LD_PRELOAD") || strings.Contains(env, "root:") ||
			!strings.Contains(env, "ETCD_INITIAL_CLUSTER_TOKEN=quorumd-") {
			t.Errorf("after %s etcd runs with\n%s", lay, env)
		}
	}
	h.run(attacker + "rm -f /var/lib/quorumd/etcd.env")
}

func TestTheRootHelperObeysOnlyUserQuorumdAndOnlyItsOrders(t *testing.T) {
	onEachDebian(t, attackHelper)
}

func attackHelper(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("manage"))
	h.run("systemctl start quorumd-helper.socket")
	for _, verb := range []string{"stop", "start", "restart"} {
		before := h.property("etcd", "InvocationID")
		h.order(attacker, `{"word":"`+verb+`","agent":"quorumd"}`, "{}")
		h.waitUntil(30*time.Second, "etcd has been "+verb+"ed", func() bool {
			state := h.property("etcd", "ActiveState")
			return verb == "stop" && state == "inactive" ||
				verb != "stop" && state == "active" && h.property("etcd", "InvocationID") != before
		})
	}
	h.order(attacker, `{"word":"hold","agent":"quorumd"}`, "{}")
	h.expect("stat -c '%U %a' /var/lib/quorumd-etcd/etcd.hold", "root 644")
	h.order(attacker, `{"word":"release","agent":"quorumd"}`, "{}")

	forged := func(cluster, state, token string) string {
		return fmt.Sprintf(`{"word":"environment","agent":"quorumd","initial":{"cluster":"%s","state":"%s","token":"%s","digest":"%s"}}`, cluster, state, token, strings.Repeat("0", 64))
	}
	for text, want := range map[string]string{
		`{"word":"stop","agent":"../../tmp/x"}`:                       "not a valid agent name",
		`{"word":"stop","agent":".."}`:                                "not a valid agent name",
		`{"word":"stop","agent":"other"}`:                             "cannot trust the configuration",
		`{"word":"stop","agent":"quorumd","unit":"ssh.service"}`:      "invalid order",
		`{"word":"mask","agent":"quorumd"}`:                           "unknown order",
		forged("n1=http://localhost:2380", "new", "stolen"):           "invalid token",
		forged("n1=http://localhost:2380", "existing", ""):            "configuration has changed",
		forged("n9=http://localhost:2380", "existing", ""):            "does not contain this host",
		forged(`n1=http://x:1\nLD_PRELOAD=/tmp/x.so`, "existing", ""): "is not a member",
		forged(strings.Repeat("x", 33<<10), "existing", ""):           "more than",
		`{"word":"hooks","agent":"quorumd","hooks":{"when":"command","id":"1","program":"..","work":"","reason":"","by":""}}`: "not a valid command name",
		`{"word":"hooks","agent":"quorumd","hooks":{"when":"..","id":"1","work":"","reason":"","by":""}}`:                     "not a hook type",
		`{"word":"hooks","agent":"..","hooks":{"when":"before","id":"1","work":"","reason":"","by":""}}`:                      "not a valid agent name",
	} {
		h.order(attacker, text, want)
	}
	if left := h.run("ls -A /var/lib/quorumd-etcd"); left != "" {
		t.Errorf("a refused order wrote %s", left)
	}
	// The kernel identifies the client, even if the socket's owner opens the socket to all users.
	h.run(attacker + "chmod 0666 /run/quorumd-helper.sock")
	h.order("setpriv --reuid=65534 --regid=65534 --clear-groups ", `{"word":"stop","agent":"quorumd"}`,
		"may not send orders on this socket")
	h.run("chmod 0664 /etc/quorumd/quorumd.yaml && chgrp quorumd /etc/quorumd/quorumd.yaml")
	h.order(attacker, `{"word":"stop","agent":"quorumd"}`, "chmod go-w")
	h.run("chmod 0644 /etc/quorumd/quorumd.yaml && mv /etc/quorumd/quorumd.yaml /etc/quorumd/x && ln -s x " +
		"/etc/quorumd/quorumd.yaml")
	h.order(attacker, `{"word":"stop","agent":"quorumd"}`, "symbolic link")
	if state := h.property("etcd", "ActiveState"); state != "active" {
		t.Errorf("etcd is %s", state)
	}
}

func TestInModeObserveUserQuorumdCanChangeNothingAsRootOrEtcd(t *testing.T) {
	onEachDebian(t, attackObserver)
}

func attackObserver(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("observe"))
	h.run("systemctl start quorumd-helper.socket quorumd-runas.socket")
	const data = "/var/lib/etcd/default"
	run := h.property("etcd", "InvocationID")
	for _, order := range []string{
		`{"word":"stop","agent":"quorumd"}`, `{"word":"restart","agent":"quorumd"}`, `{"word":"start","agent":"quorumd"}`,
		`{"word":"hold","agent":"quorumd"}`,
		`{"word":"environment","agent":"quorumd","initial":{"cluster":"n1=http://localhost:2380","state":"existing","token":"","digest":"` +
			strings.Repeat("0", 64) + `"}}`,
		`{"word":"hooks","agent":"quorumd","hooks":{"when":"before","id":"1","work":"","reason":"","by":""}}`,
	} {
		h.order(attacker, order, "mode is observe in /etc/quorumd/quorumd.yaml")
	}
	runAs := attacker + "/usr/bin/quorumd runas /run/quorumd-runas.sock quorumd "
	for _, args := range []string{
		"move-data-aside " + data + " \"\"", "copy-survivor " + data + " \"\" /usr/bin/etcd {}",
		"place-survivor " + data + " \"\" {}",
	} {
		if out, err := h.try(runAs + args); err == nil || !strings.Contains(out, "mode is observe") {
			t.Errorf("%s is answered %s, %v", args, out, err)
		}
	}
	if out, err := h.try(runAs + "inspect-data " + data + " \"\""); err != nil {
		t.Errorf("quorumd cannot inspect the data: %s", out)
	}
	if now := h.property("etcd", "InvocationID"); now != run || h.property("etcd", "ActiveState") != "active" {
		t.Errorf("etcd was restarted or stopped: %s, before %s", now, run)
	}
	h.expect("ls -A /var/lib/quorumd-etcd /run/quorumd-hooks; ls "+data, "member")
	if left := h.run("ls -A /var/lib/quorumd-etcd"); left != "" {
		t.Errorf("a refused order wrote %s", left)
	}

	h.run("echo guard >/var/lib/quorumd-etcd/etcd.hold")
	h.order(attacker, `{"word":"release","agent":"quorumd"}`, "{}")
	if left := h.run("ls -A /var/lib/quorumd-etcd"); left != "" {
		t.Errorf("the start guard was not released: %s", left)
	}
	h.configure(config("manage"))
	h.order(attacker, `{"word":"stop","agent":"quorumd"}`, "{}")
	h.waitUntil(30*time.Second, "etcd has stopped", func() bool {
		return h.property("etcd", "ActiveState") == "inactive"
	})
}

func TestUserQuorumdManagesNoUnit(t *testing.T) { onEachDebian(t, attackUnits) }

func attackUnits(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	for _, script := range []string{
		"systemctl --no-ask-password stop etcd.service", "systemctl --no-ask-password start etcd.service",
		"systemctl --no-ask-password restart etcd.service",
		"systemctl --no-ask-password --job-mode=replace-irreversibly start etcd.service",
		"systemctl --no-ask-password kill etcd.service", "systemctl --no-ask-password mask etcd.service",
		"systemctl --no-ask-password daemon-reload",
		"systemctl --no-ask-password start quorumd-runas@x.service",
		"systemctl --no-ask-password start quorumd-helper@x.service",
		"systemctl --no-ask-password start quorumd-hooks@before.service",
		"systemctl --no-ask-password start quorumd-hooks@before:...service",
		"systemctl --no-ask-password set-property --runtime etcd.service MemoryMax=1", "ls /var/lib/etcd/default",
	} {
		h.refused(script)
	}
	h.run("systemctl stop etcd && dpkg -r etcd-server && systemctl daemon-reload")
	for _, unit := range []string{
		"etcd.service", "quorumd-hooks@before.service", "quorumd-hooks@before:x.service",
		"x.service",
	} {
		h.refused("systemd-run --no-ask-password --unit=" + unit + " --property=User=root touch /root-was-here")
	}
	if out, err := h.try("ls /root-was-here"); err == nil {
		t.Errorf("a transient unit ran: %s", out)
	}
	for _, instance := range []string{
		"before:..", "before:../x", "before:-x", "before:.x", "..", ":quorumd",
		"before:x/../quorumd",
	} {
		if out, err := h.try("quorumd hooks '" + instance + "'"); err == nil {
			t.Errorf("root runs hooks %q: %s", instance, out)
		}
	}
}

func TestRemovalAndPurgeFollowNoLinkOfUserQuorumd(t *testing.T) {
	onEachDebian(t, attackRemoval)
}

func attackRemoval(t *testing.T, h *host) {
	h.bare()
	h.bootstrap()
	h.run(attacker +
		`sh -c 'cd /var/lib/quorumd && ln -s /etc/shadow etcd.env && ln -s /etc/shadow etcd.hold && ln -s /etc dir && mkdir d && ln -s /etc/hostname d/x.env && mkfifo p'`)
	h.run(attacker + `sh -c 'cd /run/quorumd && ln -s /etc dir'`)
	before := h.run("find /etc -xdev -not -path '/etc/systemd/*' -not -path '/etc/rc*' -not -path '/etc/quorumd*' " +
		"-printf '%p %U:%G %m\n' | sort")
	h.expect("dpkg -r quorumd", "etcd keeps running")
	if out, err := h.try("grep -rl '^root:' /etc/systemd"); err == nil {
		t.Errorf("there is a copy of /etc/shadow in %s", out)
	}
	h.expect("stat -c '%U %a' /etc/systemd/system/etcd.service.d/quorumd.env", "root 600")
	h.run("dpkg -P quorumd")
	if after := h.run("find /etc -xdev -not -path '/etc/systemd/*' -not -path '/etc/rc*' -not -path '/etc/quorumd*' " +
		"-printf '%p %U:%G %m\n' | sort"); after != before {
		t.Errorf("the purge changed /etc:\n%s\nbefore:\n%s", after, before)
	}
	h.run("dpkg -i /pk/first.deb && systemctl restart etcd")
	if env := h.etcdEnvironment(); !strings.Contains(env, "ETCD_INITIAL_CLUSTER_TOKEN=quorumd-") {
		t.Errorf("after a new install etcd runs with\n%s", env)
	}
}

func TestInstallAndUpgradeReadNothingThatUserQuorumdCanWrite(t *testing.T) {
	onEachDebian(t, attackInstall)
}

func attackInstall(t *testing.T, h *host) {
	h.bare()
	h.bootstrap()
	token := h.run("grep TOKEN /var/lib/quorumd-etcd/etcd.env")
	before := h.run("sha256sum /var/lib/quorumd-etcd/*; find /var/lib/quorumd-etcd -printf '%p %U:%G %m\n' | sort")
	lay := attacker + "sh -c 'cd /var/lib/quorumd && rm -f etcd.env etcd.hold && echo held >etcd.hold && " +
		"echo ETCD_INITIAL_CLUSTER_STATE=new >etcd.env'"
	for _, install := range []string{"dpkg -i /pk/next.deb", "dpkg -r quorumd && dpkg -i /pk/next.deb"} {
		h.run(lay)
		h.run(install)
		if after := h.run("sha256sum /var/lib/quorumd-etcd/*; find /var/lib/quorumd-etcd -printf '%p %U:%G %m\n' | " +
			"sort"); after != before {
			t.Errorf("after %s:\n%s\nbefore:\n%s", install, after, before)
		}
		h.run("systemctl restart etcd")
		if env := h.etcdEnvironment(); !strings.Contains(env, strings.ReplaceAll(token, `"`, "")) {
			t.Errorf("after %s etcd runs with\n%s\nwant %s", install, env, token)
		}
	}
}

func TestARebootSucceedsWhileEtcdsStartHangs(t *testing.T) { onEachDebian(t, rebootWhileStarting) }

func rebootWhileStarting(t *testing.T, h *host) {
	h.run(`dpkg -i /pk/first.deb; systemctl stop etcd; printf '[Service]\nExecStart=\nExecStart=sleep infinity\n' >/etc/systemd/system/etcd.service.d.conf
mkdir -p /etc/systemd/system/etcd.service.d; mv /etc/systemd/system/etcd.service.d.conf /etc/systemd/system/etcd.service.d/hang.conf; systemctl daemon-reload; systemctl disable etcd`)
	h.configure(config("manage"))
	h.run("systemctl start quorumd-helper.socket")
	h.order(attacker, `{"word":"start","agent":"quorumd"}`, "{}")
	h.waitUntil(30*time.Second, "etcd's start hangs", func() bool {
		return h.property("etcd", "ActiveState") == "activating"
	})
	boot := h.run("cat /proc/sys/kernel/random/boot_id")
	h.expect("systemctl list-jobs --no-pager", "etcd.service")
	h.run("systemctl reboot")
	h.waitForReboot(boot)
}

func TestDirectoriesOfAnInstanceAreNotCreatedThroughALink(t *testing.T) {
	onEachDebian(t, attackInstance)
}

func attackInstance(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb; mkdir -p /victim/deep && chmod 0755 /victim && install -d -o quorumd -g quorumd " +
		"/run/quorumd && quorumctl config default >/etc/quorumd/x.yaml")
	h.run(attacker + "ln -s /victim /var/lib/quorumd/x && " + attacker + "ln -s /victim /run/quorumd/x")
	_, _ = h.try("systemctl start quorumd@x")
	h.expect("stat -c '%U:%G %a' /victim /victim/deep", "root:root 755\nroot:root 755")
}
