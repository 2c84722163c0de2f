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

// maxProblems bounds how many problems of one file are collected. A file with more is something else.
const maxProblems = 100

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// as given to Load or Parse; empty when the problem is not in the file's text
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0 when no line is to blame, as for a missing section
	Key     string `json:"key,omitempty"`    // path of the key, as in "timing.lockTTL"; empty when the file is no YAML
	Message string `json:"message"`          // what is wrong and what to do
	Source  string `json:"source,omitempty"` // the line's text, fit for printing
	// Dated says that it is a certificate which is not valid now: another one in its place ends it, without a restart.
	Dated bool `json:"dated,omitempty"`
}

// String gives "file:line: key: message", without the key when the message begins with it.
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

// Errors is every problem found, in the order of the file. It is never empty when returned as an error.
type Errors []Problem

// Error gives one line for each problem, followed by the line of the file where there is one.
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

// Dated parts those that end by themselves when a certificate is renewed from all others.
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

// sorted puts problems into the order of the file.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return e
}

// quote shows a value from the file in a message: escaped, and cut when it is long.
func quote(s string) string {
	return strconv.Quote(shorten(withoutSecret(s), 60))
}

// withoutSecret hides the rest of a text from where an identity of age begins in it: somebody has pasted the wrong key.
func withoutSecret(s string) string {
	const begins = "AGE-SECRET-KEY-"
	for i := range len(s) - len(begins) + 1 {
		if strings.EqualFold(s[i:i+len(begins)], begins) {
			return s[:i] + begins + "…"
		}
	}
	return s
}

// excerpt shows a line of the file: no control characters for the terminal, and cut when it is long.
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
