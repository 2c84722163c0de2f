// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestDocumentedCommandsOtherThanQuorumctlWork(t *testing.T) {
	t.Parallel()
	h := bootHost(t, built(t, "own", "amd64.deb"), built(t, "first", "amd64.deb"))
	page := text(t, "../contrib/docs/multiple-clusters.md")
	events := regexp.MustCompile("(?ms)^```yaml\n# /etc/quorumd/events.yaml\n(.*?)^```$").FindStringSubmatch(page)
	if events == nil {
		t.Fatal("multiple-clusters.md shows no /etc/quorumd/events.yaml")
	}
	before := map[string]func(){
		"systemctl enable --now quorumd": func() {
			h.configure(config("observe") + "proxy: {listen: 127.0.0.1:23790}\n")
			h.run("systemctl start etcd")
		},
		"install -D -m 0644 /usr/lib/systemd/system/etcd.service.d/10-quorumd.conf " +
			"/etc/systemd/system/etcd@events.service.d/10-quorumd.conf": func() { // the operator's own unit
			write(t, h.root+"/etc/systemd/system/etcd@.service",
				"[Service]\nUser=etcd\nExecStart=/usr/bin/etcd --data-dir=/var/lib/etcd/%i\n")
		},
		"systemctl enable --now quorumd@events": func() {
			// The page's addresses are replaced with addresses of this host.
			write(t, h.root+"/etc/quorumd/events.yaml", strings.ReplaceAll(events[1], "10.0.0.", "127.0.0."))
			h.expect("quorumctl config check /etc/quorumd/events.yaml", "OK")
		},
	}
	after := map[string]func(){
		"systemctl enable --now quorumd": func() {
			h.waitUntil(30*time.Second, "quorumd has observed the voter", func() bool {
				out, _ := h.try("quorumctl status")
				return strings.Contains(out, "voter, leader")
			})
		},
		"etcdctl user grant-role quorumd root": func() {
			h.expect("etcdctl role get quorumd", "[/quorumd/prod/, /quorumd/prod0)")
			h.expect("etcdctl user get quorumd", "Roles: quorumd root")
		},
		"systemctl enable --now quorumd-proxy": func() { carryMegabytes(h, "127.0.0.1:23790") },
		"systemctl enable --now quorumd@events": func() {
			h.expect("systemctl cat etcd@events.service 2>&1 || cat /etc/systemd/system/etcd@events.service.d/*.conf",
				"=-/var/lib/quorumd-etcd/events.env", "=!/var/lib/quorumd-etcd/events.hold")
		},
		"etcdctl del --prefix /quorumd/prod/": func() {
			h.expect("etcdctl get --prefix --keys-only --write-out=json /quorumd/prod/ | grep -c '\"kvs\"' || :", "0")
		},
	}
	for _, line := range typedOnAHost() {
		if do := before[line]; do != nil {
			do()
		}
		typed := strings.ReplaceAll(line, "THE-ID", journalcatalog.ID(string(policy.Idle)))
		switch {
		case strings.HasPrefix(line, "dpkg -i "):
			typed = "cd /pk && " + typed
		case strings.HasPrefix(line, "etcdctl user add "): // etcdctl prompts for the password twice
			typed = "(echo secret; sleep 1; echo secret) | " + typed
		case strings.HasPrefix(line, "curl "): // the host has no curl
			typed = strings.Replace(line, "/run/", h.root+"/run/", 1)
			h.waitUntil(30*time.Second, "the proxy names a voter", func() bool {
				shown, err := exec.CommandContext(t.Context(), "sh", "-c", typed).Output()
				return err == nil && strings.Contains(string(shown), "quorumd_proxy_voter_used{")
			})
			continue
		case strings.HasPrefix(line, "journalctl "): // the journal may not have a line with that code yet
			typed += " >/root/said 2>&1 || grep -q 'No entries' /root/said"
		case strings.HasPrefix(line, "export "):
			typed += "; quorumctl status"
		}
		h.run(typed)
		if do := after[line]; do != nil {
			do()
		}
	}
}

// carryMegabytes has clients of etcd write and read many megabytes through the packaged proxy, in the sandbox of its
// unit. The kernel splices the data, so the proxy itself reads only a small part.
func carryMegabytes(h *host, listen string) {
	h.t.Helper()
	h.waitUntil(30*time.Second, "the proxy accepts connections", func() bool {
		_, err := h.try("etcdctl --endpoints=" + listen + " get a")
		return err == nil
	})
	h.expect("grep ^Seccomp: /proc/"+h.property("quorumd-proxy", "MainPID")+"/status", "2")
	h.run("head -c 750000 /dev/urandom | base64 -w0 >/root/much; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do " +
		"etcdctl --endpoints=" + listen + " put much/$i </root/much >/root/said || exit 1; done")
	const all = " get --prefix --print-value-only much/"
	h.run("etcdctl" + all + " >/root/direct; for i in 1 2 3 4 5; do etcdctl --endpoints=" + listen + all +
		" | cmp - /root/direct || exit 1; done; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat /root/much; echo; done | " +
		"cmp - /root/direct")
	const carried = (1 + 5) * 12 * 1_000_000
	said := h.run("sed -n 's/^rchar: //p' /proc/" + h.property("quorumd-proxy", "MainPID") + "/io")
	read, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil || read > carried/2 { // the proxy copies small pieces; without splice it would copy everything
		h.t.Errorf("of %d bytes the proxy has read %q by itself", carried, said)
	}
	h.t.Logf("of %d bytes the proxy has read %d by itself", carried, read)
}
