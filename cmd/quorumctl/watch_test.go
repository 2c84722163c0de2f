// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// screen is an output that signals each write.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote func(writes int)
	n     int
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.text.Write(b)
	s.wrote(s.n)
	return len(b), nil
}

func TestWatchShowsOneStatusAfterAnother(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"table", "json", "yaml"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			d := scene(t, "joining")
			d.onRead = func(look int, s *control.Status) { s.Time = s.Time.Add(2 * time.Second) }
			socket, _ := serve(t, d)
			ctx, cancel := context.WithCancel(t.Context())
			out := &screen{wrote: func(n int) {
				if n == 3 {
					cancel()
				}
			}}
			if code := run(ctx, []string{"--socket", socket, "status", "--watch", "--interval", "100ms", "-o", form},
				out, io.Discard); code != exitOK {
				t.Errorf("exit %d", code)
			}
			golden(t, "watch-"+form+".golden", out.text.Bytes())
			if form == "json" {
				dec := json.NewDecoder(&out.text)
				for range 3 {
					var s control.Status
					if err := dec.Decode(&s); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

func TestWatchShowsADaemonThatGoesAwayAndEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	socket, stop := serve(t, scene(t, "steady"))
	ctx, cancel := context.WithCancel(t.Context())
	out := &screen{wrote: func(n int) {
		switch n {
		case 1:
			stop()
		default:
			cancel()
		}
	}}
	code := run(ctx, []string{"--socket", socket, "status", "--watch", "--interval", "100ms"}, out, io.Discard)
	if code != exitOK || !strings.Contains(out.text.String(), "cannot reach quorumd at "+socket) {
		t.Errorf("exit %d: %s", code, out.text.String())
	}
}

func TestWatchRedrawsATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	seen := watchTwoFrames(t)
	for _, want := range []string{"\x1b[H\x1b[1mprod\x1b[0m", "\x1b[K\r\n", "\x1b[32mOK\x1b[0m"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in %q", want, seen)
		}
	}
}

func TestNoColorVariableDisablesColours(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if seen := watchTwoFrames(t); strings.Contains(seen, "\x1b[32m") || !strings.Contains(seen, "\x1b[Hprod") {
		t.Errorf("got %q", seen)
	}
}

// watchTwoFrames returns the terminal output of two frames of status --watch.
func watchTwoFrames(t *testing.T) string {
	t.Helper()
	return watchOutput(t, size{100, 50}, "100ms", "steady", func(int, *os.File) {})
}

// size is the size of a terminal.
type size struct{ wide, high uint16 }

func (s size) set(t *testing.T, terminal *os.File) {
	t.Helper()
	err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: s.wide, Row: s.high})
	if err != nil {
		t.Error(err)
	}
}

// watchOutput returns the output of status --watch on a terminal of this size, until two frames are drawn. It calls
// drew after each frame.
func watchOutput(t *testing.T, of size, interval, name string, drew func(frames int, terminal *os.File)) string {
	t.Helper()
	t.Setenv("TERM", "xterm")
	master, terminal := openTerminal(t)
	if !isTerminal(terminal) {
		t.Fatal("isTerminal returns false for a terminal")
	}
	of.set(t, terminal)
	socket, _ := serve(t, scene(t, name))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		frames := 0
		for {
			n, err := master.Read(buffer)
			seen.Write(buffer[:n])
			for ; frames < strings.Count(seen.String(), clearBelow); drew(frames, terminal) {
				if frames++; frames == 2 {
					cancel()
				}
			}
			if err != nil {
				return
			}
		}
	}()
	code := run(ctx, []string{"--socket", socket, "status", "--watch", "--interval", interval}, terminal, io.Discard)
	terminal.Close() // ends the reader
	<-ended
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	return seen.String()
}

// frames returns the lines of each frame, without colours, and the output after the last one.
func frames(seen string) (drawn [][]string, after string) {
	for _, part := range strings.Split(seen, home)[1:] {
		text, rest, _ := strings.Cut(part, clearBelow)
		var lines []string
		for _, line := range strings.Split(text, "\r\n") {
			lines = append(lines, withoutColours(strings.TrimSuffix(line, clearLine)))
		}
		drawn, after = append(drawn, lines), rest
	}
	return drawn, after
}

func TestFramesFitTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	// Only the new size triggers the second frame.
	seen := watchOutput(t, size{50, 9}, "1h", "hostile", func(frames int, terminal *os.File) {
		if frames == 1 {
			size{90, 40}.set(t, terminal)
			if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil { // as the kernel does on a resize
				t.Error(err)
			}
		}
	})
	drawn, after := frames(seen)
	if len(drawn) < 2 {
		t.Fatalf("%d frames: %q", len(drawn), seen)
	}
	for i, of := range []size{{50, 9}, {90, 40}} {
		widest := 0
		for _, line := range drawn[i] {
			widest = max(widest, width(line))
		}
		if len(drawn[i]) > int(of.high) || widest > int(of.wide) || widest < int(of.wide)-30 {
			t.Errorf("a frame of %d lines, %d wide, on %v:\n%s", len(drawn[i]), widest, of,
				strings.Join(drawn[i], "\n"))
		}
	}
	small, large := drawn[0], drawn[1]
	t.Logf("at 50 by 9\n%s\nat 90 by 40\n%s", strings.Join(small, "\n"), strings.Join(large, "\n"))
	if len(small) != 9 || !strings.HasSuffix(small[7], "more lines: enlarge the window") ||
		small[8] != large[len(large)-1] {
		t.Errorf("the omitted lines are not counted:\n%s", strings.Join(small, "\n"))
	}
	if !strings.HasPrefix(seen, enterScreen) || !strings.HasPrefix(after, leaveScreen) ||
		!strings.Contains(after, large[len(large)-1]) {
		t.Errorf("the terminal is not restored with the last frame on it: %q", after)
	}
}

func TestDumbTerminalGetsPlainLines(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for name, term := range map[string]string{"dumb": "dumb", "no TERM": ""} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", term)
			master, terminal := openTerminal(t)
			size{100, 50}.set(t, terminal)
			ctx, cancel := context.WithCancel(t.Context())
			d := scene(t, "joining")
			d.onRead = func(look int, s *control.Status) {
				s.Time = s.Time.Add(time.Duration(look) * time.Second)
				if look == 3 {
					cancel()
				}
			}
			socket, _ := serve(t, d)
			ended := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(master) // ends with an error when the terminal is closed
				ended <- string(text)
			}()
			args := []string{"--socket", socket, "status", "--watch", "--interval", "100ms"}
			code := run(ctx, args, terminal, io.Discard)
			terminal.Close()
			seen := <-ended
			views := strings.Count(seen, "prod · 2 of 2 voters up")
			if code != exitOK || strings.Contains(seen, "\x1b") || views != 2 {
				t.Errorf("exit %d: %q", code, seen)
			}
		})
	}
}

func TestWaitOnADumbTerminalPrintsEachChange(t *testing.T) {
	t.Setenv("TERM", "dumb")
	master, terminal := openTerminal(t)
	d := scene(t, "joining")
	d.onRead = func(look int, s *control.Status) {
		s.Time = s.Time.Add(2 * time.Second)
		s.Reasons = []control.Reason{{Code: "LEARNER_BEHIND", Text: fmt.Sprintf("%d entries behind", 900/look)}}
		if look == 3 {
			s.Role = policy.RoleVoter
		}
	}
	socket, _ := serve(t, d)
	code, out, seen := runWithTerminal(t, master, terminal, socket, "wait", "--for", "voter")
	if code != exitOK || !strings.HasPrefix(out, "voter: ") ||
		seen != "    0s  joining    LEARNER_BEHIND: 900 entries behind\r\n" {
		t.Errorf("exit %d: %s%q", code, out, seen)
	}
}

func TestLinesThatDoNotFitAreCut(t *testing.T) {
	t.Parallel()
	lines := []string{"one", "\x1b[32mtwo and more\x1b[0m", "three", "now"}
	for _, c := range []struct {
		wide, high int
		want       string
	}{
		{80, 4, "one|\x1b[32mtwo and more\x1b[0m|three|now"},
		{4, 4, "one|\x1b[32mtwo…\x1b[0m|thr…|now"},
		{80, 3, "one|… 2 more lines: enlarge the window|now"},
		{80, 2, "… 3 more lines: enlarge the window|now"},
		{80, 1, "now"},
	} {
		if got := strings.Join(fitLines(lines, c.wide, c.high), "|"); got != c.want {
			t.Errorf("%d by %d: %q, not %q", c.wide, c.high, got, c.want)
		}
	}
}

// openTerminal opens a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	var number int
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}
