// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/display"
)

// columns is how wide a line for people is at most.
const columns = 100

// page is a text for people.
type page struct {
	text     strings.Builder
	coloured bool
	wide     bool // lines are not bounded
	most     int  // columns of a line; 0 for columns
	blocks   bool // a terminal shows it: bars are drawn with blocks
}

// word is a text with a tone.
type word display.Styled

const (
	plain = display.Plain
	bold  = display.Strong
	good  = display.Good
	warn  = display.Warn
	bad   = display.Bad
)

// String gives what was written so far.
func (p *page) String() string { return p.text.String() }

// line writes a line, wrapped where it is too long; what follows is indented by two more than its
// beginning. Texts among the arguments come from other hosts and from files, so they are cleaned
// of everything that a terminal would obey.
func (p *page) line(format string, args ...any) {
	shown := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case word:
			shown[i] = p.paint(display.Clean(arg.Text), arg.Tone)
		case display.Styled:
			shown[i] = p.paint(display.Clean(arg.Text), arg.Tone)
		case int, int64, uint64:
			shown[i] = arg
		default:
			shown[i] = display.Clean(fmt.Sprint(arg))
		}
	}
	text := fmt.Sprintf(format, shown...)
	if p.wide {
		p.raw(text)
		return
	}
	indent := len(text) - len(strings.TrimLeft(text, " "))
	for i, part := range p.fold(text[indent:], p.columns()-indent-2) {
		if i > 0 {
			part = "  " + part
		}
		p.raw(strings.Repeat(" ", indent) + part)
	}
}

// columns is how wide a line is at most.
func (p *page) columns() int { return cmp.Or(p.most, columns) }

// writeLines writes lines of words.
func writeLines(p *page, lines ...display.Line) {
	for _, line := range lines {
		args := make([]any, len(line))
		for i, w := range line {
			args[i] = w
		}
		p.line(strings.Repeat("%s", len(line)), args...)
	}
}

// raw writes a line as it is.
func (p *page) raw(text string) {
	p.text.WriteString(strings.TrimRight(text, " "))
	p.text.WriteByte('\n')
}

// paint gives a text as the terminal shows it in that tone.
func (p *page) paint(text string, tone display.Tone) string {
	if !p.coloured || text == "" {
		return text
	}
	var style string // the parameters of the terminal's SGR sequence
	switch tone {
	case bold:
		style = "1"
	case good:
		style = "32"
	case warn:
		style = "33"
	case bad:
		style = "1;31"
	default:
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// width counts the columns that a text takes, without the sequences that paint it.
func width(text string) int {
	n, hidden := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			hidden = true
		case hidden:
			hidden = r != 'm'
		default:
			n++
		}
	}
	return n
}

// wrap breaks a text at blanks into lines of at most so many columns, and within a word that is
// longer than a line.
func wrap(text string, most int) []string {
	var lines []string
	var line string
	for _, w := range strings.Split(text, " ") {
		if line != "" && width(line)+1+width(w) > most {
			lines = append(lines, line)
		} else if line != "" {
			w = line + " " + w
		}
		for line = w; width(line) > most; {
			head := fits(line, most)
			lines, line = append(lines, line[:head]), line[head:]
		}
	}
	return append(lines, line)
}

// fits gives how many bytes of a text take at most so many columns. It does not end within a
// sequence that paints.
func fits(text string, most int) int {
	n, hidden := 0, false
	for i, r := range text {
		switch {
		case r == '\x1b':
			hidden = true
		case hidden:
			hidden = r != 'm'
		case n == most:
			return i
		default:
			n++
		}
	}
	return len(text)
}
