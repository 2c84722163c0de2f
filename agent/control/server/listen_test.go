// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestAServedSocketIsNotTaken(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{})
	second := New(Options{Socket: socket, Backend: &fake{}})
	err := second.Listen()
	if !errors.Is(err, ErrServed) {
		t.Fatalf("got %v", err)
	}
	if want := fmt.Sprintf("already served by pid %d", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not contain %q", err, want)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("the first server lost its socket: %v", err)
	}
}

func TestASocketWithAFullQueueIsNotTaken(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: socket}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	dial(t, socket) // fills the queue: the listener never accepts
	if err := New(Options{Socket: socket, Backend: &fake{}}).Listen(); !errors.Is(err, ErrServed) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Error(err)
	}
}

func TestTheSocketOfADeadProcessIsReplaced(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	leaveStaleSocket(t, socket)
	startServer(t, New(Options{Socket: socket, Backend: &fake{}, Logger: testLog(t)}))
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFileThatIsNotASocketIsNotRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempdir.New(t), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := New(Options{Socket: path, Backend: &fake{}}).Listen()
	if err == nil || errors.Is(err, ErrServed) || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestASocketWithALongPathIsServedAndRemoved(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), strings.Repeat("x", 150), "s")
	for range 2 { // the first server must leave nothing that blocks the second
		s := New(Options{Socket: socket, Backend: &fake{}, Logger: testLog(t)})
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		if err := New(Options{Socket: socket, Backend: &fake{}}).Listen(); !errors.Is(err, ErrServed) {
			t.Errorf("a second server: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		if _, err := control.Dial(socket).Status(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	}
}

func TestOneOfSeveralConcurrentlyStartedServersListens(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		socket := filepath.Join(tempdir.New(t), "run", "s") // in every second round, the directory does not exist
		if round%2 == 0 {
			leaveStaleSocket(t, socket)
		}
		servers := make([]*Server, 8)
		errs := make([]error, len(servers))
		begin := make(chan struct{})
		var all sync.WaitGroup
		for i := range servers {
			servers[i] = New(Options{Socket: socket, Backend: &fake{}})
			all.Go(func() {
				<-begin
				errs[i] = servers[i].Listen()
			})
		}
		close(begin)
		all.Wait()
		listening := 0
		for i, err := range errs {
			if err == nil {
				listening++
				defer servers[i].Close()
			} else if !errors.Is(err, ErrServed) {
				t.Error(err)
			}
		}
		if listening != 1 {
			t.Errorf("%d servers listen", listening)
		}
		dial(t, socket)
	}
}

func TestASocketIsNotTakenFromAStartingServer(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	unlock, err := lockFile(socket + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Socket: socket, Backend: &fake{}})
	if err := s.Listen(); !errors.Is(err, ErrServed) {
		t.Errorf("got %v", err)
	}
	unlock()
	if err := errors.Join(s.Listen(), s.Close()); err != nil {
		t.Error(err)
	}
}

// leaveStaleSocket creates a socket as a killed daemon leaves it.
func leaveStaleSocket(t *testing.T, socket string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Fatal(err)
	}
}

func TestTheSocketIsOpenToAllUsersAndRemovedAtTheEnd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	s := New(Options{Socket: socket, Backend: &fake{}})
	go func() { ended <- s.Serve(ctx) }() // without Listen
	if _, err := control.Dial(socket).Status(ctx); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), fs.ModeSocket|0o666; got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close after Serve: %v", err)
	}
}

func TestCloseRemovesTheSocketOfAServerThatNeverServed(t *testing.T) {
	t.Parallel()
	s := New(Options{Socket: filepath.Join(tempdir.New(t), "s"), Backend: &fake{}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.opt.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestTheClientWaitsForAStartingDaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	answer := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := control.Dial(socket).Status(context.Background())
		answer <- err
	}()
	<-started
	timer := time.NewTimer(300 * time.Millisecond)
	defer timer.Stop()
	select {
	case err := <-answer:
		t.Fatalf("the client did not wait: %v", err)
	case <-timer.C:
	}
	startServer(t, New(Options{Socket: socket, Backend: &fake{}, Logger: testLog(t)}))
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// The client waits 2 s for the first byte of an answer, and longer for a backend that is busy.
func TestTheClientWaitsForABusyBackend(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	c := control.Dial(serveBackend(t, &fake{change: func(context.Context) error { <-over; return nil }}))
	timer := time.AfterFunc(3*time.Second, func() { close(over) })
	defer timer.Stop()
	if _, err := c.Resume(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerWithoutAPathUsesTheDefault(t *testing.T) {
	t.Parallel()
	if got := New(Options{}).opt.Socket; got != control.DefaultSocket {
		t.Errorf("got %q", got)
	}
}
