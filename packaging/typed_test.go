// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/docs"
)

// typedOnAHost returns commands that the pages show, without those of quorumctl, in an order in which each makes sense
// on one host. TestDocumentedCommandsOtherThanQuorumctlWork runs them, in this order.
func typedOnAHost() []string {
	return []string{
		"dpkg -i quorumd-etcd_*.deb quorumd_*.deb",
		"dpkg -i quorumd_*_amd64.deb",
		"systemctl enable etcd",
		"systemctl enable --now quorumd",
		"systemctl status quorumd",
		"systemctl reload quorumd",
		"systemctl enable --now quorumd-proxy",
		"curl -s --unix-socket /run/quorumd-proxy/metrics.sock http://proxy/metrics | " +
			"grep -E '^[a-z]+_proxy_(conn|voter)'",
		"journalctl -x -u quorumd",
		"journalctl -u quorumd QUORUMD_CODE=DISK_FSYNC_SLOW",
		"journalctl MESSAGE_ID=THE-ID",
		"journalctl --catalog MESSAGE_ID=THE-ID",
		"install -d -o etcd -g etcd -m 0700 /var/lib/etcd/.quorumd-probe",
		"install -o quorumd -g quorumd -m 0400 /dev/null /etc/quorumd/etcd.password",
		"etcdctl snapshot save /root/etcd.db",
		"etcdctl alarm list",
		`etcdctl compact "$(etcdctl endpoint status -w fields | awk '/"Revision"/ { print $3 }')"`,
		"etcdctl --command-timeout=10m defrag",
		"etcdctl alarm disarm",
		"etcdctl role add quorumd",
		"etcdctl role grant-permission quorumd readwrite --prefix=true /quorumd/prod/",
		"etcdctl user add quorumd",
		"etcdctl user grant-role quorumd quorumd",
		"etcdctl user grant-role quorumd root",
		"install -D -m 0644 /usr/lib/systemd/system/etcd.service.d/10-quorumd.conf " +
			"/etc/systemd/system/etcd@events.service.d/10-quorumd.conf",
		`sed -i 's,/etcd\.env,/events.env,; s,/etcd\.hold,/events.hold,' ` +
			"/etc/systemd/system/etcd@events.service.d/10-quorumd.conf",
		"systemctl daemon-reload",
		"systemctl enable --now quorumd@events",
		"export QUORUMCTL_SOCKET=/run/quorumd/events/control.sock",
		"systemctl restart quorumd",
		"systemctl stop quorumd",
		"etcdctl del --prefix /quorumd/prod/",
		"dpkg -r quorumd",
		"systemctl is-active etcd",
	}
}

// typedElsewhere returns the other commands, each with the test file that runs it and the code in that file.
func typedElsewhere() []elsewhere {
	const firstCluster, kubelet = "../contrib/lab/first_cluster_test.go", "../contrib/e2e/external_test.go"
	return []elsewhere{
		{firstCluster, `documentedCommands(t, firstClusterPage, "n1#")`, []string{
			"etcdctl --endpoints=https://10.0.0.1:2379 --cacert=/etc/quorumd/tls/ca.crt " +
				"--cert=/etc/quorumd/tls/client.crt --key=/etc/quorumd/tls/client.key member list",
		}},
		{firstCluster, `documentedUnder(t, firstClusterPage, "### Certificate authentication", "n1#")`, []string{
			"export ETCDCTL_ENDPOINTS=https://10.0.0.1:2379 ETCDCTL_CACERT=/etc/quorumd/tls/ca.crt " +
				"ETCDCTL_CERT=/etc/quorumd/tls/client.crt ETCDCTL_KEY=/etc/quorumd/tls/client.key",
			"etcdctl user add root --no-password",
			"etcdctl user grant-role root root",
			"etcdctl user add quorumd --no-password",
			"etcdctl auth enable",
		}},
		{firstCluster, `heading = "### Password authentication"`, []string{
			"head -c 24 /dev/urandom | base64 >etcd.password",
			"install -o quorumd -g quorumd -m 0400 etcd.password /etc/quorumd/etcd.password",
			`sed -i 's|^etcd:|etcd:\n  user: quorumd\n  passwordFile: /etc/quorumd/etcd.password|' ` +
				"/etc/quorumd/quorumd.yaml",
			"etcdctl user add quorumd --interactive=false <etcd.password",
			"export ETCDCTL_USER=quorumd:$(cat /etc/quorumd/etcd.password)",
			"etcdctl user passwd quorumd --interactive=false <etcd.password",
		}},
		{"../agent/control/server/openapi_served_test.go", "docs.Shell(string(page))", []string{
			"curl --unix-socket /run/quorumd/control.sock http://quorumd/v1/status",
			"curl --unix-socket /run/quorumd/control.sock 'http://quorumd/v1/history?limit=5'",
			"curl --unix-socket /run/quorumd/control.sock 'http://quorumd/v1/history?limit=0'",
		}},
		{"typed_peers_test.go", "range typedForPeers()", typedForPeers()},
		{"../contrib/lab/recover_test.go", `"disaster-recovery.md"`, []string{
			"for h in n1 n2; do ssh $h quorumctl recover collect > $h.json; done",
			"for h in n1 n2; do ssh $h quorumctl recover apply - < plan.json; done",
		}},
		{kubelet, "k.runDocumented(", []string{
			"mv /etc/kubernetes/manifests/etcd.yaml /root/", "mv /root/etcd.yaml /etc/kubernetes/manifests/",
		}},
		{kubelet, "k.program(", []string{
			"cat /etc/quorumd/hooks/etcd.d/stop", "cat /etc/quorumd/hooks/etcd.d/start",
		}},
	}
}

// elsewhere is a test file, its code that runs the lines, and the lines.
type elsewhere struct {
	file, has string
	lines     []string
}

func TestEveryOtherDocumentedCommandIsRunByATest(t *testing.T) {
	t.Parallel()
	pages, err := docs.Pages("..")
	if err != nil {
		t.Fatal(err)
	}
	run := typedOnAHost()
	for _, e := range typedElsewhere() {
		if !strings.Contains(text(t, e.file), e.has) {
			t.Errorf("%q should be run by %s, which has no %s", e.lines, e.file, e.has)
		}
		run = append(run, e.lines...)
	}
	used := map[string]bool{}
	made := text(t, "../.ci/run") + text(t, "../.ci/compute") + text(t, "../Makefile")
	for name, page := range pages {
		for _, line := range docs.Shell(page) {
			used[line] = true
			switch target, isMake := strings.CutPrefix(line, "make "); {
			case isMake:
				done := regexp.MustCompile(`(?m)^(?:step|\t\S.*MAKE\)).* ` + regexp.QuoteMeta(target) + `\b`)
				if !done.MatchString(made) {
					t.Errorf("%s shows %s, which neither .ci/run nor make nightly runs", name, line)
				}
			case strings.HasPrefix(line, "$EDITOR "): // the pages tell the operator what to change in the file
			case !slices.Contains(run, line):
				t.Errorf("%s shows %s, which no test runs: add it to typedOnAHost", name, line)
			}
		}
	}
	for _, line := range run {
		if !used[line] {
			t.Errorf("no page shows %s any more", line)
		}
	}
}
