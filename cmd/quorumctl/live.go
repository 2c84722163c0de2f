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

// live draws frames in place on a terminal, at its current size. It uses the alternate screen, so that at the end the
// terminal shows its old content again, followed by the last frame.
type live struct {
	app     *app
	resized chan os.Signal // SIGWINCH
	drawn   bool
	last    []byte
}

// Control sequences.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K" // erase from the cursor to the end of the line
	clearBelow  = "\x1b[J"
)

// narrowestScreen is the minimum width of a frame. On a narrower screen, lines are cut.
const narrowestScreen = 40

// newLive returns nil if the output is not a terminal with cursor movement, or if the format is JSON or YAML.
func (a *app) newLive() *live {
	if !supportsANSI(a.out) || a.format == formatJSON || a.format == formatYAML {
		return nil
	}
	l := &live{app: a, resized: make(chan os.Signal, 1)}
	signal.Notify(l.resized, unix.SIGWINCH)
	return l
}

// draw draws a frame at the current size of the terminal. The last line of a frame is always shown.
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
	for i, line := range fitLines(strings.Split(strings.TrimRight(string(text), "\n"), "\n"), wide, high) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line + clearLine)
	}
	return l.app.write([]byte(b.String() + clearBelow))
}

// fitLines cuts the lines to the size of the screen. If there are too many, the line before the last shows how many are
// omitted.
func fitLines(lines []string, wide, high int) []string {
	if n := len(lines); n > high {
		kept := max(high-2, 0)
		last := lines[n-1]
		lines = append(lines[:kept:kept], fmt.Sprintf("… %s: enlarge the window",
			display.Count(n-kept-1, "more line", "more lines")), last)
		lines = lines[len(lines)-min(high, len(lines)):]
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = line
		if width(line) > wide {
			shown[i] = cut(line, wide)
			if strings.Contains(line, "\x1b") {
				shown[i] += "\x1b[0m" // the escape sequence that resets the colour may have been cut off
			}
		}
	}
	return shown
}

// end restores the terminal, with the last frame on it.
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

// sizeChanges returns a channel that receives a signal when the size changes, or nil without a terminal.
func (l *live) sizeChanges() <-chan os.Signal {
	if l == nil {
		return nil
	}
	return l.resized
}
