// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// confirmedCommands returns command lines that ask for confirmation.
func confirmedCommands() []string {
	return []string{
		"member remove n3 --reason 'scrapped'", "cycle --reboot --reason 'new kernel'",
		"rollout start reboot --reason 'new kernel' --hosts n1,n3", "cluster resize 5 --reason 'two more racks'",
		"leader transfer n2 --reason 'n1 is to be moved'",
		"retire n3 --reason 'end of lease'", "member replace n3 n4 --reason 'end of lease'",
	}
}

func TestDryRunShowsTheRequestAndChangesNothing(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	socket, _ := serve(t, d)
	var lines []string
	for _, line := range confirmedCommands() {
		lines = append(lines, line+" --dry-run")
	}
	lines = append(lines, "member remove n3 --reason x --live --dry-run -o yaml", "cycle --dry-run --reason x")
	golden(t, "dry-run.golden", transcript(t, socket, lines...))
	if asked := d.requests(); asked != "" {
		t.Errorf("--dry-run asked for %q", asked)
	}
}

func TestDestructiveCommandsNeedYesWithoutATerminal(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	socket, _ := serve(t, d)
	for _, line := range append(confirmedCommands(), "snapshot prune") {
		r := quorumctl(t, socket, splitLine(line)...)
		if r.code != exitUsage || !strings.Contains(r.stderr,
			"not confirmed, and there is no terminal to ask on\n→ add --yes") {
			t.Errorf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
		}
		if r := quorumctl(t, socket, append(splitLine(line), "--yes", "--dry-run")...); r.code != exitUsage {
			t.Errorf("%s with both flags: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	if asked := d.requests(); asked != "" {
		t.Errorf("without --yes, it asked for %q", asked)
	}
}

func TestOnlyYesOnATerminalConfirms(t *testing.T) {
	t.Parallel()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for answer, yes := range map[string]bool{
		"y": true, "yes": true, "YES": true, " y ": true, "": false, "n": false, "no": false, "yess": false,
		"\x04":                           false,
		strings.Repeat("y", 2*maxAnswer): false,
	} {
		for _, line := range confirmedCommands() {
			d := scene(t, "steady")
			socket, _ := serve(t, d)
			master, terminal := openTerminal(t)
			args := append([]string{"--socket", socket}, splitLine(line)...)
			if strings.HasPrefix(line, "member remove") || strings.HasPrefix(line, "cycle") {
				args = append(args, "--no-wait")
			}
			cmd := exec.CommandContext(t.Context(), me, args...)
			cmd.Env = append(os.Environ(), "QUORUMCTL_TEST_MAIN=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, new(bytes.Buffer), terminal
			if _, err := master.WriteString(answer + "\n"); err != nil {
				t.Fatal(err)
			}
			err := cmd.Run()
			if asked := d.requests(); (err == nil) != yes || (asked != "") != yes {
				t.Errorf("%s, answered %.9q: %v; asked for %q", line, answer, err, asked)
			}
		}
	}
}

func TestPipedTablesAreNeitherWrappedNorCut(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "hostile"))
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"--socket", socket, "status", "--no-headers"}, &out, &errOut); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if text := out.String(); strings.Contains(text, "HOST ") || strings.Contains(text, "a-host-name…") ||
		!strings.Contains(text, "A_CODE_THAT_IS_LONG_ENOUGH_TO_TEST_THE_TABLE_WITH_IT") {
		t.Errorf("a pipe gets:\n%s", text)
	}
}

func TestQuietWritesErrorsOnly(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "steady"))
	for line, code := range map[string]int{
		"status -q": exitOK, "status --quiet --exit-code": exitOK, "member list -q": exitOK,
		"rollout pause -q": exitFault,
	} {
		r := quorumctl(t, socket, splitLine(line)...)
		if r.code != code || r.stdout != "" || (r.stderr != "") != (code != exitOK) {
			t.Errorf("%s: exit %d: %q, %q", line, r.code, r.stdout, r.stderr)
		}
	}
}

func TestStatusExitCodeIsTheResultOfCheck(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"steady": 0, "slow": 1, "voter-down": 2, "etcd-down": 2} {
		socket, _ := serve(t, scene(t, name))
		check := quorumctl(t, socket, "check").code
		if r := quorumctl(t, socket, "status", "--exit-code"); r.code != code || r.code != check || r.stdout == "" {
			t.Errorf("%s: exit %d, want %d as check: %d", name, r.code, code, check)
		}
		if r := quorumctl(t, socket, "status"); r.code != exitOK {
			t.Errorf("%s without --exit-code: exit %d", name, r.code)
		}
	}
}
