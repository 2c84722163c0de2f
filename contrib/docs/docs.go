// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the documentation for users, so that tests can compare it with the code: the README, the pages in
// this directory, the runbooks and the manual pages. It extracts the commands as a user would type them, and runs none
// of them.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages returns every page by its path below the root of the checkout, with its text.
func Pages(root string) (map[string]string, error) {
	found := map[string]string{}
	for _, pattern := range []string{"README.md", "contrib/*/*.md", "packaging/man/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("cannot find the pages %s below %s: %w", pattern, root, os.ErrNotExist)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			found[filepath.ToSlash(name)] = string(text)
		}
	}
	return found, nil
}

var (
	codeBlock = regexp.MustCompile("(?m)^```(?s:.*?)^```$|^(?:    .*\n)+")
	// A quorumctl command, which a prompt, a variable and a directory may precede.
	typedLine = regexp.MustCompile(`(?m)^(?:    )?(?:[\w-]*[#$] )?(?:[A-Z_]+=\S+ )?(?:\S*/)?quorumctl ([a-z-].*)$`)
	tableRow  = regexp.MustCompile(`    +\d`) // a row of a table of measurements: a number follows the label
	// Any other command line: it follows a prompt or begins with a known program.
	shellLine = regexp.MustCompile(`(?m)^(?:    )?(?:(?:[\w-]*[#$] )(.+)|((?:curl|dpkg|etcdctl|install|journalctl|` +
		`make|promtool|scp|sed|ssh|systemctl|systemd-analyze) .+))$`)
	// blocks that show a file or a whole script, which no user types
	notTyped = regexp.MustCompile("^```(?:yaml|json)|^```sh\n#!")
)

// Blocks returns the code blocks of a page, with commands and output.
func Blocks(text string) []string { return codeBlock.FindAllString(text, -1) }

// Prose returns a page without its code blocks.
func Prose(text string) string { return codeBlock.ReplaceAllString(text, "") }

// Typed returns the quorumctl commands in the blocks of a page, without the word quorumctl and what precedes it.
func Typed(text string) []string {
	var lines []string
	for _, block := range Blocks(text) {
		for _, line := range typedLine.FindAllStringSubmatch(block, -1) {
			if !tableRow.MatchString(line[1]) {
				lines = append(lines, line[1])
			}
		}
	}
	return lines
}

// Shell returns the commands of other programs in the blocks of a page, without prompts and comments.
func Shell(text string) []string {
	var lines []string
	for _, block := range Blocks(text) {
		if notTyped.MatchString(block) {
			continue
		}
		for _, found := range shellLine.FindAllStringSubmatch(block, -1) {
			line := found[1] + found[2]
			if typedLine.MatchString("    "+line) || tableRow.MatchString(line) {
				continue
			}
			line, _, _ = strings.Cut(line, "  #") // after two blanks, # begins a comment
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Words splits a line as a shell does, up to a comment, a pipe, a redirection or the end of the command.
func Words(line string) []string {
	var words []string
	var word strings.Builder
	within, quote := false, rune(0)
	end := func() {
		if within {
			words = append(words, word.String())
		}
		word.Reset()
		within = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, within = r, true
		case quote == 0 && r == ' ':
			end()
		case quote == 0 && (strings.ContainsRune("|>;&", r) || r == '#' && !within):
			end()
			return words
		default:
			word.WriteRune(r)
			within = true
		}
	}
	end()
	return words
}
