// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package execshim starts programs from a disk that may hang.
//
// A Go process that forks waits until the child has executed its program. Its other forks and the next garbage
// collection wait, too. Therefore the agent forks and executes its own binary, which is in memory. That child then
// executes the program, so a disk that does not answer blocks only the child. If the child cannot execute the program,
// it reports the error through a pipe, so that the error is never mistaken for output of the program.
package execshim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the hidden subcommand that calls [Main]. The program's path and arguments follow.
const Command = "run-program"

const (
	// statusFD is the pipe's descriptor in the child.
	statusFD = 3
	// maxStatus limits the bytes read from the pipe.
	maxStatus = 1 << 10
	// ready is what the child writes before it executes the program. An error may follow.
	ready = "ready\n"
	// statusWait limits the wait for the end of the pipe, which a concurrently forked process may hold open.
	statusWait = time.Second
)

var errByHand = errors.New("internal command: quorumd runs it itself")

// RefusedError is the reason why the child did not execute the program.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Program is a program started through a child.
type Program struct {
	*exec.Cmd

	status *os.File
}

// New prepares a program with these arguments. child is the command line of the agent's own binary that calls [Main].
// The process is killed when the context ends, but Wait may take longer.
func New(ctx context.Context, child []string, args ...string) *Program {
	return &Program{Cmd: exec.CommandContext(ctx, child[0], append(child[1:len(child):len(child)], args...)...)}
}

// Start starts the child.
func (p *Program) Start() error {
	status, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer writer.Close()
	p.ExtraFiles, p.status = []*os.File{writer}, status
	if err := p.Cmd.Start(); err != nil {
		status.Close()
		return err
	}
	return nil
}

// Wait waits for the end of the program. The error is a [RefusedError] if the program was never executed.
func (p *Program) Wait() error {
	defer p.status.Close()
	err := p.Cmd.Wait()
	if deadlineErr := p.status.SetReadDeadline(time.Now().Add(statusWait)); deadlineErr != nil {
		return deadlineErr
	}
	text, readErr := io.ReadAll(io.LimitReader(p.status, maxStatus))
	switch {
	case string(text) == ready:
		return err
	case len(text) > len(ready) && string(text[:len(ready)]) == ready:
		return RefusedError(text[len(ready):])
	case len(text) > 0:
		return RefusedError(text)
	}
	why := cmp.Or(err, readErr, errors.New("exit status 0"))
	return RefusedError(fmt.Sprintf("the child process exited before it executed the program: %v", why))
}

// Run starts the program and waits for its end.
func (p *Program) Run() error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Wait()
}

// Main runs in the child and executes the program at args[0] with its arguments. It returns only with an error. Unless
// args is empty, it has reported the error to the agent.
func Main(args []string) error {
	return Exec(args, func(path string) (string, error) { return path, nil })
}

// Exec is like Main, but find first checks the path and returns the path to execute.
func Exec(args []string, find func(path string) (string, error)) error {
	unix.CloseOnExec(statusFD)
	status := os.NewFile(statusFD, "status")
	if len(args) == 0 {
		return errByHand
	}
	err := execute(args, status, find)
	_, _ = status.WriteString(err.Error()) // fails if the agent has ended, or without a pipe
	return err
}

func execute(args []string, status io.StringWriter, find func(path string) (string, error)) error {
	// The name makes a hung child recognizable. Executed as /proc/self/exe, the child would be named "exe".
	_ = os.WriteFile("/proc/self/comm", []byte("quorumd-launch"), 0)
	// The child sets no limit on processes. Such a limit would count all threads of this user, including the agent's,
	// and a program that cannot fork might report CRITICAL. The agent's unit limits the tasks of all its processes.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	path, err := find(args[0])
	if err != nil {
		return err
	}
	if _, err := status.WriteString(ready); err != nil {
		return errByHand
	}
	return unix.Exec(path, append([]string{path}, args[1:]...), os.Environ())
}
