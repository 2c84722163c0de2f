// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/contrib/docs"
)

// everyCommand calls visit for each command except cobra's own.
func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			everyCommand(sub, visit)
		}
	}
}

func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	t.Parallel()
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	code := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)
	n := 0
	everyCommand(root, func(cmd *cobra.Command) {
		lines := strings.Split(cmd.Example, "\n")
		if len(lines) < 2 || len(lines) > 3 {
			t.Errorf("%s has %d lines of examples, want 2 or 3", cmd.CommandPath(), len(lines))
		}
		own := 0
		for _, line := range lines {
			n++
			if width := utf8.RuneCountInString(line); width > columns {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), width, line)
			}
			words := docs.Words(line)
			if len(words) < 2 || words[0] != "quorumctl" {
				t.Errorf("%s: %q does not call quorumctl", cmd.CommandPath(), line)
				continue
			}
			if err := checkCommandLine(words[1:], true); err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			}
			for _, word := range words { // a word in capitals with an underscore must be a code
				if code.MatchString(word) && !slices.Contains(codeNames(), word) {
					t.Errorf("%s: %s: %s is not a code", cmd.CommandPath(), line, word)
				}
			}
			if strings.HasPrefix(strings.TrimSpace(line), cmd.CommandPath()) {
				own++
			}
		}
		explains := strings.HasPrefix(cmd.Short, "Not supported")
		if own == 0 && !explains {
			t.Errorf("%s: no example calls it", cmd.CommandPath())
		}
	})
	if n < 100 {
		t.Errorf("found only %d examples", n)
	}
}

func TestEveryShortHelpStartsWithAVerbAndIsShort(t *testing.T) {
	t.Parallel()
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	everyCommand(root, func(cmd *cobra.Command) {
		const most = 60
		if n := utf8.RuneCountInString(cmd.Short); n == 0 || n > most || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %d characters: %q", cmd.CommandPath(), n, cmd.Short)
		}
	})
}
