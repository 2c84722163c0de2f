// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/journalcatalog"
)

// TestCommandsInRemediesExist reads the remedies of all reasons and findings. A flag, an argument or the
// rest of a sentence may follow the command; if only subcommands can follow, the next word must be one.
func TestCommandsInRemediesExist(t *testing.T) {
	t.Parallel()
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	quoted := regexp.MustCompile(`'quorumctl ([^']*)'`)
	command := regexp.MustCompile(`quorumctl((?: [a-z]+(?:-[a-z]+)*\b)+)`)
	seen := 0
	for _, c := range journalcatalog.Codes() {
		for _, m := range command.FindAllStringSubmatch(c.Remedy, -1) {
			seen++
			cmd, rest, err := root.Find(strings.Fields(m[1]))
			onlySubcommands := cmd.HasSubCommands() && cmd.Name() != "health" // quorumctl health needs no subcommand
			if err != nil || cmd == root || onlySubcommands && len(rest) > 0 {
				t.Errorf("%s: there is no quorumctl%s: %v", c.Code, m[1], err)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(c.Remedy, -1) {
			cmd, rest, err := root.Find(strings.Fields(m[1]))
			if err == nil && len(rest) > 0 && !strings.ContainsAny(m[1], "-<") { // no flag, no placeholder
				err = cmd.ValidateArgs(rest)
			}
			if err == nil && len(rest) > 0 && cmd.HasSubCommands() && strings.ToLower(rest[0]) == rest[0] {
				err = fmt.Errorf("%s has no subcommand %s", cmd.Name(), rest[0])
			}
			if err != nil {
				t.Errorf("%s: quorumctl %s is refused: %v", c.Code, m[1], err)
			}
		}
	}
	if seen < 20 {
		t.Errorf("found only %d commands: the expression is wrong", seen)
	}
}

func TestStrandedCodesExist(t *testing.T) {
	t.Parallel()
	for _, name := range stranded() {
		if !slices.Contains(codeNames(), name) {
			t.Errorf("there is no code %s", name)
		}
	}
}
