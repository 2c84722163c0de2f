// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestInstallPageShowsTheFileThatInitWrites(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../contrib/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ {4}# quorumctl (init --hosts .*)$`).FindSubmatch(page)
	_, after, found := strings.Cut(string(page), "```yaml\n")
	shown, _, ended := strings.Cut(after, "```")
	if command == nil || !found || !ended {
		t.Fatal("install.md lacks quorumctl init or its output")
	}
	args := append(strings.Fields(string(command[1])), "--name", "n1", "--dry-run", "-o", "json")
	r := quorumctl(t, "SOCKET", args...)
	var doc initResult
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatalf("%v in %s%s", err, r.stdout, r.stderr)
	}
	if _, written, _ := strings.Cut(doc.Text, "\n"); written != shown {
		t.Errorf("init writes\n%s\ninstall.md shows\n%s", written, shown)
	}
}
