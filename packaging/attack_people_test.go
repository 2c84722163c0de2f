// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"strings"
	"testing"
	"time"
)

// rooted reports what root left behind that an attacker asked for, and fails the test.
func (h *host) rooted(after string) {
	h.t.Helper()
	if out, err := h.try("ls /root-was-here*"); err == nil {
		h.t.Errorf("after %s root has made %s", after, out)
	}
	if out := h.run("find / -xdev -newer /marker -user root -perm /6000 -not -path '/proc/*'"); out != "" {
		h.t.Errorf("after %s there is with the right to become another: %s", after, out)
	}
}

// evil is a program of an attacker, where the attacker can put it.
const evil = `mkdir -p /tmp/evil && printf '#!/bin/sh\nid -u >/root-was-here\n' >/tmp/evil/run && chmod -R 0755 /tmp/evil; touch /marker`

func TestAMemberOfTheAdminGroupIsNotRoot(t *testing.T) { onEachDebian(t, attackFromAdminGroup) }

func attackFromAdminGroup(t *testing.T, h *host) {
	h.bare()
	h.bootstrap()
	h.run(evil + "; useradd -m -G quorumd-admin anna")
	h.run("mkdir -p /etc/quorumd/hooks/before.d && printf '#!/bin/sh\nenv\n' >/etc/quorumd/hooks/before.d/env && " +
		"chmod 0755 /etc/quorumd/hooks/before.d/env")
	const anna = "setpriv --reuid=anna --regid=anna --init-groups "
	h.expect(anna+"quorumctl pause --reason audit --for 1m && "+anna+"quorumctl resume", "") // what the group is for
	for _, script := range []string{
		"touch /etc/quorumd/x", "touch /etc/quorumd/hooks/before.d/x", "touch /var/lib/quorumd/x",
		"touch /var/lib/quorumd-etcd/x", "mkdir -p /run/quorumd-hooks/x", "touch /run/quorumd/x", "ls /var/lib/etcd/default",
		"cat /var/lib/quorumd-etcd/etcd.env", "systemctl --no-ask-password stop etcd",
		"systemctl --no-ask-password stop quorumd", "systemctl --no-ask-password start quorumd-hooks@before.service",
		`/pk/load order "{\"word\":\"stop\",\"agent\":\"quorumd\"}"`,
		"/usr/bin/quorumd send-errand /run/quorumd-errand.sock quorumd move-data-aside /var/lib/etcd/default \"\"",
		// programs that are none of root's, by every name that leads to them
		"quorumctl rollout start command ../../../../tmp/evil/run --reason x",
		"quorumctl rollout start command /tmp/evil/run --reason x", "quorumctl rollout start command .. --reason x",
		"quorumctl rollout start command run --reason x", "quorumctl cycle --command ../../../../tmp/evil/run --reason x --yes",
		// a recovery while the cluster is well, of a plan that is made up, and of another's
		"echo {} >/tmp/p && quorumctl recover apply /tmp/p --yes",
		"quorumctl recover apply /etc/shadow --yes", "quorumctl recover apply /dev/zero --yes",
		// a restore from a place of the attacker's
		"quorumctl recover plan --from-snapshot /tmp/evil/run --cluster prod --out /etc/quorumd/plan.json /dev/null",
	} {
		if out, err := h.try("cd /tmp && timeout 30 " + anna + "sh -c '" + script + "'"); err == nil {
			t.Errorf("a member of quorumd-admin may %s: %s", script, out)
		}
	}
	h.rooted("what was refused")

	// What the member may say reaches a hook of root's as a value, and never as a program or a variable of its own.
	said := "$(touch /root-was-here1) `touch /root-was-here2`; touch /root-was-here3\nLD_PRELOAD=/tmp/evil/x.so"
	h.run(`printf '%s' '` + said + `' >/tmp/reason`)
	if out, err := h.try(anna + `sh -c 'quorumctl cycle --reason "$(cat /tmp/reason)"'`); err != nil {
		t.Logf("the restart: %s", out) // a line break in it may be refused, too
	}
	h.waitUntil(2*time.Minute, "the host is a voter again", func() bool {
		out, _ := h.try("quorumctl status")
		return strings.Contains(out, "voter, leader") && strings.Contains(out, "AT_REST")
	})
	if out := h.journal("-u 'quorumd-hooks@*'"); strings.Contains(out, "\nLD_PRELOAD=") {
		t.Errorf("the reason is a variable of its own:\n%s", out)
	}
	h.rooted("a reason full of commands")
	h.expect("ps -o user= -p $(systemctl show --value -p MainPID etcd)", "etcd")
}
