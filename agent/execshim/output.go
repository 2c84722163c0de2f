// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package execshim

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

const (
	// maxOutput bounds what a program may print: the longest output, etcd's help, is about 20 KiB.
	maxOutput = 256 << 10
	// outputDelay is how long the output may stay open after the program has ended or was killed.
	outputDelay = time.Second
)

// ErrTooLong means that a program prints more than [Output] accepts.
var ErrTooLong = errors.New("its output is too long")

// Output runs a program with an empty environment. It returns the text that the program prints on stdout and stderr,
// and its exit status; -1 after a signal. child is the command line of the agent's own binary that calls [Main]. Output
// may return long after the context has ended.
func Output(ctx context.Context, child []string, args ...string) (out []byte, status int, err error) {
	p := New(ctx, child, args...)
	p.WaitDelay = outputDelay
	p.Env = []string{} // variables of this process may be settings of the program
	var printed output
	p.Stdout, p.Stderr = &printed, &printed
	err = p.Run()
	switch exit, ended := errors.AsType[*exec.ExitError](err); {
	case printed.full:
		return nil, 0, ErrTooLong
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case ended:
		return printed.text, exit.ExitCode(), nil
	}
	return printed.text, 0, err
}

// output keeps the output of a program. If it becomes too long, a write fails, which closes the pipe.
type output struct {
	text []byte
	full bool
}

// Write accepts all of p or nothing.
func (o *output) Write(p []byte) (int, error) {
	if len(o.text)+len(p) > maxOutput {
		o.full = true
		return 0, ErrTooLong
	}
	o.text = append(o.text, p...)
	return len(p), nil
}
