// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// forged returns a rollout of all hosts as an attacker with write access to quorumd's keys could forge it.
func (w *world) forged(work policy.Work, command string, resumed int) string {
	w.t.Helper()
	r := record.Rollout{
		Version: 1, ID: "forged", Work: string(work), Command: command, Reason: "forged", By: "root", Resumed: resumed,
		State: record.RolloutRunning, Started: time.Now().UTC(), Since: time.Now().UTC(),
	}
	for _, h := range w.hosts {
		r.Hosts = append(r.Hosts, record.RolloutHost{
			ID: "host-" + h.Options.Name, Name: h.Options.Name, State: record.HostWaiting,
		})
	}
	text, err := json.Marshal(r)
	must(w.t, err)
	return string(text)
}

// waitTwoRounds waits until every agent has made a decision on the current records.
func (w *world) waitTwoRounds() {
	w.t.Helper()
	for _, h := range w.hosts {
		before := h.statusNow().Loop.Rounds
		w.eventually("two rounds of "+h.Options.Name+" pass", func() bool {
			s, ok := h.status()
			return ok && s.Loop.Rounds >= before+2
		})
	}
}

// TestAForgedRolloutTakesNoTwoHostsDownAndRunsNoOtherProgram simulates an attacker with write access to quorumd's keys.
// Each time an agent may have read the record, the attacker writes another forged rollout, with every host still
// waiting.
func TestAForgedRolloutTakesNoTwoHostsDownAndRunsNoOtherProgram(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	n1 := w.hosts[0]
	evil := filepath.Join(t.TempDir(), "evil")
	mark := filepath.Join(t.TempDir(), "ran")
	must(t, os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755)) //nolint:gosec // a program
	watched := w.watchDown()

	// programs outside commands.d, and unknown operations
	for _, command := range []string{evil, "../../../../../.." + evil, "missing", "-rf", "a\nb", ""} {
		n1.write(w.keys().Rollout(), w.forged(policy.WorkCommand, command, 1))
		w.waitTwoRounds()
	}
	for _, work := range []policy.Work{"format", "../restart", ""} {
		n1.write(w.keys().Rollout(), w.forged(work, "", 1))
		w.waitTwoRounds()
	}
	if order := w.cycled(); len(order) > 0 {
		t.Errorf("%v were taken down for an impossible command", order)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program outside commands.d was run")
	}

	// more hosts than a rollout may contain
	many := record.Rollout{Version: 1, ID: "many", Work: string(policy.WorkRestart), State: record.RolloutRunning}
	for i := range 20_000 {
		many.Hosts = append(many.Hosts, record.RolloutHost{ID: fmt.Sprintf("h%d", i), Name: fmt.Sprintf("h%d", i)})
	}
	text, err := json.Marshal(many)
	must(t, err)
	n1.write(w.keys().Rollout(), string(text))
	for _, h := range w.hosts {
		w.eventually(h.Options.Name+" names the record", func() bool { return h.namesKey(w.keys().Rollout()) })
	}

	// a rollout that is repeatedly reset to its beginning
	resumed := 1
	w.within(3*bound, "hosts were taken down five times", func() bool {
		resumed++
		n1.write(w.keys().Rollout(), w.forged(policy.WorkRestart, "", resumed))
		return len(w.cycled()) >= 5
	})
	n1.erase(w.keys().Rollout())
	w.eventually("no operation is in flight", func() bool { return w.absent(w.keys().Op()) })
	watched()
	w.eventually("all vote", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	if s := n1.statusNow(); s.Cluster.Error != "" {
		t.Errorf("the cluster is not healthy: %s", s.Cluster.Error)
	}
}
