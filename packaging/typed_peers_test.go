// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	agentconfig "github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/cmd/quorumctl/setup"
	"github.com/quorumd/quorumd/systemd"
)

// typedForPeers returns the documented lines that configure a separate CA for peers on a host with one CA for clients
// and peers.
func typedForPeers() []string {
	return []string{
		`sed -i 's|^    peerCert:|    peerCA: /etc/quorumd/tls/peer-ca.crt\n    peerCert:|' /etc/quorumd/quorumd.yaml`,
		`sed -i 's|^ETCD_PEER_TRUSTED_CA_FILE=.*|ETCD_PEER_TRUSTED_CA_FILE="/etc/quorumd/tls/peer-ca.crt"|' ` +
			"/var/lib/quorumd-etcd/etcd.env",
	}
}

func TestTheDocumentedLinesForAPeerCAChangeConfigurationAndEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf, env := filepath.Join(dir, "quorumd.yaml"), filepath.Join(dir, "etcd.env")
	text, err := setup.Answers{
		Name: "n1", Hosts: []string{"n1=10.0.0.1"}, Cluster: "prod", Mode: "manage", TLS: "/etc/quorumd/tls",
		OneCA: true,
	}.Text()
	if err != nil {
		t.Fatal(err)
	}
	before, err := agentconfig.Parse(conf, text)
	if err != nil || before.Etcd.TLS.PeerCA != before.Etcd.TLS.CA || len(before.Warnings) != 1 {
		t.Fatalf("%+v %v", before.Warnings, err)
	}
	vars, err := systemd.FormatEnvironment(before.Environment(before.SingleMember(), ""))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{conf: text, env: vars} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range typedForPeers() {
		here := strings.ReplaceAll(strings.ReplaceAll(line, "/etc/quorumd/quorumd.yaml", conf),
			"/var/lib/quorumd-etcd/etcd.env", env)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", here).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", here, err, out)
		}
	}
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	after, err := agentconfig.Parse(conf, read(conf))
	if err != nil || len(after.Warnings) != 0 {
		t.Fatalf("%+v %v", after.Warnings, err)
	}
	got, err := systemd.ParseEnvironment(string(read(env)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range after.Environment(after.SingleMember(), "") {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
