// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMakeSaysInOneSentenceWhichGoItNeeds has Gos that answer "version" and nothing else.
func TestMakeSaysInOneSentenceWhichGoItNeeds(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Fatal("cannot look at the Makefile: install make")
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\ngo ")
	need, _, _ := strings.Cut(after, "\n")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if named := "Go " + strings.TrimSuffix(need, ".0") + " or newer"; !strings.Contains(string(readme), named) {
		t.Errorf("README does not say %q", named)
	}
	says := func(found string) string { return "need Go ≥ " + need + ", found " + found + ": https://go.dev/dl" }
	for what, c := range map[string]struct{ script, says string }{
		"Debian's": {`echo "go version go1.19.8 linux/amd64"`, says("1.19.8")},
		"one that may not load": {
			`[ "$GOTOOLCHAIN" = local ] || { echo "go: toolchain not available" >&2; exit 1; }; ` +
				`echo "go version go1.24.2 linux/arm64"`, says("1.24.2"),
		},
		"a broken one":          {"exit 1", says("none that tells its version")},
		"none":                  {"", "found none as "},
		"the one that is asked": {`echo "go version go` + need + ` linux/amd64"`, ""},
		"a newer one":           {`echo "go version go1.126.3 linux/amd64"`, ""},
		"one of tomorrow":       {`echo "go version devel go1.127-7a2b8f1 Sat Nov 21 linux/amd64"`, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "go")
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "build", "GO="+program)
			cmd.Dir = root
			for _, v := range os.Environ() { // of a make that runs this test
				if !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS=") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			out, err := cmd.CombinedOutput()
			if refused := err != nil; refused != (c.says != "") || !strings.Contains(string(out), c.says) ||
				refused && strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v: %s; want one line with %q", err, out, c.says)
			}
		})
	}
}

// TestWhatMakeLeavesForLaterIsThere holds the names of the tests that make test leaves out against the tests.
func TestWhatMakeLeavesForLaterIsThere(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if line := regexp.MustCompile(`(?m)^[A-Z_0-9]+ *:?=.*[ \t]#.*$`).Find(makefile); line != nil {
		t.Errorf("the space before the comment is part of what this sets: %s", line)
	}
	for list, dir := range map[string]string{
		"LONG_FLEETS": "agent", "LONG_SIM": "agent/sim", "NIGHTLY_LAB": "contrib/lab",
		"NIGHTLY_FAULTS": "contrib/e2e",
	} {
		_, after, found := strings.Cut(string(makefile), "\n"+list)
		names := regexp.MustCompile(`^ *:= ((?:.*\$\\\n)*.*)\n`).FindStringSubmatch(after)
		if !found || names == nil {
			t.Fatalf("the Makefile has no %s", list)
		}
		files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		var text strings.Builder
		for _, file := range files {
			more, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(more)
		}
		for name := range strings.SplitSeq(strings.NewReplacer("$\\\n", "", "\t", "").Replace(names[1]), "|") {
			if !strings.Contains(text.String(), "\nfunc "+name+"(") {
				t.Errorf("%s of the Makefile names %s, which is no test in %s", list, name, dir)
			}
		}
	}
}
