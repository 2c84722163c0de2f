// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dropIn installs a shipped drop-in with the commands in the comment of that drop-in.
func (h *host) dropIn(shipped string) {
	h.t.Helper()
	text := h.run("cat /usr/share/quorumd/systemd/" + shipped)
	typed := regexp.MustCompile(`(?m)^#   # (install .*|systemctl daemon-reload)$`).FindAllStringSubmatch(text, -1)
	if len(typed) != 2 {
		h.t.Fatalf("%s does not say how to use it:\n%s", shipped, text)
	}
	for _, line := range typed {
		h.run(line[1])
	}
}

// exposure returns the exposure of a unit according to systemd-analyze, from 0 to 10.
func (h *host) exposure(unit string) float64 {
	h.t.Helper()
	out := h.run("systemd-analyze security --no-pager " + unit + " | tail -1")
	found := regexp.MustCompile(`: ([0-9.]+) `).FindStringSubmatch(out)
	if found == nil {
		h.t.Fatalf("no exposure in %q", out)
	}
	level, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		h.t.Fatal(err)
	}
	return level
}

func TestADistributionsEtcdRunsWithTheShippedHardening(t *testing.T) {
	onEachDebian(t, hardenEtcd)
}

func hardenEtcd(t *testing.T, h *host) {
	h.bare()
	before := h.exposure("etcd.service")
	h.dropIn("etcd-hardening.conf")
	after := h.exposure("etcd.service")
	if after > 2.5 || after >= before {
		t.Errorf("the exposure is %.1f, before %.1f", after, before)
	}
	t.Logf("the exposure of etcd.service: %.1f, before %.1f", after, before)
	h.bootstrap() // a real start by quorumd, with the environment that quorumd writes
	status := h.run("cat /proc/" + h.property("etcd", "MainPID") + "/status")
	for _, want := range []string{"CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			t.Errorf("etcd runs without %q:\n%s", want, status)
		}
	}
	const etcd = "/pk/load etcd http://localhost:2379 "
	h.expect(etcd+"put a b && "+etcd+"get a", "b")
	run := h.property("etcd", "InvocationID")
	h.run("systemctl restart etcd")
	h.waitUntil(30*time.Second, "etcd serves again", func() bool {
		out, _ := h.try(etcd + "get a")
		return out == "b" && h.property("etcd", "InvocationID") != run
	})
	if denied := h.journal("-u etcd | grep -i 'operation not permitted'"); denied != "" {
		t.Errorf("the hardening breaks etcd: %s", denied)
	}
}

func TestHooksRunInTheShippedSandbox(t *testing.T) { onEachDebian(t, sandboxHooks) }

func sandboxHooks(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("manage"))
	h.run("systemctl start quorumd-helper.socket; mkdir -p /etc/quorumd/hooks/before.d")
	write(t, h.root+"/etc/quorumd/hooks/before.d/10-try", `#!/bin/bash
for it in "touch /etc/was-here" "touch /var/lib/was-here" "touch /root/was-here" "mount -t tmpfs none /mnt" \
	"mknod /tmp/d b 8 0" \
	"systemctl stop etcd" "chown daemon /tmp" "cat /proc/sysrq-trigger" "sysctl -w kernel.panic=1" "hostname evil"; do
	$it >/dev/null 2>&1 && echo "MAY $it"
done
touch /tmp/mine && cat /etc/hostname >/dev/null && exec 3<>/dev/tcp/127.0.0.1/2379 && echo "STILL READS AND CONNECTS"
`)
	h.run("chmod 0755 /etc/quorumd/hooks/before.d/10-try")
	hook := func(id string) string {
		h.order(asQuorumd, `{"word":"hooks","agent":"quorumd","hooks":{"when":"before","id":"`+id+
			`","work":"restart","reason":"x","by":"root"}}`, "{}")
		h.waitUntil(30*time.Second, "the hook has run", func() bool {
			out, _ := h.try("cat /run/quorumd-hooks/quorumd/before.json")
			return strings.Contains(out, `"`+id+`"`) && !strings.Contains(out, "running")
		})
		return h.run("cat /run/quorumd-hooks/quorumd/before.json")
	}
	h.dropIn("hooks-sandbox.conf")
	if out := hook("1"); !strings.Contains(out, `"done"`) {
		t.Errorf("the hook fails: %s\n%s", out, h.journal("-u quorumd-hooks@before"))
	}
	h.waitUntil(30*time.Second, "the hook's output is in the journal", func() bool {
		return strings.Contains(h.journal("-u quorumd-hooks@before"), "STILL READS AND CONNECTS")
	})
	if out := h.journal("-u quorumd-hooks@before"); strings.Contains(out, "MAY ") {
		t.Errorf("in the sandbox a hook may do more than it should:\n%s", out)
	}
	if state := h.property("etcd", "ActiveState"); state != "active" {
		t.Errorf("etcd is %s", state)
	}
	h.run("rm -r /etc/systemd/system/quorumd-hooks@.service.d && systemctl daemon-reload")
	hook("2") // without the sandbox, the hook can write to /etc; otherwise the test would prove nothing
	h.waitUntil(30*time.Second, "a hook without the sandbox writes /etc", func() bool {
		return strings.Contains(h.journal("-u quorumd-hooks@before"), "MAY touch /etc/was-here")
	})
}
