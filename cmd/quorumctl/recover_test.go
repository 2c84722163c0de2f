// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
)

// writeSurvivorFacts writes the facts of the only remaining host of three, with the plans that it received, and returns
// the file.
func writeSurvivorFacts(t *testing.T, received ...recovery.AppliedPlan) string {
	t.Helper()
	f := recovery.Facts{
		Version: recovery.Version, HostID: "host-n1", Host: "n1", Cluster: "prod", PeerURL: "http://n1",
		Taken: time.Now(),
		Log: recovery.Log{Cluster: 0xc1, Member: 1, Term: 3, Index: 100, Commit: 99, Members: []recovery.Member{
			{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}, {ID: 3, Name: "n3"},
		}},
		Plans: received,
	}
	text, err := json.Marshal(f.Sealed())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "n1.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPlanNeedsTheClusterNameTyped(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]int{"prod\n": 0, "prd\n": exitUsage, "\n": exitUsage, "\x04": exitUsage} {
		out := filepath.Join(t.TempDir(), "plan.json")
		cmd, master := session(t, "/nowhere", "recover", "plan", writeSurvivorFacts(t), "--gone", "n2,n3", "--out", out)
		seen := follow(master, "To write the plan, type the name of the cluster: ",
			func() { _, _ = master.WriteString(typed) })
		_ = cmd.Wait()
		_, err := os.Stat(out)
		if code := cmd.ProcessState.ExitCode(); code != want || (err == nil) != (want == 0) {
			t.Errorf("%q: exit %d, the plan: %v: %s", typed, code, err, seen)
		}
		if !strings.Contains(seen, "n1 is the survivor") {
			t.Errorf("%q: the plan is not shown before the question: %s", typed, seen)
		}
	}
}

func TestPlanIsNotWrittenWithoutATerminal(t *testing.T) {
	t.Parallel()
	r := quorumctl(t, "/nowhere", "recover", "plan", writeSurvivorFacts(t), "--gone", "n2,n3", "--out",
		filepath.Join(t.TempDir(), "p"))
	if r.code != exitUsage || !strings.Contains(r.stderr, "no plan was written") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestSecondPlanNeedsTheFirstGivenUpOrItsSurvivorKeptOff(t *testing.T) {
	t.Parallel()
	facts := writeSurvivorFacts(t, recovery.AppliedPlan{
		ID: "abcdefghijkl", Survivor: "n2", GivenUp: true, At: time.Now(),
	})
	plan := func(out string, more ...string) result {
		args := []string{"recover", "plan", facts, "--gone", "n2,n3", "--cluster", "prod", "--out", out}
		return quorumctl(t, "/nowhere", append(args, more...)...)
	}
	out := filepath.Join(t.TempDir(), "plan.json")
	r := plan(out)
	for _, want := range []string{"n1 received plan abcdefghijkl", "quorumctl recover give-up", "--kept-off n2"} {
		if r.code != exitFault || !strings.Contains(r.stderr, want) {
			t.Errorf("exit %d, or %q is missing: %s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	r = plan(out, "--kept-off", "n2")
	if r.code != 0 || !strings.Contains(r.stdout, "must never start again with their data") {
		t.Errorf("with --kept-off: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), `"keptOff": [
    "n2"
  ]`) {
		t.Errorf("the plan lacks --kept-off (%v): %s", err, text)
	}
}

func TestExistingPlanIsNotOverwritten(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(out, []byte("the first plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := quorumctl(t, "/nowhere", "recover", "plan", writeSurvivorFacts(t), "--gone", "n2,n3", "--cluster", "prod",
		"--out", out)
	for _, want := range []string{
		"cannot write the plan: " + out + " exists", "if no host has applied that plan, move it away", "--out FILE",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in %q", want, r.stderr)
		}
	}
	if kept, err := os.ReadFile(out); err != nil || string(kept) != "the first plan" {
		t.Errorf("the existing file now contains %q, %v", kept, err)
	}
}

func TestMissingFactsFileIsReportedBeforeContactingQuorumd(t *testing.T) {
	t.Parallel()
	r := quorumctl(t, "/nowhere", "recover", "plan", "nope.json", "--from-snapshot", "newest")
	if r.code != exitUsage || !strings.Contains(r.stderr, "nope.json: open nope.json: no such file") ||
		!strings.Contains(r.stderr, "quorumctl recover collect > nope.json") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

func TestGiveUpShowsWhatRemains(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &fakeBackend{})
	r := quorumctl(t, socket, "recover", "give-up")
	if r.code != 0 || !strings.Contains(r.stdout, "the plan still applies on other hosts") ||
		!strings.Contains(r.stdout, "quorumd-recover-abcdefghijkl") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestFileHiddenFromQuorumdsServicesIsReportedWithItsDirectory(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/root/etcd.db": "/root", "/home/ann/etcd.db": "/home", "/tmp/x/etcd.db": "/tmp",
		"/var/tmp/etcd.db": "/var/tmp",
		"/srv/etcd.db":     "", "/rooted/etcd.db": "", "/srv/../tmp/etcd.db": "/tmp", "/srv/tmp/etcd.db": "",
	} {
		if got := hiddenDir(path); got != want {
			t.Errorf("hidden(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestReadPlanFromStdin(t *testing.T) {
	t.Parallel()
	if _, err := readPlan("-", strings.NewReader("no plan")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("standard input: %v", err)
	}
	_, err := readPlan(filepath.Join(t.TempDir(), "-"), strings.NewReader("no plan"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file named - in another directory: %v", err)
	}
}
