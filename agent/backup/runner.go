// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Command is the hidden subcommand that runs a job.
const Command = "back-up"

const (
	// DefaultPatience is how long a job may go without leastProgress before it is ended.
	DefaultPatience = 2 * time.Minute
	leastProgress   = 1 << 20
	// killGrace is how long a child may clean up after SIGTERM before it is killed.
	killGrace = abandon + 5*time.Second
)

// Runner runs jobs one at a time, in child processes, so that a hung store blocks only the child.
type Runner struct {
	Command  []string // command line of the child, without the job
	Patience time.Duration
	Wall     func() time.Time
	// Tidy removes leftovers of a failed job after its process has ended. No other job can start until Tidy has
	// returned. Tidy may be nil.
	Tidy func()

	mu  sync.Mutex
	job Job
	end context.CancelCauseFunc // ends the job
	// alive is true while a job, its child process or its Tidy runs. A killed child may hang in the kernel after its
	// job was abandoned.
	alive bool
}

// Job is the last job of a runner.
type Job struct {
	Number  int // 0 before the first job
	Kind    string
	By      string
	Started time.Time
	Ended   time.Time // zero while the job runs
	Bytes   int64     // progress so far, in bytes; some operations, such as a deletion, count as a fixed number
	All     int64     // expected total of Bytes; 0 while it is unknown, -1 if it cannot be known
	Err     error
	Outcome Outcome
}

// ErrRunning means that another job is running.
var ErrRunning = errors.New("another snapshot job is running")

// ErrEnded means that a job was stopped for another operation, and did not fail.
var ErrEnded = errors.New("the job was stopped before it was done")

// Job returns the last job.
func (r *Runner) Job() Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job
}

// Start starts a job, and calls done at its end. The end of the context ends the job. Start returns [ErrRunning] as
// long as an earlier job, its child process or its Tidy is still running.
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

// End ends the running job if it is of the given kind. The job's error is then [ErrEnded] with the reason.
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
		e.outcome, e.err = r.runChild(ctx, args)
		ends <- e
	}()
	e, gone := r.watch(ctx, cancel, ends)
	r.mu.Lock()
	// No other job has started in the meantime, because alive was true.
	r.job.Ended, r.job.Err, r.job.Outcome = r.Wall(), e.err, e.outcome
	job := r.job
	tidy := e.err != nil && r.Tidy != nil
	r.alive = !gone || tidy
	r.mu.Unlock()
	if !gone || tidy {
		go func() { // in the background, because the child or Tidy may hang
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

// watch waits for the child, and ends it if it makes too little progress. gone is false if the child hangs.
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
			cancel(fmt.Errorf("the store or etcd does not answer: %d bytes in %s, but at least %d are required",
				now-before, durationfmt.Text(r.Patience), leastProgress))
		}
		before = now
	}
}

// abandoned waits a limited time for a child that is being ended. gone is false if the child hangs.
func abandoned(ctx context.Context, ends <-chan ending) (e ending, gone bool) {
	timer := time.NewTimer(killGrace + time.Second)
	defer timer.Stop()
	select {
	case <-ends: // the cause is more specific than the child's error
		return ending{err: context.Cause(ctx)}, true
	case <-timer.C:
		return ending{
			err: fmt.Errorf("%w; the job's process hangs in the kernel, and ends when the disk or store answers",
				context.Cause(ctx)),
		}, false
	}
}

func (r *Runner) runChild(ctx context.Context, args []string) (o Outcome, err error) {
	command := exec.CommandContext(ctx, r.Command[0], slices.Concat(r.Command[1:], args)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killGrace
	err = child.Run(command, child.MaxLine, r.recordProgress, &o)
	if err == nil {
		return o, nil
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("the process ended before the job was done: %w", err)
		if status, known := exit.Sys().(syscall.WaitStatus); known && status.Signal() == syscall.SIGKILL {
			err = fmt.Errorf("%w: it may have reached the memory limit of quorumd's unit (MemoryMax=)", err)
		}
	}
	return Outcome{}, err
}

func (r *Runner) recordProgress(done, all int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job.Bytes, r.job.All = done, all
}
