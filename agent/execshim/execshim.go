// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package execshim starts programs that lie on a disk which may not answer.
//
// Whoever forks waits until the new process has executed its program, and with Go so do all who want to fork
// meanwhile, and the next collection of garbage. So the agent starts its own program, which is in memory, and that one
// becomes the other, beside it: a disk that does not answer holds the child alone. What kept it from becoming the other
// it says through a pipe, so that it is never taken for what the program says.
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

// Command is the hidden command that becomes a program: its path and its arguments follow.
const Command = "run-program"

const (
	// answerFD is where the child finds the pipe.
	answerFD = 3
	// maxAnswer bounds what is read of it.
	maxAnswer = 1 << 10
	// ready is what the child writes before it becomes the program. Nothing may follow.
	ready = "ready\n"
	// answerWait bounds waiting for a pipe that somebody else holds open, as a process does that is just forked.
	answerWait = time.Second
)

var errByHand = errors.New("quorumd starts this command itself, do not run it by hand")

// RefusedError is why the child has not become the program.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Program is a program that is started through a child.
type Program struct {
	*exec.Cmd

	answer *os.File
}

// New prepares what starts with child, the command line of the agent's own program up to its hidden command. It is
// killed when the context ends; to wait for its end may take longer.
func New(ctx context.Context, child []string, args ...string) *Program {
	return &Program{Cmd: exec.CommandContext(ctx, child[0], append(child[1:len(child):len(child)], args...)...)}
}

// Start starts the child.
func (p *Program) Start() error {
	answer, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer told.Close()
	p.ExtraFiles, p.answer = []*os.File{told}, answer
	if err := p.Cmd.Start(); err != nil {
		answer.Close()
		return err
	}
	return nil
}

// Wait waits for the end of the program. The error is a [RefusedError] if there never was one.
func (p *Program) Wait() error {
	defer p.answer.Close()
	err := p.Cmd.Wait()
	if deadlineErr := p.answer.SetReadDeadline(time.Now().Add(answerWait)); deadlineErr != nil {
		return deadlineErr
	}
	text, readErr := io.ReadAll(io.LimitReader(p.answer, maxAnswer))
	switch {
	case string(text) == ready:
		return err
	case len(text) > len(ready) && string(text[:len(ready)]) == ready:
		return RefusedError(text[len(ready):])
	case len(text) > 0:
		return RefusedError(text)
	}
	why := cmp.Or(err, readErr, errors.New("exit status 0"))
	return RefusedError(fmt.Sprintf("its child ended before it was run: %v", why))
}

// Run starts the program and waits for its end.
func (p *Program) Run() error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Wait()
}

// Main is what the child does: it becomes the program at args[0], with its arguments. It returns only with an error,
// which the agent knows.
func Main(args []string) error {
	return Exec(args, func(path string) (string, error) { return path, nil })
}

// Exec is Main for a program that must be found first.
func Exec(args []string, find func(path string) (string, error)) error {
	unix.CloseOnExec(answerFD)
	answer := os.NewFile(answerFD, "answer")
	if len(args) == 0 {
		return errByHand
	}
	err := become(args, answer, find)
	_, _ = answer.WriteString(err.Error()) // who reads it may be gone
	return err
}

func become(args []string, answer io.StringWriter, find func(path string) (string, error)) error {
	// Started through /proc/self/exe it would show up as "exe", and what hangs should be recognised.
	_ = os.WriteFile("/proc/self/comm", []byte("quorumd-launch"), 0)
	// No limit on processes: it would count all threads of this user, the agents' too, and who cannot fork because of
	// them might say CRITICAL. The agent's unit has one for all.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	path, err := find(args[0])
	if err != nil {
		return err
	}
	if _, err := answer.WriteString(ready); err != nil {
		return errByHand
	}
	return unix.Exec(path, append([]string{path}, args[1:]...), os.Environ())
}
