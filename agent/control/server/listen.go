// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/socketpath"
)

// ErrServed means that a live process already serves the socket.
var ErrServed = errors.New("already served")

// listenUnix listens on a socket unless a live process serves it. It replaces the socket of a dead process, and no
// other file.
func listenUnix(socket string) (*net.UnixListener, error) {
	fail := func(err error) (*net.UnixListener, error) {
		return nil, fmt.Errorf("cannot listen on %s: %w", socket, err)
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return fail(err)
	}
	unlock, err := lockFile(socket + ".lock")
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := freePath(socket); err != nil {
		return fail(err)
	}
	var l *net.UnixListener
	err = socketpath.With(socket, func(address string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
		return err
	})
	if err != nil {
		return fail(err)
	}
	// peerListener.Close removes the socket itself, before it closes the listener. After that, the path may belong to
	// another daemon.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(socket, 0o666); err != nil { // permissions depend on the peer's credentials, not on the mode
		return fail(errors.Join(err, l.Close()))
	}
	return l, nil
}

// lockFile takes a lock on a file. Without the lock, if two daemons find the same stale socket, the second could remove
// the socket that the first has just created. The empty file stays, because removing it would reopen the race.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another quorumd is starting here: %w", ErrServed)
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return func() { f.Close() }, nil
}

// freePath removes the socket of a dead process. It returns an error if a live process serves the socket, or if the
// path is not a socket.
func freePath(socket string) error {
	info, err := os.Lstat(socket)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("the path exists and is not a socket: move it away or choose another path")
	}
	pid, err := listenerPID(socket)
	switch {
	case errors.Is(err, unix.ECONNREFUSED): // no process listens
		return os.Remove(socket)
	case errors.Is(err, fs.ErrNotExist): // the other process has just removed the socket
		return nil
	case errors.Is(err, unix.EAGAIN), err == nil && pid == 0: // EAGAIN: a live process whose queue is full
		return fmt.Errorf("%w by another process: stop it, or choose another socket", ErrServed)
	case err != nil:
		return err
	}
	return fmt.Errorf("%w by pid %d: stop that process, or choose another socket", ErrServed, pid)
}

// listenerPID connects to a socket and returns the PID of the listening process; 0 if it is in another PID namespace.
func listenerPID(socket string) (pid int, err error) {
	err = socketpath.With(socket, func(address string) error {
		c, err := net.DialTimeout("unix", address, time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		p, err := peerOf(c.(*net.UnixConn))
		pid = p.pid
		return err
	})
	return pid, err
}
