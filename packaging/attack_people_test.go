// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"strings"
	"testing"
	"time"
)

// noRootFiles fails the test if root has created a file or a setuid program for an attacker.
func (h *host) noRootFiles(after string) {
	h.t.Helper()
	if out, err := h.try("ls /root-was-here*"); err == nil {
		h.t.Errorf("after %s root has created %s", after, out)
	}
	if out := h.run("find / -xdev -newer /marker -user root -perm /6000 -not -path '/proc/*'"); out != "" {
		h.t.Errorf("after %s root has new setuid or setgid files: %s", after, out)
	}
}

// evil is a shell command that creates an attacker's program below /tmp, and a file that marks the time.
const evil = `mkdir -p /tmp/evil && printf '#!/bin/sh\nid -u >/root-was-here\n' >/tmp/evil/run && chmod -R 0755 /tmp/evil; touch /marker`

func TestAMemberOfTheAdminGroupIsNotRoot(t *testing.T) { onEachDebian(t, attackFromAdminGroup) }

func attackFromAdminGroup(t *testing.T, h *host) {
	h.bare()
	h.bootstrap()
	h.run(evil + "; useradd -m -G quorumd-admin anna")
	h.run("mkdir -p /etc/quorumd/hooks/before.d && printf '#!/bin/sh\nenv\n' >/etc/quorumd/hooks/before.d/env && " +
		"chmod 0755 /etc/quorumd/hooks/before.d/env")
	const anna = "setpriv --reuid=anna --regid=anna --init-groups "
	h.expect(anna+"quorumctl pause --reason audit --for 1m && "+anna+"quorumctl resume", "") // the purpose of the group
	for _, script := range []string{
		"touch /etc/quorumd/x", "touch /etc/quorumd/hooks/before.d/x", "touch /var/lib/quorumd/x",
		"touch /var/lib/quorumd-etcd/x", "mkdir -p /run/quorumd-hooks/x",
		"touch /run/quorumd/x", "ls /var/lib/etcd/default",
		"cat /var/lib/quorumd-etcd/etcd.env", "systemctl --no-ask-password stop etcd",
		"systemctl --no-ask-password stop quorumd", "systemctl --no-ask-password start quorumd-hooks@before.service",
		`/pk/load order "{\"word\":\"stop\",\"agent\":\"quorumd\"}"`,
		"/usr/bin/quorumd runas /run/quorumd-runas.sock quorumd move-data-aside /var/lib/etcd/default \"\"",
		// programs outside of the directory of commands, by every path that might lead to them
		"quorumctl rollout start command ../../../../tmp/evil/run --yes --reason x",
		"quorumctl rollout start command /tmp/evil/run --yes --reason x",
		"quorumctl rollout start command .. --yes --reason x",
		"quorumctl rollout start command run --yes --reason x",
		"quorumctl cycle --command ../../../../tmp/evil/run --reason x",
		// a recovery while the cluster is healthy, from an invented plan and from files of other users
		"echo {} >/tmp/p && quorumctl recover apply /tmp/p",
		"quorumctl recover apply /etc/shadow", "quorumctl recover apply /dev/zero",
		// a restore from the attacker's file
		"quorumctl recover plan --from-snapshot /tmp/evil/run --cluster prod --out /etc/quorumd/plan.json /dev/null",
	} {
		if out, err := h.try("cd /tmp && timeout 30 " + anna + "sh -c '" + script + "'"); err == nil {
			t.Errorf("a member of quorumd-admin may %s: %s", script, out)
		}
	}
	h.noRootFiles("the refused commands")

	// The user's text reaches root's hook as a value, and never as a program or as a separate variable.
	said := "$(touch /root-was-here1) `touch /root-was-here2`; touch /root-was-here3\nLD_PRELOAD=/tmp/evil/x.so"
	h.run(`printf '%s' '` + said + `' >/tmp/reason`)
	if out, err := h.try(anna + `sh -c 'quorumctl cycle --reason "$(cat /tmp/reason)"'`); err != nil {
		t.Logf("the restart: %s", out) // the line break in the reason may also be refused
	}
	h.waitUntil(2*time.Minute, "the host is a voter again", func() bool {
		out, _ := h.try("quorumctl status")
		return strings.Contains(out, "voter, leader") && strings.Contains(out, "IDLE")
	})
	if out := h.journal("-u 'quorumd-hooks@*'"); strings.Contains(out, "\nLD_PRELOAD=") {
		t.Errorf("the reason became a separate variable:\n%s", out)
	}
	h.noRootFiles("a reason full of commands")
	h.expect("ps -o user= -p $(systemctl show --value -p MainPID etcd)", "etcd")
}

func TestTheProxyAndFleetLockRefuseOtherMachinesAndMaliciousInput(t *testing.T) {
	onEachDebian(t, attackListeners)
}

func attackListeners(t *testing.T, h *host) {
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("manage") + "proxy: {listen: '127.0.0.1:23790'}\nfleetlock: {listen: '127.0.0.1:9380'}\n")
	h.run("systemctl start quorumd quorumd-proxy")
	served := func(after string) {
		t.Helper()
		h.waitUntil(30*time.Second, "the proxy serves after "+after, func() bool {
			_, err := h.try("/pk/load etcd http://127.0.0.1:23790 get a")
			return err == nil
		})
	}
	served("its start")
	// The ports 23790, 9380 and 9379 may be open only on the loopback interface. /proc/net/tcp shows ports in
	// hexadecimal.
	if open := h.run("cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == \"0A\" {print $2}' | grep -E " +
		"':(5CEE|24A4|24A3)$' | grep -v '^0100007F:' || :"); open != "" {
		t.Errorf("other machines may connect to %s", open)
	}
	pid := h.property("quorumd-proxy", "MainPID")
	if out := h.run("cat /proc/" + pid + "/status"); !strings.Contains(out, "CapEff:\t0000000000000000") ||
		strings.Contains(out, "Uid:\t0\t") || strings.Contains(out, "Uid:\t"+h.run("id -u quorumd")+"\t") {
		t.Errorf("the proxy has privileges of other users:\n%s", out)
	}
	for _, lay := range []string{
		"mkfifo voters.json", "ln -s /etc/shadow voters.json", "mkdir voters.json", "ln -s voters.json voters.json",
		"head -c 300000000 /dev/zero >voters.json", "echo [] >voters.json",
	} {
		h.run("systemctl kill -s STOP quorumd") // otherwise quorumd immediately writes the list again
		h.run(attacker + "sh -c 'cd /run/quorumd && rm -rf voters.json && " + lay + "'")
		served(lay)
		h.run(attacker + "rm -rf /run/quorumd/voters.json; systemctl kill -s CONT quorumd")
	}
	if now := h.property("quorumd-proxy", "MainPID"); now != pid {
		t.Errorf("the proxy was restarted: process %s, before %s", now, pid)
	}

	etcd := h.property("etcd", "InvocationID")
	post := func(host, header, body string) string {
		write(t, h.root+"/tmp/body", body)
		out, _ := h.try(`setpriv --reuid=65534 --regid=65534 --clear-groups timeout 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/9380; ` +
			`printf "POST /v1/pre-reboot HTTP/1.1\r\nHost: ` + host + `\r\n` + header + `Connection: close\r\nContent-Length: %d\r\n\r\n" $(stat -c %s /tmp/body) >&3; ` +
			`cat /tmp/body >&3 2>/dev/null; head -1 <&3'`)
		return out
	}
	good := `{"client_params":{"id":"c3f1","group":"default"}}`
	const protocol = `fleet-lock-protocol: true\r\n`
	for what, answer := range map[string]string{
		"a name that was rebound":       post("evil.example:9380", protocol, good),
		"no protocol header":            post("127.0.0.1:9380", "", good),
		"a page of another site":        post("127.0.0.1:9380", protocol+`Origin: http://evil.example\r\n`, good),
		"no JSON":                       post("127.0.0.1:9380", protocol, "x"),
		"an endless body":               post("127.0.0.1:9380", protocol, strings.Repeat("x", 1<<20)),
		"an ID with control characters": post("127.0.0.1:9380", protocol, `{"client_params":{"id":"\u001b[2J","group":"default"}}`),
	} {
		if !strings.Contains(answer, " 4") {
			t.Errorf("%s is answered %q", what, answer)
		}
	}
	if now := h.property("etcd", "InvocationID"); now != etcd || h.property("etcd", "ActiveState") != "active" {
		t.Errorf("etcd was stopped")
	}
}
