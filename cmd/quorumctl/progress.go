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

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// progress shows a long wait: one line per change, with the time since the first line. If only numbers change, it
// overwrites the line on a terminal, and writes nothing to any other output.
type progress struct {
	out      io.Writer // nil to show nothing
	maxWidth int       // maximum width of a line
	terminal bool
	first    time.Time
	last     string // the last line without its numbers
	open     bool   // the last line has no newline yet
	pace     pace
	numbers  *regexp.Regexp // numbers and durations, but not digits after a letter, as in n1
}

func (a *app) newProgress(out io.Writer) *progress {
	if a.format == formatJSON || a.format == formatYAML {
		return &progress{}
	}
	p := &progress{
		out: out, maxWidth: columns, terminal: supportsANSI(out),
		numbers: regexp.MustCompile(`\b[0-9][0-9A-Za-zµ.%]*`),
	}
	if p.terminal {
		p.maxWidth = min(columns, terminalColumns(out)-1) // a character in the last column may wrap the line
	}
	return p
}

// terminalProgress returns progress that is shown on a terminal only.
func (a *app) terminalProgress(out io.Writer) *progress {
	if isTerminal(out) {
		return a.newProgress(out)
	}
	return &progress{}
}

// show shows a state. now is the daemon's time; counted is the progress in numbers, or nil.
func (p *progress) show(now time.Time, state, text string, counted *policy.Progress) error {
	if p.out == nil {
		return nil
	}
	if p.first.IsZero() {
		p.first = now
	}
	pattern := state + " " + p.numbers.ReplaceAllLiteralString(text, "#")
	changed := pattern != p.last
	p.last = pattern
	if !changed && !p.terminal {
		return nil
	}
	far := amount(counted)
	if left, known := p.pace.left(now, pattern, counted); known {
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
	return p.write(lead + cut(line, p.maxWidth) + "\x1b[K")
}

// end ends an open line with a newline.
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

// terminalSize returns the width and height of a terminal, or 80 by 24 if they are unknown.
func terminalSize(w io.Writer) (wide, high int) {
	if f, ok := w.(*os.File); ok {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err == nil && size.Col > 0 && size.Row > 0 {
			return int(size.Col), int(size.Row)
		}
	}
	return 80, 24
}

// terminalColumns returns the width of a terminal, at least 20.
func terminalColumns(w io.Writer) int {
	wide, _ := terminalSize(w)
	return max(wide, 20)
}
