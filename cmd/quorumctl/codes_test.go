// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// TestCodesAreExplainedWithoutQuorumd uses a socket without a server.
func TestCodesAreExplainedWithoutQuorumd(t *testing.T) {
	t.Parallel()
	golden(t, "codes.golden", transcript(t, filepath.Join(t.TempDir(), "none"),
		"explain LOWER_RANKED", "explain vote", "explain voter_not_live", "explain DISK_FSYNC_SLOW",
		"explain DISK_STALLED -o yaml", "explain A B"))
}

func TestEveryCodeIsListedAndExplained(t *testing.T) {
	t.Parallel()
	var listed []code
	if err := json.Unmarshal([]byte(quorumctl(t, "SOCKET", "codes", "-o", "json").stdout), &listed); err != nil {
		t.Fatal(err)
	}
	table := quorumctl(t, "SOCKET", "codes").stdout
	known := map[string]code{}
	for _, c := range listed {
		known[c.Code] = c
	}
	want := map[string]string{}
	for _, r := range policy.Reasons() {
		want[string(r.Code)] = r.Meaning
	}
	for _, p := range health.Problems() {
		want[string(p.Code)] = p.Meaning
	}
	if len(known) != len(want) || len(listed) != len(want) {
		t.Errorf("%d codes are listed, %d of them distinct; want %d", len(listed), len(known), len(want))
	}
	for name, meaning := range want {
		r := quorumctl(t, "SOCKET", "explain", name, "-o", "wide")
		if r.code != exitOK || !strings.HasPrefix(r.stdout, "["+name+"] ") || !strings.Contains(r.stdout, meaning) ||
			!strings.Contains(r.stdout, "\n    → ") {
			t.Errorf("explain %s: exit %d: %s%s", name, r.code, r.stdout, r.stderr)
		}
		if !strings.HasSuffix(known[name].Meaning, meaning) || !strings.Contains(table, "\n"+name+" ") {
			t.Errorf("%s is listed as %+v and in\n%s", name, known[name], table)
		}
	}
}

// asProgram runs quorumctl as a program, with a variable in its environment.
func asProgram(t *testing.T, variable string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = []string{"QUORUMCTL_TEST_MAIN=1", variable}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSocketFromEnvironment(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "steady"))
	if out, err := asProgram(t, socketVariable+"="+socket, "status"); err != nil ||
		!strings.Contains(out, "3 of 3 voters up") {
		t.Errorf("%v: %s", err, out)
	}
	other := filepath.Join(t.TempDir(), "other")
	if out, err := asProgram(t, socketVariable+"="+socket, "status", "--socket", other); err == nil ||
		!strings.Contains(out, other) {
		t.Errorf("the flag does not take precedence: %v: %s", err, out)
	}
	if out, err := asProgram(t, socketVariable+"=", "status", "--help"); err != nil ||
		!strings.Contains(out, socketVariable) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestConfigCheckReportsADisabledUnit uses a fake systemctl.
func TestConfigCheckReportsADisabledUnit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "q.yaml")
	text := "host:\n  id: h\ncluster:\n  name: prod\n  endpoints: [http://127.0.0.1:2379]\netcd:\n  clientURL: " +
		"http://127.0.0.1:2379\n  peerURL: http://127.0.0.1:2380\n  binary: " + program(t) + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for state, warned := range map[string]bool{
		"enabled": false, "disabled": true, "static": false, "linked": true,
		"": false,
	} {
		systemctl := "#!/bin/sh\n[ \"$*\" = 'is-enabled etcd.service' ] && echo '" + state + "'\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(systemctl), 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := asProgram(t, "PATH="+dir, "config", "check", "-o", "wide", file)
		want := file + ": OK\n"
		if warned {
			want += "  warning: etcd.service is " + state +
				", so etcd does not start at boot: systemctl enable etcd.service\n"
		}
		if err != nil || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q: %v: %s", state, err, out)
		}
		if out, err := asProgram(t, "PATH="+dir, "config", "check", "--elsewhere", "-o", "wide", file); err != nil ||
			strings.Contains(out, "warning") {
			t.Errorf("%q, elsewhere: %v: %s", state, err, out)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	if r := quorumctl(t, "SOCKET", "--version"); r.code != exitOK ||
		r.stdout != "quorumctl version "+ownVersion()+"\n" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestDurationFlagsAcceptDays(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	socket, _ := serve(t, d)
	if r := quorumctl(t, socket, "maintenance", "on", "--reason", "new board", "--for", "1d12h",
		"--no-wait"); r.code != exitOK || !strings.Contains(d.requests(), "for 36h0m0s") {
		t.Errorf("exit %d: %s%s; asked: %s", r.code, r.stdout, r.stderr, d.requests())
	}
	if r := quorumctl(t, socket, "maintenance", "on", "--reason", "new board", "--for", "8d"); r.code != exitUsage ||
		!strings.Contains(r.stderr, "out of range") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := quorumctl(t, socket, "pause", "--reason", "move", "--for", "2 days"); r.code != exitUsage ||
		!strings.Contains(r.stderr, `"2 days"`) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
