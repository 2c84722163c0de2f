// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// screen shows the hosts: on a terminal as a table that it redraws, elsewhere as one line per change.
type screen struct {
	out      *os.File
	head     string // the heading above the table
	terminal bool
	columns  int               // width of the terminal when the table was last drawn
	drawn    int               // lines of the table on the terminal
	last     map[string]string // the last line of each host, without numbers
}

func newScreen(out *os.File, head string) *screen {
	s := &screen{out: out, head: head, last: map[string]string{}}
	fmt.Fprint(out, head)
	if _, _, is := s.size(); is {
		s.terminal = os.Getenv("TERM") != "dumb"
	}
	return s
}

// size returns the current size of the terminal, and false if the output is not a terminal. For a terminal that reports
// no size, it returns 100 columns and 25 rows.
func (s *screen) size() (columns, rows int, is bool) {
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	columns, rows = int(size.Col), int(size.Row)
	if columns == 0 {
		columns = 100
	}
	if rows == 0 {
		rows = 25
	}
	return columns, rows, true
}

func (s *screen) show(since time.Duration, hosts []*testbed.Host, states map[string]*control.Status) {
	if s.terminal {
		s.table(since, hosts, states)
		return
	}
	for _, h := range hosts {
		line := row(h, states[h.Options.Name])
		key := withoutNumbers(line)
		if s.last[h.Options.Name] != key {
			s.last[h.Options.Name] = key
			fmt.Fprintf(s.out, "%5.1fs  %s\n", since.Seconds(), line)
		}
	}
}

// detach makes the next table start on a new line, below everything printed so far.
func (s *screen) detach() { s.drawn = 0 }

func (s *screen) table(since time.Duration, hosts []*testbed.Host, states map[string]*control.Status) {
	var b strings.Builder
	columns, rows, _ := s.size()
	switch {
	// the terminal was resized and may have rewrapped the lines, so the position of the table is unknown
	case s.drawn > 0 && columns != s.columns:
		b.WriteString("\x1b[H\x1b[2J" + s.head)
	case s.drawn > 0:
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	s.columns = columns
	lines := tableOf(since, hosts, states, columns-1)
	lines = lines[:min(len(lines), max(1, rows-1))]
	for _, line := range lines {
		b.WriteString("\x1b[2K" + cut(line, columns-1) + "\n")
	}
	b.WriteString("\x1b[J") // the last table may have had more lines
	s.drawn = len(lines)
	fmt.Fprint(s.out, b.String())
}

// tableOf returns the lines of the table. It wraps the last column to the given width.
func tableOf(since time.Duration, hosts []*testbed.Host, states map[string]*control.Status, columns int) []string {
	lines := []string{
		fmt.Sprintf("quorumd demo   %3.0f s", since.Seconds()),
		fmt.Sprintf("%-5s %-8s %-11s %10s  %s", "HOST", "ROLE", "HEALTH", "FSYNC P99", "DOING OR WAITING FOR"),
	}
	for _, h := range hosts {
		lines = append(lines, wrap(row(h, states[h.Options.Name]), columns)...)
	}
	return lines
}

const (
	textColumn  = 39 // where the last column of the table begins
	minimumText = 30 // minimum width of the last column; on a narrower terminal it is cut
)

// wrap breaks a row between words, and indents the continuation lines to the last column.
func wrap(row string, columns int) []string {
	if columns < textColumn+minimumText {
		return []string{row}
	}
	runes := []rune(row)
	prefix, line := string(runes[:textColumn]), ""
	var lines []string
	for _, word := range strings.Fields(string(runes[textColumn:])) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns-textColumn {
			lines = append(lines, prefix+line)
			prefix, line = strings.Repeat(" ", textColumn), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, prefix+line)
}

// cut shortens a line to a number of columns.
func cut(line string, columns int) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:max(0, columns-1)]) + "…"
	}
	return line
}

// row returns one host's line. s is nil if the host does not respond.
func row(h *testbed.Host, s *control.Status) string {
	if s == nil {
		return fmt.Sprintf("%-5s %-8s %-11s %10s  %s", h.Options.Name, "-", "-", "-", "quorumd is not responding yet")
	}
	p99 := "-"
	if lane := s.Health.Disk.WAL; lane.Count > 0 {
		p99 = fmt.Sprintf("%.2f ms", lane.P99*1000)
	}
	return fmt.Sprintf("%-5s %-8s %-11s %10s  %s", h.Options.Name, s.Role, s.Health.State, p99, doing(s))
}

// withoutNumbers removes the figures from a line, so that a line whose figures alone change counts as unchanged.
func withoutNumbers(line string) string {
	return strings.Map(func(r rune) rune {
		if (r >= '0' && r <= '9') || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, line)
}
