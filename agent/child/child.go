// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package child runs functions of this program in child processes. A disk, a file server or a damaged file then blocks
// or crashes only the child. The child reports on its standard output, one JSON document per line: its progress every
// second, and its result or its error last. If a child ends without either, the text on its standard error explains
// why.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

const (
	reportInterval = time.Second
	// MaxLine is the limit of a line for trusted children, in bytes. The list of a snapshot store may have several
	// thousand entries.
	MaxLine      = 16 << 20
	maxErrorText = 64 << 10 // maximum bytes kept of the standard error
	// outputWait is how long to wait for the output of a killed child. Without this limit, the parent would wait for a
	// child that hangs in the kernel until the disk answers.
	outputWait = 500 * time.Millisecond
	crashed    = 2 // exit code of the Go runtime after a panic or a fatal error
)

// line is one line of a child's output: its progress, its result or its error.
type line struct {
	Done   int64           `json:"done"`          // bytes processed so far
	All    int64           `json:"all,omitempty"` // expected final Done; 0 while unknown, -1 if unknowable
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Progress counts the bytes that a child has processed. A nil Progress counts nothing.
type Progress struct{ done, all atomic.Int64 }

// Add counts n bytes as done.
func (p *Progress) Add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// Expect sets the total to n bytes more than are done; a negative n means that the total cannot be known.
func (p *Progress) Expect(n int64) {
	switch {
	case p == nil:
	case n < 0:
		p.all.Store(-1)
	default:
		p.all.Store(p.done.Load() + n)
	}
}

// Now returns the bytes done and the total.
func (p *Progress) Now() (done, all int64) { return p.done.Load(), p.all.Load() }

func (p *Progress) line() line {
	done, all := p.Now()
	return line{Done: done, All: all}
}

// Main calls do in the child, and writes progress and result to stdout. It ends do's context when the parent no longer
// reads them. It also returns do's error.
func Main[T any](ctx context.Context, stdout io.Writer, do func(context.Context, *Progress) (T, error)) error {
	signal.Ignore(syscall.SIGPIPE) // a write after the parent has ended must not kill do, which completes or cleans up
	progress, lines := &Progress{}, json.NewEncoder(stdout)
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(reportInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if lines.Encode(progress.line()) != nil {
				cancel()
			}
		}
	})
	result, err := do(ctx, progress)
	cancel()
	reporting.Wait() // the result must be the last line
	last := progress.line()
	if err == nil {
		last.Result, err = json.Marshal(result)
	}
	if err != nil {
		last.Error = err.Error()
	}
	return errors.Join(err, lines.Encode(last))
}

// Run starts a prepared command whose process calls [Main], waits for its end, and decodes the result into result. It
// calls progress, which may be nil, with every report. The command's context limits the time. The error contains the
// error that the child reported, or the text on its standard error, without control characters. After a crash or a
// signal, the error wraps an [exec.ExitError]. limit is the maximum length of a line of the child's output, in bytes.
func Run(command *exec.Cmd, limit int, progress func(done, all int64), result any) error {
	out, text := &output{limit: limit, progress: progress}, &errorText{}
	out.kill = func() { _ = command.Process.Kill() } // the child may have ended already
	command.Stdout, command.Stderr = out, text
	if command.WaitDelay == 0 {
		command.WaitDelay = outputWait
	}
	err := command.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case out.err != nil:
		return out.err
	case out.last.Error != "":
		return errors.New(printable(out.last.Error))
	case failed && text.String() == "":
		return err
	case failed && (!exit.Exited() || exit.ExitCode() == crashed): // the first line of a long report suffices
		first, _, _ := bytes.Cut(text.bytes, []byte("\n"))
		return fmt.Errorf("%w: %s", err, printable(string(first)))
	case failed:
		return errors.New(text.String())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // ErrWaitDelay means only that a pipe stayed open
		return err
	case len(out.line) > 0:
		return errors.New("the child's output is incomplete: its last line is cut off")
	case out.last.Result == nil:
		return errors.New("the child ended without a result")
	}
	if err := json.Unmarshal(out.last.Result, result); err != nil {
		return fmt.Errorf("the child's result is damaged: %w", err)
	}
	return nil
}

// output receives a child's output: it passes on the progress, and keeps the result.
type output struct {
	limit    int // maximum bytes of a line
	progress func(done, all int64)
	kill     func()
	line     []byte // an incomplete line
	last     line
	err      error // why the output was rejected
}

func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		if len(o.line)+len(part) > o.limit {
			o.err = fmt.Errorf("a line of the child's output is longer than %d bytes", o.limit)
		} else if o.line = append(o.line, part...); ended {
			o.err = o.handleLine()
		}
		if o.err != nil {
			o.kill()
			return 0, o.err
		}
		rest = after
	}
	return len(p), nil
}

func (o *output) handleLine() error {
	var l line
	if err := json.Unmarshal(o.line, &l); err != nil {
		return fmt.Errorf("the child's output is damaged: %w", err)
	}
	if o.last.Result != nil || o.last.Error != "" {
		return errors.New("the child's output is damaged: it continues after the result")
	}
	if o.progress != nil {
		o.progress(l.Done, l.All)
	}
	o.last, o.line = l, o.line[:0]
	return nil
}

// errorText keeps the beginning of what is written to it, and discards the rest.
type errorText struct{ bytes []byte }

func (e *errorText) Write(p []byte) (int, error) {
	e.bytes = append(e.bytes, p[:min(len(p), maxErrorText-len(e.bytes))]...)
	return len(p), nil
}

func (e *errorText) String() string { return printable(string(bytes.TrimSpace(e.bytes))) }

// printable drops characters that are not printable, except line ends. A child may run as a different user, and its
// text reaches terminals.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}
