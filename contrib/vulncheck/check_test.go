// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package vulncheck tests the script with which CI looks for known vulnerabilities.
package vulncheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindingsAndErrorsFailAndAnUnreachableDatabaseIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool  string // what govulncheck does
		fails bool
		says  []string
		notes bool
	}{
		"nothing is found": {
			"echo No vulnerabilities found.", false,
			[]string{"m: no known vulnerability is called"},
			false,
		},
		"a finding": {
			"echo 'Vulnerability #1: GO-2026-0001'; exit 3", true,
			[]string{"GO-2026-0001", "update"},
			false,
		},
		"no network": {
			"echo 'govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/index\": dial tcp: no " +
				"such host'; exit 1",
			false,
			[]string{"*** NOT CHECKED for known vulnerabilities: m n", "https://vuln.go.dev"},
			true,
		},
		"a module that does not build": {
			"echo 'govulncheck: loading packages: undefined: x'; exit 1", true,
			[]string{"undefined: x", "exit code 1"},
			false,
		},
	} {
		dir := t.TempDir()
		tool, note := filepath.Join(dir, "govulncheck"), filepath.Join(dir, "skipped")
		if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+c.tool+"\n"), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "check.sh", tool, "m", "n")
		cmd.Env = append(os.Environ(), "VULNDB=", "VULNCHECK_SKIPPED="+note)
		out, err := cmd.CombinedOutput()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for _, want := range c.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if _, err := os.Stat(note); (err == nil) != c.notes {
			t.Errorf("%s: the note: %v", name, err)
		}
	}
}
