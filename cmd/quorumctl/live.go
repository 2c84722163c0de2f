// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/display"
)

// live shows one frame over the last one on a terminal, as large as that is now. It draws on the terminal's second
// screen, so that what stood there before is there again at the end, with the last frame below it.
type live struct {
	app     *app
	resized chan os.Signal // the terminal has another size now
	drawn   bool
	last    []byte
}

// What a terminal is told.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the second screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor on
	clearBelow  = "\x1b[J"
)

// narrowestScreen is how narrow a frame is made to fit; on one that is narrower still its lines are cut.
const narrowestScreen = 40

// newLive gives nothing where there is no terminal that a frame can be drawn on: lines follow each other there.
func (a *app) newLive() *live {
	if !obeys(a.out) || a.format == formatJSON || a.format == formatYAML {
		return nil
	}
	l := &live{app: a, resized: make(chan os.Signal, 1)}
	signal.Notify(l.resized, unix.SIGWINCH)
	return l
}

// draw shows what a frame is at the size that the terminal has now. The last line of a frame always stays.
func (l *live) draw(frame func() ([]byte, error)) error {
	wide, high := terminalSize(l.app.out)
	l.app.columns = min(columns, max(wide, narrowestScreen))
	text, err := frame()
	l.app.columns = 0
	if err != nil {
		return err
	}
	l.last = text
	var b strings.Builder
	if !l.drawn {
		b.WriteString(enterScreen)
		l.drawn = true
	}
	b.WriteString(home)
	for i, line := range fitted(strings.Split(strings.TrimRight(string(text), "\n"), "\n"), wide, high) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line + clearLine)
	}
	return l.app.write([]byte(b.String() + clearBelow))
}

// fitted gives the lines as they fit. Where there are too many, the last but one says how many are missing.
func fitted(lines []string, wide, high int) []string {
	if n := len(lines); n > high {
		kept := max(high-2, 0)
		last := lines[n-1]
		lines = append(lines[:kept:kept], fmt.Sprintf("… %s more: make the window higher",
			display.Count(n-kept-1, "line", "lines")), last)
		lines = lines[len(lines)-min(high, len(lines)):]
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = line
		if width(line) > wide {
			shown[i] = cut(line, wide)
			if strings.Contains(line, "\x1b") {
				shown[i] += "\x1b[0m" // what ended the colour may have been cut off
			}
		}
	}
	return shown
}

// end gives the terminal back, with the last frame on it.
func (l *live) end() error {
	if l == nil {
		return nil
	}
	signal.Stop(l.resized)
	if !l.drawn {
		return nil
	}
	return l.app.write(append([]byte(leaveScreen), l.last...))
}

// changes tells when the terminal has another size; never where there is none.
func (l *live) changes() <-chan os.Signal {
	if l == nil {
		return nil
	}
	return l.resized
}
