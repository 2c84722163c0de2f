// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// listen opens a real socket as a service manager does.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	name := filepath.Join(tempdir.New(t), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestTheServiceManagerReceivesTheMessages(t *testing.T) {
	t.Parallel()
	manager := listen(t)
	n := NewNotifierTo(manager.LocalAddr().String())
	if !n.Enabled() {
		t.Error("not enabled")
	}
	for _, c := range []struct {
		tell func() error
		want string
	}{
		{n.Ready, "READY=1"},
		{n.Watchdog, "WATCHDOG=1"},
		{func() error { return n.Status("voter, disk OK") }, "STATUS=voter, disk OK"},
		{func() error { return n.Status("two\r\nlines\nREADY=1") }, "STATUS=two lines READY=1"},
		{n.Stopping, "STOPPING=1"},
	} {
		if err := c.tell(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4096)
		if err := manager.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		length, err := manager.Read(buf)
		if got := string(buf[:length]); err != nil || got != c.want {
			t.Errorf("received %q, %v, want %q", got, err, c.want)
		}
	}
	if err := n.Reloading(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	length, err := manager.Read(buf) // within the previous deadline
	if got := string(buf[:length]); err != nil ||
		!regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[0-9]+$`).MatchString(got) {
		t.Errorf("received %q, %v", got, err)
	}
}

func TestAServiceManagerThatDoesNotReadBlocksNoCall(t *testing.T) {
	t.Parallel()
	n := NewNotifierTo(listen(t).LocalAddr().String())
	// The queue of the socket is full after net.unix.max_dgram_qlen messages.
	for range 100_000 {
		began := time.Now()
		err := n.Watchdog()
		if err == nil {
			continue
		}
		if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took > 10*notifyTimeout {
			t.Errorf("%v after %v", err, took)
		}
		return
	}
	t.Error("the socket is never full, so this shows nothing")
}

func TestWithoutAServiceManagerNothingIsSent(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := NewNotifier()
	if err := errors.Join(n.Ready(), n.Status("x"), n.Watchdog(), n.Stopping()); err != nil || n.Enabled() {
		t.Error(n.Enabled(), err)
	}
	manager := listen(t)
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	if err := NewNotifier().Ready(); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", "/no/such/socket")
	if err := NewNotifier().Ready(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestTheWatchdogIntervalIsRead(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
		fails     bool
	}{
		{"", "", 0, false},
		{"30000000", "", 30 * time.Second, false},
		{"30000000", strconv.Itoa(os.Getpid()), 30 * time.Second, false},
		{"30000000", "1", 0, false}, // meant for a different process
		{"soon", "", 0, true},
		{"-1", "", 0, true},
	} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got, err := WatchdogInterval(); got != c.want || (err != nil) != c.fails {
			t.Errorf("%q for process %q: %v, %v", c.usec, c.pid, got, err)
		}
	}
}
