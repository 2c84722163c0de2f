// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package execshim starts programs from a disk that may hang.
//
// A process that forks waits until its child has executed a program. In Go, so do all other forks meanwhile, and the
// next garbage collection. Therefore the agent starts its own program, which is in memory, and that becomes the other
// program: a disk that does not answer blocks only the child. The child reports through a pipe what prevented that, so
// that its error is never mistaken for the program's output.
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
	// answerFD is the pipe's descriptor in the child.
	answerFD = 3
	// maxAnswer bounds what is read from it.
	maxAnswer = 1 << 10
	// ready is written by the child before it becomes the program. Nothing may follow.
	ready = "ready\n"
	// answerWait bounds the wait for a pipe that another process still holds open, such as one that has just been
	// forked.
	answerWait = time.Second
)

var errByHand = errors.New("internal command: quorumd runs it itself")

// RefusedError is why the child has not become the program.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Program is a program started through a child.
type Program struct {
	*exec.Cmd

	answer *os.File
}

// New prepares a program to be started through child, the command line of the agent's own program up to its hidden
// command. It is killed when the context ends; waiting for its end may take longer.
func New(ctx context.Context, child []string, args ...string) *Program {
	return &Program{Cmd: exec.CommandContext(ctx, child[0], append(child[1:len(child):len(child)], args...)...)}
}

// Start starts the child.
func (p *Program) Start() error {
	answer, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer writer.Close()
	p.ExtraFiles, p.answer = []*os.File{writer}, answer
	if err := p.Cmd.Start(); err != nil {
		answer.Close()
		return err
	}
	return nil
}

// Wait waits for the end of the program. The error is a [RefusedError] if the program was never executed.
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
	return RefusedError(fmt.Sprintf("its child exited before it could run: %v", why))
}

// Run starts the program and waits for its end.
func (p *Program) Run() error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Wait()
}

// Main runs in the child: it becomes the program at args[0], with its arguments. It returns only with an error, which
// it has reported to the agent.
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
	_, _ = answer.WriteString(err.Error()) // the reader may be gone
	return err
}

func become(args []string, answer io.StringWriter, find func(path string) (string, error)) error {
	// Started through /proc/self/exe its name would be "exe", and a hung child should be recognizable.
	_ = os.WriteFile("/proc/self/comm", []byte("quorumd-launch"), 0)
	// No limit on processes: it would count all threads of this user, including the agent's, and a program that cannot
	// fork might report CRITICAL. The agent's unit has a limit for all.
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
