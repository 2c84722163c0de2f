// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// TestAPIPageShowsTheRealOutput runs the commands on that page.
func TestAPIPageShowsTheRealOutput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../contrib/docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	socket, _ := serve(t, scene(t, "steady"))
	blocks := strings.Split(string(text), "\n    $ quorumctl ")[1:]
	if len(blocks) == 0 {
		t.Fatal("it shows no command")
	}
	for _, block := range blocks {
		line, rest, _ := strings.Cut(block, "\n")
		var shown strings.Builder
		for said := range strings.Lines(rest) {
			if !strings.HasPrefix(said, "    ") {
				break
			}
			shown.WriteString(said[4:])
		}
		if r := quorumctl(t, socket, splitLine(line)...); r.stdout != shown.String() {
			t.Errorf("%s writes\n%sand not\n%s", line, r.stdout, shown.String())
		}
	}
}
