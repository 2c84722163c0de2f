// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package display formats a status document for operators: the headline of a cluster, the row of a host, a cell of the
// connectivity table. The terminal and the web page show the same text, each with its own styling. The package
// does no I/O.
//
// Many texts come from other hosts. They are returned unchanged, and the caller must sanitize them.
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

// Tone is what a text signals, for styling only: the text must be clear without it.
type Tone string

// The tones.
const (
	Plain  Tone = ""
	Strong Tone = "strong" // a name that should catch the eye
	Good   Tone = "good"
	Warn   Tone = "warn"
	Bad    Tone = "bad"
)

// EventTone returns the tone of a history line of the given kind.
func EventTone(kind string) Tone {
	switch kind {
	case "refusal":
		return Warn
	case "operation":
		return Strong
	}
	return Plain
}

// Clean sanitizes a text for a terminal or a page: one line of printable characters.
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
