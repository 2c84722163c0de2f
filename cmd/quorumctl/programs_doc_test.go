// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// TestAPIPageShowsTheRealOutput runs the commands of api.md.
func TestAPIPageShowsTheRealOutput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../contrib/docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	socket, _ := serve(t, scene(t, "steady"))
	blocks := strings.Split(string(text), "\n    $ quorumctl ")[1:]
	if len(blocks) == 0 {
		t.Fatal("api.md shows no command")
	}
	for _, block := range blocks {
		line, rest, _ := strings.Cut(block, "\n")
		var shown strings.Builder
		for output := range strings.Lines(rest) {
			if !strings.HasPrefix(output, "    ") {
				break
			}
			shown.WriteString(output[4:])
		}
		if r := quorumctl(t, socket, splitLine(line)...); r.stdout != shown.String() {
			t.Errorf("%s writes\n%swant\n%s", line, r.stdout, shown.String())
		}
	}
}
