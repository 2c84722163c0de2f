//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// documented gives the commands that a page of contrib/docs has somebody type, by the prompt before them, with the
// addresses of the lab.
func documented(t *testing.T, page, prompt string) []string {
	t.Helper()
	checkout, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(checkout, "contrib/docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	first, _, _ := strings.Cut(string(text), "\n## Later\n") // what follows is for a cluster that stands
	for line := range strings.Lines(first) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), prompt+" "); ok {
			commands = append(commands, strings.ReplaceAll(command, "10.0.0.", "10.77.0."))
		}
	}
	return commands
}

// TestANewcomerMakesAClusterWithTLSOfThreeBareHosts types what contrib/docs/first-cluster.md says, and nothing else but
// that the disk of the lab, which all hosts share, is judged loosely and the waits are short.
func TestANewcomerMakesAClusterWithTLSOfThreeBareHosts(t *testing.T) {
	f := bare(t, 3)
	commands, began := documented(t, newcomersPage, "n1#"), time.Now()
	f.makeCluster()
	t.Logf("three voters with TLS after %s, %d commands on the first host and %d on each other",
		time.Since(began).Round(time.Second), len(commands)-1, len(commands)-2)
	members := f.shell(f.Hosts[0], commands[5])
	if strings.Count(members, ", started, ") != 3 || strings.Count(members, "https://") != 6 {
		t.Errorf("the members:\n%s", members)
	}
	plain := "etcdctl --command-timeout=3s --endpoints=http://10.77.0.1:2379 get a"
	if said, err := f.Hosts[0].Shell(t.Context(), plain); err == nil {
		t.Errorf("a client without TLS was let in: %s", said)
	}
	for _, h := range f.Hosts {
		said := f.shell(h, "quorumctl config check")
		if !strings.Contains(said, "OK") || strings.Contains(said, "warning") {
			t.Errorf("%s: %s", h.Name, said)
		}
	}
	t.Logf("quorumctl status on n1:\n%s", f.shell(f.Hosts[0], "quorumctl status"))

	f.check(f.Each(func(h *lab.Host) error { // all lose power at once, and come back without anybody
		if err := h.PowerLoss(t.Context()); err != nil {
			return err
		}
		if err := h.PowerOn(t.Context()); err != nil {
			return err
		}
		return h.Booted(t.Context())
	}))
	health := strings.Replace(commands[5], "member list", "endpoint health --cluster 2>&1", 1)
	f.eventually("all are back with TLS", func() bool {
		said, err := f.Hosts[0].Shell(t.Context(), health)
		return err == nil && strings.Count(said, " is healthy") == 3
	})
}

// loosely adds how the lab judges its disk and how long it waits.
func loosely(t *testing.T, h *lab.Host) error {
	t.Helper()
	for _, section := range []string{"disk", "timing"} {
		text, err := json.Marshal(h.Settings()[section]) // JSON is YAML
		if err != nil {
			return err
		}
		add := fmt.Sprintf("echo '%s: %s' >>/etc/quorumd/quorumd.yaml", section, text)
		if _, err := h.Shell(t.Context(), add); err != nil {
			return err
		}
	}
	return nil
}
