// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"time"
)

const (
	// patience is how long to wait for a child to end by itself, and again after it was killed.
	patience = time.Second
	// examPatience is how long to wait for the child of an examination to end by itself: it finishes the write in
	// flight and then removes its files.
	examPatience = 5 * time.Second
	// childLines is how many output lines of one child are passed on.
	childLines = 100
)

// child is one run of the probing process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{} // closed when the child has exited; a stuck child does not exit even after SIGKILL
	err    error         // how the child ended; valid after exited is closed
}

// spawn starts the command with the page as file descriptor 3.
func spawn(command, args []string, page *os.File, log *slog.Logger) (*child, error) {
	if len(command) == 0 {
		return nil, errors.New("no command for the child")
	}
	cmd := exec.Command(command[0], slices.Concat(command[1:], args)...)
	cmd.ExtraFiles = []*os.File{page}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, stderr, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	cmd.Stderr = stderr
	err = cmd.Start()
	stderr.Close()
	if err != nil {
		stdin.Close()
		said.Close()
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	go c.reap(said, log)
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// reap passes on the child's output and waits for its end, however long that takes.
func (c *child) reap(said *os.File, log *slog.Logger) {
	defer close(c.exited)
	defer said.Close()
	lines := bufio.NewScanner(said)
	for n := 0; n < childLines && lines.Scan(); n++ {
		log.Warn("disk probe output", "pid", c.pid(), "text", lines.Text())
	}
	_, _ = io.Copy(io.Discard, said)
	c.err = c.cmd.Wait()
}

// stop closes the input of the child, so that it ends. If it does not end in time, stop kills it, and leaves a stuck
// child to reap. It reports whether the child ended by itself, with exit code 0.
func (c *child) stop(within time.Duration) bool {
	c.stdin.Close()
	if c.gone(within) {
		return c.err == nil
	}
	_ = c.cmd.Process.Kill()
	c.gone(patience)
	return false
}

func (c *child) gone(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}
