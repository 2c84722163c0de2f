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
)

// screen is an output that tells when it was written to.
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
			d.onLook = func(look int, s *control.Status) { s.Time = s.Time.Add(2 * time.Second) }
			socket, _ := serving(t, d)
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
	socket, stop := serving(t, scene(t, "steady"))
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

func TestATerminalIsPaintedInPlace(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	seen := watchedOnATerminal(t)
	for _, want := range []string{"\x1b[H\x1b[1mprod\x1b[0m", "\x1b[K\r\n", "\x1b[32mOK\x1b[0m"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in %q", want, seen)
		}
	}
}

func TestNoColourIsAddedWhereTheEnvironmentForbidsIt(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if seen := watchedOnATerminal(t); strings.Contains(seen, "\x1b[32m") || !strings.Contains(seen, "\x1b[Hprod") {
		t.Errorf("got %q", seen)
	}
}

// watchedOnATerminal gives what a terminal gets from two looks of status --watch.
func watchedOnATerminal(t *testing.T) string {
	t.Helper()
	master, terminal := openTerminal(t)
	if !isTerminal(terminal) {
		t.Fatal("a terminal is not seen as one")
	}
	socket, _ := serving(t, scene(t, "steady"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			seen.Write(buffer[:n])
			if strings.Count(seen.String(), "\x1b[J") >= 2 {
				cancel()
			}
			if err != nil {
				return
			}
		}
	}()
	code := run(ctx, []string{"--socket", socket, "status", "--watch", "--interval", "100ms"}, terminal, io.Discard)
	terminal.Close() // ends the reader
	<-ended
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	return seen.String()
}

// openTerminal makes a pseudo-terminal.
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
