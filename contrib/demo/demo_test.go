// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestASecondDemoIsRefusedAndNamesTheProcessOfTheFirst(t *testing.T) {
	t.Parallel()
	first, second := &demo{dir: filepath.Join(t.TempDir(), "demo")}, &demo{}
	second.dir = first.dir
	if err := first.claim(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(first.dir, "log")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := second.claim()
	if want := fmt.Sprintf("process %d, is already running in %s", os.Getpid(), first.dir); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the second demo removed files of the first: %v", err)
	}
	if err := first.end(nil); err != nil {
		t.Fatal(err)
	}
	if err := second.claim(); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
	if err := second.end(nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(first.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestAForeignDirectoryIsNotEmptied(t *testing.T) {
	t.Parallel()
	d := &demo{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.dir, "thesis"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.claim(); err == nil || !strings.Contains(err.Error(), "not the demo's own") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogsOfAFailedDemoStayUntilTheNextOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	d := &demo{dir: dir}
	if err := d.claim(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "n1", "quorumd.log")
	if err := errors.Join(os.Mkdir(filepath.Dir(log), 0o755), os.WriteFile(log, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the target is not reached")
	if err := d.end(failed); !errors.Is(err, failed) ||
		!strings.Contains(err.Error(), filepath.Join(dir, "n*", "quorumd.log")) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log is gone: %v", err)
	}
	next := &demo{dir: dir}
	if err := next.claim(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next demo has an old log: %v", err)
	}
	if err := next.end(nil); err != nil {
		t.Error(err)
	}
}

func TestAPortInUseIsReportedWithItsProcess(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := &demo{hosts: []*testbed.Host{{Options: testbed.HostOptions{
		Name: "n1", Metrics: "127.0.0.1:0", PeerURL: "http://127.0.0.1:0",
		ClientURL: "http://" + listener.Addr().String(),
	}}}}
	err = d.portsAreFree()
	if want := fmt.Sprintf("%s (demo.test, process %d)", listener.Addr(), os.Getpid()); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.portsAreFree(); err != nil {
		t.Errorf("the port is free: %v", err)
	}
}

// terminal returns both ends of a pseudo terminal with that many columns. The test reads from its end what the demo
// writes to the other end.
func terminal(t *testing.T, columns uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	resize(t, ours, columns)
	return ours, theirs
}

func resize(t *testing.T, terminal *os.File, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

func TestTheTableSurvivesANarrowerTerminal(t *testing.T) {
	t.Parallel()
	ours, theirs := terminal(t, 100)
	s := newScreen(theirs, "")
	hosts := []*testbed.Host{{Options: testbed.HostOptions{Name: "n1"}}, {Options: testbed.HostOptions{Name: "n2"}}}
	frame := func() string {
		t.Helper()
		s.table(time.Second, hosts, map[string]*control.Status{"n1": {Reasons: []control.Reason{{
			Code: "CODE",
			Text: strings.Repeat("long ", 30),
		}}}})
		var drawn []byte
		for !bytes.HasSuffix(drawn, []byte("\x1b[J")) { // a read may return a part of a frame
			buffer := make([]byte, 4096)
			n, err := ours.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			drawn = append(drawn, buffer[:n]...)
		}
		return string(drawn)
	}
	sequence := regexp.MustCompile("\x1b\\[[0-9]*[A-Z]")
	fits := func(what, drawn string, columns int) {
		t.Helper()
		for line := range strings.Lines(drawn) {
			if n := utf8.RuneCountInString(strings.TrimRight(sequence.ReplaceAllString(line, ""),
				"\r\n")); n >= columns {
				t.Errorf("%s: a line has %d of %d columns: %q", what, n, columns, line)
			}
		}
	}
	fits("at first", frame(), 100)
	again := frame()
	if !strings.HasPrefix(again, "\x1b[6A") {
		t.Errorf("the table is not redrawn in place: %q", again)
	}
	if n := strings.Count(again, "long"); n != 30 {
		t.Errorf("the reason has %d of 30 words: %q", n, again)
	}
	for _, columns := range []int{30, 5} {
		resize(t, ours, uint16(columns))
		drawn := frame()
		if !strings.HasPrefix(drawn, "\x1b[H\x1b[2J") {
			t.Errorf("%d columns: the broken table is left: %q", columns, drawn)
		}
		fits("narrower", drawn, columns)
		if again := frame(); !strings.HasPrefix(again, "\x1b[4A") {
			t.Errorf("%d columns: the table is not redrawn in place: %q", columns, again)
		}
	}
}
