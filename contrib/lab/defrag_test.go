//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"strings"
	"testing"
)

// TestADefragmentationRunsAsEtcdsUserOnEveryHost defragments all hosts with the installed units: the agent has no
// access to etcd's data, so the compaction must run in a unit that has the user of etcd.
func TestADefragmentationRunsAsEtcdsUserOnEveryHost(t *testing.T) {
	f := formedFleetRunning(t)
	first := f.leader()
	output := f.shell(first, "quorumctl defrag --all --force --yes --reason 'a large compaction' --wait=5m")
	t.Logf("quorumctl defrag:\n%s", output)
	f.waitIdle()
	for _, h := range f.Hosts {
		if !f.serves(h) {
			continue // a spare
		}
		const snap = "/var/lib/etcd/default/member/snap"
		files := f.shell(h, "stat -c '%U %a %n' "+snap+"/db; ls "+snap)
		if !strings.HasPrefix(files, "etcd 600 ") || strings.Contains(files, "defrag") {
			t.Errorf("on %s the database's directory is:\n%s", h.Name, files)
		}
		if history := f.shell(h, "quorumctl history"); !strings.Contains(history, "defrag") {
			t.Errorf("the history of %s shows no defragmentation:\n%s", h.Name, history)
		}
	}
}
