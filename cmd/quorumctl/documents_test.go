// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/docs"
)

// allPages returns the text of every page, by its path.
func allPages(t *testing.T) map[string]string {
	t.Helper()
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// Pages contain commands in code blocks, and mention commands in text and in quoted output.
var (
	inlineCommand = regexp.MustCompile("(?:`|\\*\\*)(?:[A-Z_]+=\\S+ )?(?:\\S*/)?quorumctl ([a-z][^`*]*)(?:`|\\*\\*)")
	variable      = regexp.MustCompile(`\*\* \*(\w+)\*`) // follows a command in a manual page: **explain** *CODE*
	mention       = regexp.MustCompile(`\bquorumctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?`)
)

func TestCommandsInDocumentsExist(t *testing.T) {
	t.Parallel()
	typed, mentioned := 0, 0
	for name, text := range allPages(t) {
		for _, line := range docs.Typed(text) {
			typed++
			if err := checkCommandLine(docs.Words(line), true); err != nil {
				t.Errorf("%s: quorumctl %s: %v", name, line, err)
			}
		}
		for _, block := range docs.Blocks(text) {
			for _, words := range mention.FindAllStringSubmatch(block, -1) { // output may be truncated
				if err := checkCommandName(words[1], words[2]); err != nil {
					t.Errorf("%s: %s: %v", name, words[0], err)
				}
			}
		}
		prose := strings.ReplaceAll(docs.Prose(text), "\n", " ")
		prose = variable.ReplaceAllString(prose, " $1**")
		for _, span := range inlineCommand.FindAllStringSubmatch(prose, -1) {
			mentioned++
			if err := checkCommandLine(docs.Words(span[1]), false); err != nil {
				t.Errorf("%s: quorumctl %s: %v", name, span[1], err)
			}
		}
	}
	if typed < 60 || mentioned < 60 {
		t.Errorf("found only %d commands in blocks and %d in running text", typed, mentioned)
	}
}

// checkCommandLine returns an error unless quorumctl accepts these arguments. Commands mentioned in running text may
// lack required arguments.
func checkCommandLine(words []string, whole bool) error {
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(joinWait(words))
	if err != nil {
		return err
	}
	if cmd == root {
		return errors.New("no such command")
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	switch {
	case whole:
		return errors.Join(cmd.ValidateArgs(args), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
	case cmd.HasSubCommands() && len(args) > 0 && cmd.ValidateArgs(args) != nil:
		return fmt.Errorf("%s has no subcommand %s", cmd.CommandPath(), args[0])
	}
	return nil
}

// checkCommandName returns an error unless the command exists and, if it has subcommands, the next word is one of them.
func checkCommandName(word, next string) error {
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	cmd, _, err := root.Find([]string{word})
	if err != nil || cmd == root {
		return errors.New("no such command")
	}
	if next == "" || cmd.Runnable() && cmd.Args == nil || !cmd.HasAvailableSubCommands() {
		return nil
	}
	args := []string{next}
	if below, _, err := cmd.Find(args); err != nil || below == cmd && cmd.ValidateArgs(args) != nil {
		return fmt.Errorf("%s has no subcommand %s", cmd.CommandPath(), next)
	}
	return nil
}

func TestUnknownCommandsAreDetected(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"statuss", "maintenance onn --reason x", "maintenance on", "operation release --force", "status --wach",
		"rollout begin", "member remove --reason x", "explain A B", "health mute --reason x",
	} {
		if checkCommandLine(docs.Words(line), true) == nil {
			t.Errorf("quorumctl %s is accepted", line)
		}
	}
	for _, words := range [][2]string{{"statuss", ""}, {"member", "eject"}, {"rollout", "begin"}} {
		if checkCommandName(words[0], words[1]) == nil {
			t.Errorf("quorumctl %v is accepted", words)
		}
	}
}

// TestConfigurationsInDocumentsAreValid checks complete examples: their first line names the file.
func TestConfigurationsInDocumentsAreValid(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile("(?ms)^```yaml\n# /etc/quorumd/\\S+\\.yaml\n(.*?)^```$")
	n := 0
	for name, text := range allPages(t) {
		for _, block := range whole.FindAllStringSubmatch(text, -1) {
			n++
			// The path is longer than a line, and config check must not wrap it.
			path := filepath.Join(t.TempDir(), strings.Repeat("long-", 20)+"quorumd.yaml")
			if err := os.WriteFile(path, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(path); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if r := quorumctl(t, "SOCKET", "config", "check", "--elsewhere", path); r.stdout != path+": OK\n" {
				t.Errorf("%s: exit %d: %s%s", name, r.code, r.stdout, r.stderr)
			}
		}
	}
	if n == 0 {
		t.Error("no configuration was found")
	}
}

func TestCodesInDocumentsExist(t *testing.T) {
	t.Parallel()
	there := codeNames()
	spelt := regexp.MustCompile("(?:`|\\*)([A-Z]+(?:_[A-Z]+)+)(?:`|\\*)" +
		`|\[([A-Z]+_[A-Z_]+)\]|because(?: of)? ([A-Z]+_[A-Z_]+)`)
	// Words with these prefixes are variables, journal fields, or findings of external checks.
	other := regexp.MustCompile(`^(ETCD|QUORUMD|QUORUMCTL|PLUGIN|NO|MESSAGE)_`)
	n := 0
	for name, text := range allPages(t) {
		for _, m := range spelt.FindAllStringSubmatch(text, -1) {
			n++
			if word := m[1] + m[2] + m[3]; !slices.Contains(there, word) && !other.MatchString(word) {
				t.Errorf("%s: %s is not a code", name, word)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d codes were found", n)
	}
}
