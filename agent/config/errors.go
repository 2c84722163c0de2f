// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxProblems bounds the collected problems. A file with more is probably not a configuration file.
const maxProblems = 100

// Problem is one mistake in a configuration.
type Problem struct {
	// file name as passed to Load or Parse; empty if the problem is not in the file's text
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // line number, from 1; 0 if the problem has no line, as with a missing section
	// path of the key, such as "timing.lockTTL"; empty if the file is not valid YAML
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`          // what is wrong and what to do
	Source  string `json:"source,omitempty"` // the line's text, safe to print
	// Dated is set for a certificate that is not valid now: replacing it solves the problem without a restart.
	Dated bool `json:"dated,omitempty"`
}

// String returns "file:line: key: message", without the key if the message begins with it.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			b.WriteString(":" + strconv.Itoa(p.Line))
		}
		b.WriteString(": ")
	}
	if p.Key != "" && !strings.HasPrefix(p.Message, p.Key) {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Errors lists every problem found, in the order of the file. It is never empty when returned as an error.
type Errors []Problem

// Error returns one line per problem, followed by the line of the file if there is one.
func (e Errors) Error() string {
	var lines []string
	for _, p := range e {
		lines = append(lines, p.String())
		if p.Source != "" {
			lines = append(lines, "    | "+p.Source)
		}
	}
	return strings.Join(lines, "\n")
}

// Dated returns the problems that a renewed certificate solves without a restart, and the other problems.
func (e Errors) Dated() (dated, others Errors) {
	for _, p := range e {
		if p.Dated {
			dated = append(dated, p)
		} else {
			others = append(others, p)
		}
	}
	return dated, others
}

// sorted sorts problems in the order of the file.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return e
}

// quote formats a value for a message: escaped, and truncated if it is long.
func quote(s string) string {
	return strconv.Quote(shorten(withoutSecret(s), 60))
}

// withoutSecret cuts a text at the beginning of an age private key, which an operator may have pasted by mistake.
func withoutSecret(s string) string {
	const begin = "AGE-SECRET-KEY-"
	for i := range len(s) - len(begin) + 1 {
		if strings.EqualFold(s[i:i+len(begin)], begin) {
			return s[:i] + begin + "…"
		}
	}
	return s
}

// excerpt formats a line of the file for a terminal: without control characters, and truncated if it is long.
func excerpt(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, shorten(withoutSecret(strings.TrimRight(line, " \t\r")), 100))
}

func shorten(s string, limit int) string {
	seen := 0
	for i := range s {
		if seen == limit {
			return s[:i] + "…"
		}
		seen++
	}
	return s
}
