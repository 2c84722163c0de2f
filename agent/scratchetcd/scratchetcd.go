// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package scratchetcd runs an etcd that serves nobody but the process that has started it. It promises:
//
//   - The etcd listens on sockets in its own directory alone, which only its user may enter; no address is taken.
//   - It ends with this process, however that ends, and holds the lock that it is given until it has ended.
//   - Nothing in the environment of this process changes how it is started.
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
	// etcd 3.4 wants a port in the name of a socket.
	clientSocket = "client.sock:1"
	peerSocket   = "peer.sock:1"
	logName      = "etcd.log"
	ownerRW      = 0o600
	ownerAll     = 0o700
	// mostTold bounds what is told of its log when it has failed, in bytes.
	mostTold = 600
)

// Listen gives the flags by which etcd listens for this process alone.
func Listen() []string {
	return []string{"--listen-client-urls", "unix://" + clientSocket, "--listen-peer-urls", "unix://" + peerSocket}
}

// Etcd is one that was started.
type Etcd struct {
	dir     string
	process *os.Process
	ended   chan error
}

// Start runs that program in the directory, which becomes its owner's alone. Whoever takes the lock of held later waits
// for it, too. The variables are added to its environment.
func Start(program, dir string, args []string, held *os.File, variables ...string) (*Etcd, error) {
	err := errors.Join(gone(filepath.Join(dir, clientSocket)), gone(filepath.Join(dir, peerSocket)),
		os.Chmod(dir, ownerAll)) //nolint:gosec // a directory
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, ownerRW)
	if err != nil {
		return nil, err
	}
	defer out.Close()                         // etcd has its own
	command := exec.Command(program, args...) //nolint:noctx // it is stopped in order, or with this process
	command.Dir, command.Stdout, command.Stderr = dir, out, out
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ETCD_")
	}), variables...)
	command.ExtraFiles = []*os.File{held}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e := &Etcd{dir: dir, ended: make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the signal comes when the thread ends that has started it
		defer runtime.UnlockOSThread()
		err := command.Start()
		e.process = command.Process
		if err == nil { // the process that reads what it does not trust is this one
			_ = etcddb.Unconfine(command.Process.Pid) // bounded as this one, it may fail, and says so
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

// PID is the number of its process.
func (e *Etcd) PID() int { return e.process.Pid }

// Ended gives how it has ended, once.
func (e *Etcd) Ended() <-chan error { return e.ended }

// Dial connects to it.
func (e *Etcd) Dial(ctx context.Context) (net.Conn, error) {
	var conn net.Conn
	err := socketpath.With(filepath.Join(e.dir, clientSocket), func(address string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", address)
		return err
	})
	return conn, err
}

// Stop ends it in order; one that does not end within the bound is killed. The error says that it has not ended in
// order. It must not have been taken from Ended how it has ended.
func (e *Etcd) Stop(bound time.Duration) error {
	if err := e.process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, <-e.ended)
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case err := <-e.ended:
		if inOrder(err) {
			return nil
		}
		return err
	case <-timer.C:
		err := e.process.Kill()
		return errors.Join(fmt.Errorf("etcd has not stopped within %s", durationfmt.Text(bound)), err, <-e.ended)
	}
}

// inOrder tells whether etcd has ended itself by the signal that it was sent, and not by another.
func inOrder(err error) bool { return endedBy(err, syscall.SIGTERM) }

// Killed tells of how it has ended whether the kernel, or somebody, has killed it.
func Killed(ended error) bool { return endedBy(ended, syscall.SIGKILL) }

func endedBy(err error, signal syscall.Signal) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == signal
}

// LastWords gives the end of its log, for people; at most 600 bytes.
func (e *Etcd) LastWords() string {
	text, err := os.ReadFile(filepath.Join(e.dir, logName))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text[max(0, len(text)-mostTold):])), "?")
}

func gone(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
