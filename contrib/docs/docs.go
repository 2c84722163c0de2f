// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the pages that are written for people, so that tests can hold what stands in them against what
// there is: the README, the pages by task that lie here, the runbooks and the manual pages. It finds the commands in
// them as a person would type them, and runs none.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages gives every page by its path below the root of the checkout, with its text.
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
	// A command with a prompt or without, and perhaps with what it finds in its environment and where it lies.
	typedLine = regexp.MustCompile(`(?m)^(?:    )?(?:[\w-]*[#$] )?(?:[A-Z_]+=\S+ )?(?:\S*/)?quorumctl ([a-z-].*)$`)
	tableRow  = regexp.MustCompile(`    +\d`) // of measurements, which begins with what was measured
	// What is typed into a shell that is no quorumctl alone: behind a prompt, or a program that is known.
	shellLine = regexp.MustCompile(`(?m)^(?:    )?(?:(?:[\w-]*[#$] )(.+)|((?:curl|dpkg|etcdctl|install|journalctl|` +
		`make|promtool|scp|sed|ssh|systemctl|systemd-analyze) .+))$`)
	notTyped = regexp.MustCompile("^```(?:yaml|json)|^```sh\n#!") // files, and programs that are shown whole
)

// Blocks gives the blocks of code of a page, with what is typed and what was printed.
func Blocks(text string) []string { return codeBlock.FindAllString(text, -1) }

// Prose gives a page without its blocks of code.
func Prose(text string) string { return codeBlock.ReplaceAllString(text, "") }

// Typed gives the lines that call quorumctl in the blocks of a page, without that word and what stands before it.
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

// Shell gives the other lines that are typed in the blocks of a page, without prompt and comment.
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
			line, _, _ = strings.Cut(line, "  #") // what follows is said of it
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
