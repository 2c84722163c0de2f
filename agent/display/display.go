// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package display says for people what a status document holds: what stands in the first line about a cluster, in the
// row of a host, in a cell of the table of who reaches whom. A terminal and a page in a browser show the same words,
// each painted in its own way. The package reads and changes nothing.
//
// Many of the texts come from other hosts. They are given as they are: who shows them has to make them harmless.
package display

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Styled is a text with a tone.
type Styled struct {
	Text string
	Tone Tone
}

// Tone is how a word is meant: it is never all that says so.
type Tone string

// The tones.
const (
	Plain  Tone = ""
	Strong Tone = "strong" // a name that a reader looks for
	Good   Tone = "good"
	Warn   Tone = "warn"
	Bad    Tone = "bad"
)

// Clean makes a text fit for a terminal and a page: one line of printable characters.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, text)
}
