// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/control"
)

const docsDir = "../../contrib/docs"

// generatedPage compares a generated page with the file, or writes the file with -update.
func generatedPage(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(docsDir, name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(path); err != nil || string(was) != text {
		t.Errorf("%s differs from the declarations (%v); go test ./cmd/quorumctl -run Reference -update", path, err)
	}
}

// TestReferenceOfCodes compares codes.md with the codes that quorumctl lists.
func TestReferenceOfCodes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("<!-- Generated: go test ./cmd/quorumctl -run Reference -update -->\n" +
		"# Codes\n\n" +
		"A code is the same in the status, the log, the metrics and the history. `quorumctl explain CODE` shows an\n" +
		"entry of this page on a host.\n\n" +
		"- [Findings](#findings): conditions of a machine or of its etcd. Each leads to a health state.\n" +
		"- [Reasons](#reasons): why a host does or does not act.\n")
	for _, section := range []struct{ heading, kind string }{{"Findings", kindFinding}, {"Reasons", kindReason}} {
		fmt.Fprintf(&b, "\n## %s\n", section.heading)
		for _, c := range codes() {
			if c.Kind != section.kind {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n", c.Code)
			if c.State != "" {
				fmt.Fprintf(&b, "Health state: %s\n\n", c.State)
			}
			b.WriteString(sentence(c.Meaning) + "\n")
			if c.Remedy != "" {
				b.WriteString("\n→ " + sentence(c.Remedy) + "\n")
			}
		}
	}
	generatedPage(t, "codes.md", b.String())
}

// sentence returns a text with a capital at the start and a full stop at the end. A command keeps its case.
func sentence(text string) string {
	escaped := strings.NewReplacer("<", `\<`, "*", `\*`, "|", `\|`).Replace(text)
	if word, _, _ := strings.Cut(escaped, " "); regexp.MustCompile(`^[a-z]+$`).MatchString(word) &&
		!slices.Contains([]string{"quorumctl", "etcd", "etcdctl", "quorumd", "systemctl", "journalctl"}, word) {
		escaped = strings.ToUpper(escaped[:1]) + escaped[1:]
	}
	if strings.HasSuffix(escaped, ".") {
		return escaped
	}
	return escaped + "."
}

// TestReferenceOfTheAPIHasTheExitCodesOfQuorumctl compares the OpenAPI document and the table in api.md with the code.
func TestReferenceOfTheAPIHasTheExitCodesOfQuorumctl(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(docsDir, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Responses map[string]struct {
				Description string
				ExitCode    int `yaml:"x-quorumctl-exit-code"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Components.Responses) < 5 {
		t.Errorf("only %d errors", len(doc.Components.Responses))
	}
	for name, r := range doc.Components.Responses {
		status, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		code := regexp.MustCompile(`^[A-Z_]*`).FindString(r.Description)
		for _, e := range []*control.Error{{Status: status, Code: code}, {Status: status, Code: "ANOTHER"}} {
			if e.Code == "ANOTHER" && !strings.Contains(r.Description, "another code") {
				continue
			}
			if got := exitCode(e); got != r.ExitCode {
				t.Errorf("status %d with %s: exit code %d, the document has %d", status, e.Code, got, r.ExitCode)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(docsDir, "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Exit codes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var listed []int
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(table, -1) {
		n, _ := strconv.Atoi(row[1])
		listed = append(listed, n)
	}
	want := []int{exitUsage, exitUnavailable, exitFault, exitTimeout, exitPermission, exitConfig}
	if !slices.Equal(listed, want) {
		t.Errorf("api.md lists the exit codes %v, want %v", listed, want)
	}
}
