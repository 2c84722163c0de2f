// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package scratchetcd runs an etcd that serves only the process that started it. It promises:
//
//   - The etcd listens only on Unix sockets in a directory that only its user may enter; it uses no network address.
//   - The etcd ends when this process ends, for whatever reason, and keeps the given file locked until it has ended.
//   - The etcd does not inherit any ETCD_ variable of this process.
package scratchetcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/socketpath"
)

const (
	// etcd 3.4 requires a port in the name of a socket.
	clientSocket = "client.sock:1"
	peerSocket   = "peer.sock:1"
	logName      = "etcd.log"
	ownerRW      = 0o600
	ownerAll     = 0o700
	// tailBytes is how much of the end of etcd's log is shown after a failure.
	tailBytes = 600
)

// Listen returns the flags that make etcd listen only on its private sockets.
func Listen() []string {
	return []string{"--listen-client-urls", "unix://" + clientSocket, "--listen-peer-urls", "unix://" + peerSocket}
}

// Etcd is a running etcd.
type Etcd struct {
	dir     string
	process *os.Process
	ended   chan error
}

// Start runs program in dir, and makes dir accessible only to its owner. The etcd inherits lockFile, so the file's lock
// is held until the etcd has ended as well. Start adds variables to the etcd's environment.
func Start(program, dir string, args []string, lockFile *os.File, variables ...string) (*Etcd, error) {
	err := errors.Join(removeIfExists(filepath.Join(dir, clientSocket)), removeIfExists(filepath.Join(dir, peerSocket)),
		os.Chmod(dir, ownerAll)) //nolint:gosec // a directory
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, ownerRW)
	if err != nil {
		return nil, err
	}
	defer out.Close()                         // etcd has its own descriptor
	command := exec.Command(program, args...) //nolint:noctx // Stop ends it, or the end of this process does
	command.Dir, command.Stdout, command.Stderr = dir, out, out
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ETCD_")
	}), variables...)
	command.ExtraFiles = []*os.File{lockFile}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e := &Etcd{dir: dir, ended: make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when the thread that started etcd ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		e.process = command.Process
		if err == nil { // the limits are for this process, which reads untrusted data
			_ = etcddb.Unconfine(command.Process.Pid) // if this fails, etcd runs with the limits
		}
		started <- err
		if err == nil {
			e.ended <- command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	return e, nil
}

// PID returns etcd's process ID.
func (e *Etcd) PID() int { return e.process.Pid }

// Ended returns a channel that receives the etcd's exit result once.
func (e *Etcd) Ended() <-chan error { return e.ended }

// Dial connects to the etcd's client socket.
func (e *Etcd) Dial(ctx context.Context) (net.Conn, error) {
	var conn net.Conn
	err := socketpath.With(filepath.Join(e.dir, clientSocket), func(address string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", address)
		return err
	})
	return conn, err
}

// Stop sends etcd SIGTERM, and kills it if it has not ended after bound. It returns an error unless etcd shut down
// cleanly. The caller must not have received the result from Ended.
func (e *Etcd) Stop(bound time.Duration) error {
	if err := e.process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, <-e.ended)
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case err := <-e.ended:
		if endedBy(err, syscall.SIGTERM) { // after a clean shutdown etcd sends itself the signal again
			return nil
		}
		return err
	case <-timer.C:
		err := e.process.Kill()
		return errors.Join(fmt.Errorf("etcd did not stop within %s", durationfmt.Text(bound)), err, <-e.ended)
	}
}

// Killed reports whether the result means that etcd was killed, for example by the kernel.
func Killed(ended error) bool { return endedBy(ended, syscall.SIGKILL) }

func endedBy(err error, signal syscall.Signal) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == signal
}

// LogTail returns at most the last 600 bytes of etcd's log, for display.
func (e *Etcd) LogTail() string {
	text, err := os.ReadFile(filepath.Join(e.dir, logName))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text[max(0, len(text)-tailBytes):])), "?")
}

func removeIfExists(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
