// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// progress shows how a long wait goes: one line for every change, with the time since the first.
// A line in which nothing but a number moves is written over on a terminal, and not again elsewhere.
type progress struct {
	out      io.Writer // nil when nothing is to be shown
	most     int       // columns of a line
	terminal bool
	first    time.Time
	last     string // what the last line says, without its numbers
	open     bool   // the last line has no end yet
	pace     pace
	numbers  *regexp.Regexp // what moves while nothing changes: figures and durations, but not those in names
}

func (a *app) progressOn(out io.Writer) *progress {
	if a.format == formatJSON || a.format == formatYAML {
		return &progress{}
	}
	p := &progress{
		out: out, most: columns, terminal: obeys(out),
		numbers: regexp.MustCompile(`\b[0-9][0-9A-Za-zµ.%]*`),
	}
	if p.terminal {
		p.most = min(columns, terminalColumns(out)-1) // the last column would begin a new line
	}
	return p
}

// watchedOn is progress for a command whose output is the answer: it is shown on a terminal, and nobody else watches.
func (a *app) watchedOn(out io.Writer) *progress {
	if isTerminal(out) {
		return a.progressOn(out)
	}
	return &progress{}
}

// show shows how it is at a moment of the daemon's clock, and how far, where that is counted.
func (p *progress) show(now time.Time, state, text string, how *control.Progress) error {
	if p.out == nil {
		return nil
	}
	if p.first.IsZero() {
		p.first = now
	}
	said := state + " " + p.numbers.ReplaceAllLiteralString(text, "#")
	changed := said != p.last
	p.last = said
	if !changed && !p.terminal {
		return nil
	}
	far := amount(how)
	if left, known := p.pace.left(now, said, how); known {
		far = "about " + display.Span(left) + " left" + display.After(", ", far)
	}
	if far != "" {
		text = far + ": " + text
	}
	line := fmt.Sprintf("%6s  %-9s  %s", display.Span(now.Sub(p.first)), display.Clean(state), display.Clean(text))
	if !p.terminal {
		pg := &page{}
		pg.line("%s", line)
		return p.write(pg.String())
	}
	lead := "\r"
	if changed && p.open {
		lead = "\n"
	}
	p.open = true
	return p.write(lead + cut(line, p.most) + "\x1b[K")
}

// end finishes the line that is being written over.
func (p *progress) end() error {
	if !p.open {
		return nil
	}
	p.open, p.last = false, ""
	return p.write("\n")
}

func (p *progress) write(text string) error {
	if _, err := io.WriteString(p.out, text); err != nil {
		return cannot("write the output", err)
	}
	return nil
}

// terminalSize is how wide and how high a terminal is, or 80 by 24 when it does not say.
func terminalSize(w io.Writer) (wide, high int) {
	if f, ok := w.(*os.File); ok {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err == nil && size.Col > 0 && size.Row > 0 {
			return int(size.Col), int(size.Row)
		}
	}
	return 80, 24
}

// terminalColumns is how wide a terminal is, as far as a line can be fitted to it.
func terminalColumns(w io.Writer) int {
	wide, _ := terminalSize(w)
	return max(wide, 20)
}
