// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Command is the hidden subcommand that runs a job.
const Command = "back-up"

const (
	// DefaultPatience is how long a job may go without leastProgress before it is ended.
	DefaultPatience = 2 * time.Minute
	leastProgress   = 1 << 20
	// maxLine limits a report of the child: it may list some thousand snapshots.
	maxLine = 16 << 20
	// killGrace is how long a child may clean up after SIGTERM before it is killed.
	killGrace = abandon + 5*time.Second
)

// Runner runs jobs in child processes, one at a time: a hung store blocks only the child.
type Runner struct {
	Command  []string // command line of the child, without the job
	Patience time.Duration
	Wall     func() time.Time
	// Tidy removes leftovers of a failed job after its process has ended. The next job waits for it. It may be nil.
	Tidy func()

	mu  sync.Mutex
	job Job
	end context.CancelCauseFunc // ends the job
	// alive reports whether a child exists. It may hang after it was killed and its job abandoned.
	alive bool
}

// Job is the last job of a runner.
type Job struct {
	Number  int // 0 before the first job
	Kind    string
	By      string
	Started time.Time
	Ended   time.Time // zero while it runs
	Bytes   int64     // read and written so far
	All     int64     // total, as far as known; 0 while it is unknown, -1 if it cannot be known
	Err     error
	Outcome Outcome
}

// ErrRunning means that another job is running.
var ErrRunning = errors.New("another snapshot job is running")

// ErrEnded means that a job was stopped for another operation, and did not fail.
var ErrEnded = errors.New("it was stopped before it was done")

// Job returns the last job.
func (r *Runner) Job() Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job
}

// Start starts a job, unless one is running, and calls done at its end. The end of the context ends the job.
func (r *Runner) Start(ctx context.Context, kind, by string, args []string, done func(Job)) (Job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.alive {
		return r.job, ErrRunning
	}
	r.alive = true
	r.job = Job{Number: r.job.Number + 1, Kind: kind, By: by, Started: r.Wall()}
	ctx, r.end = context.WithCancelCause(ctx)
	go r.run(ctx, r.end, append([]string{kind}, args...), done)
	return r.job, nil
}

// End ends the running job if it is of that kind. The job's error is then [ErrEnded] with the reason.
func (r *Runner) End(kind, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.job.Kind == kind && r.job.Ended.IsZero() && r.end != nil {
		r.end(fmt.Errorf("%w: %s", ErrEnded, why))
	}
}

func (r *Runner) run(ctx context.Context, cancel context.CancelCauseFunc, args []string, done func(Job)) {
	defer cancel(nil)
	ends := make(chan ending, 1)
	go func() {
		var e ending
		e.outcome, e.err = r.child(ctx, args)
		ends <- e
	}()
	e, gone := r.watch(ctx, cancel, ends)
	r.mu.Lock()
	// No other job has started meanwhile, as alive was true.
	r.job.Ended, r.job.Err, r.job.Outcome = r.Wall(), e.err, e.outcome
	job := r.job
	tidy := e.err != nil && r.Tidy != nil
	r.alive = !gone || tidy
	r.mu.Unlock()
	if !gone || tidy {
		go func() { // the disk may hang, too
			if !gone {
				<-ends
			}
			if tidy {
				r.Tidy()
			}
			r.mu.Lock()
			r.alive = false
			r.mu.Unlock()
		}()
	}
	if done != nil {
		done(job)
	}
}

// ending is the result of a child.
type ending struct {
	outcome Outcome // empty after an error
	err     error
}

// watch waits for the child, and ends one that makes no progress. gone is false if the child hangs.
func (r *Runner) watch(ctx context.Context, cancel context.CancelCauseFunc, ends <-chan ending) (e ending, gone bool) {
	ticker := time.NewTicker(r.Patience)
	defer ticker.Stop()
	for before := int64(0); ; {
		select {
		case e := <-ends:
			if e.err != nil && ctx.Err() != nil {
				e.err = context.Cause(ctx) // more specific
			}
			return e, true
		case <-ctx.Done():
			return abandoned(ctx, ends)
		case <-ticker.C:
		}
		now := r.Job().Bytes
		if now-before < leastProgress {
			cancel(fmt.Errorf("the store or etcd does not answer: %d bytes in %s, and %d are the least", now-before,
				durationfmt.Text(r.Patience), leastProgress))
		}
		before = now
	}
}

// abandoned waits for a killed child for a short time, and reports whether it hangs.
func abandoned(ctx context.Context, ends <-chan ending) (e ending, gone bool) {
	timer := time.NewTimer(killGrace + time.Second)
	defer timer.Stop()
	select {
	case <-ends: // the cause is more specific than the child's error
		return ending{err: context.Cause(ctx)}, true
	case <-timer.C:
		return ending{err: fmt.Errorf("%w; process and job end when the kernel lets go of them", context.Cause(ctx))},
			false
	}
}

func (r *Runner) child(ctx context.Context, args []string) (Outcome, error) {
	command := exec.CommandContext(ctx, r.Command[0], append(append([]string{}, r.Command[1:]...), args...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killGrace
	var stderr bytes.Buffer
	command.Stderr = &stderr
	reader, writer := io.Pipe()
	command.Stdout = writer
	read := make(chan report, 1)
	go func() { read <- r.follow(reader) }()
	err := command.Run()
	_ = writer.Close() // never fails
	last := <-read
	switch {
	case last.Error != "":
		return Outcome{}, errors.New(last.Error)
	case last.Outcome != nil:
		return *last.Outcome, nil
	case stderr.Len() > 0:
		return Outcome{}, errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	case wasKilled(err):
		return Outcome{}, fmt.Errorf("the process ended before it was done: %w: it may have met the memory limit of "+
			"quorumd's unit (MemoryMax=)", err)
	}
	return Outcome{}, fmt.Errorf("the process ended before it was done: %w", err)
}

// wasKilled reports whether the child was killed by a signal. A child that ends after SIGTERM reports its own error.
func wasKilled(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, known := exit.Sys().(syscall.WaitStatus)
	return known && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// follow records the child's progress and returns its last report.
func (r *Runner) follow(from *io.PipeReader) (last report) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var said report
		if json.Unmarshal(lines.Bytes(), &said) != nil {
			continue
		}
		last = said
		r.mu.Lock()
		r.job.Bytes, r.job.All = said.Bytes, said.All
		r.mu.Unlock()
	}
	from.CloseWithError(io.ErrClosedPipe) // stop reading after an unreadable line
	return last
}
