// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/display"
)

// columns is the maximum width of a line of text.
const columns = 100

// page is text output.
type page struct {
	text     strings.Builder
	coloured bool
	wide     bool // do not wrap lines
	maxWidth int  // maximum width of a line; 0 for columns

	blocks bool // draw bars with block characters: the output is a terminal

	piped     bool // programs may read the tables: each row is one line, and no cell is cut
	noHeaders bool // omit the header of each table
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

// String returns the text written so far.
func (p *page) String() string { return p.text.String() }

// line writes a line, wrapped if it is too long, with a hanging indent of two columns. Arguments come from other hosts
// and from files, so control characters are removed from them.
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

// columns returns the maximum width of a line.
func (p *page) columns() int { return cmp.Or(p.maxWidth, columns) }

func writeLines(p *page, lines ...display.Line) {
	for _, line := range lines {
		args := make([]any, len(line))
		for i, w := range line {
			args[i] = w
		}
		p.line(strings.Repeat("%s", len(line)), args...)
	}
}

// labelled writes a label and a line. Continuation lines are indented by the width of the label.
func (p *page) labelled(label string, line display.Line) {
	var text strings.Builder
	for _, w := range line {
		text.WriteString(p.paint(display.Clean(w.Text), w.Tone))
	}
	for _, part := range p.fold(text.String(), p.columns()-width(label)) {
		p.raw(label + part)
		label = strings.Repeat(" ", width(label))
	}
}

// raw writes a line without wrapping it or removing control characters.
func (p *page) raw(text string) {
	p.text.WriteString(strings.TrimRight(text, " "))
	p.text.WriteByte('\n')
}

// paint adds the escape sequences of a tone to a text.
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

// width counts the columns of a text, without its escape sequences.
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

// wrap breaks a text into lines of at most the given width, at spaces, and within words that are longer than a line.
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

// fits returns how many bytes of a text fit into the given width. It does not cut an escape sequence.
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
