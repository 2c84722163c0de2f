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

// Command is the hidden command that does a job.
const Command = "back-up"

const (
	// DefaultPatience and leastProgress: a job that does less in that time is ended.
	DefaultPatience = 2 * time.Minute
	leastProgress   = 1 << 20
	// maxLine bounds what a child tells: a list of some thousand snapshots.
	maxLine = 16 << 20
	// letGo is how long a child that is to end may take to take back what it was at. Then it is killed.
	letGo = abandon + 5*time.Second
)

// Runner runs jobs in child processes, one at a time: a store that hangs holds up nothing but the child.
type Runner struct {
	Command  []string // runs this program, up to its hidden command and the configuration
	Patience time.Duration
	Wall     func() time.Time
	// Tidy takes away what a job may have left that has failed, once its process is gone; the next job waits for it. It
	// may be nil.
	Tidy func()

	mu  sync.Mutex
	job Job
	end context.CancelCauseFunc // of the job
	// alive is the child, which may hang after it was killed and its job was given up
	alive bool
}

// Job is what was asked of a runner last.
type Job struct {
	Number  int // 0 for none yet
	Kind    string
	By      string
	Started time.Time
	Ended   time.Time // zero while it runs
	Bytes   int64     // that were done so far, of reading and of writing
	All     int64     // that are to be done, as far as is known; 0 while it is not, -1 when nobody can know
	Err     error
	Outcome Outcome
}

// ErrRunning means that there is a job already.
var ErrRunning = errors.New("another snapshot job is running")

// ErrEnded means that a job was ended for the sake of something else: it has not failed.
var ErrEnded = errors.New("it was stopped before it was done")

// Job gives the last one.
func (r *Runner) Job() Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job
}

// Start begins a job, unless one is running, and tells done of its end. The context ends it.
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

// End ends the job if it is of that kind and runs, and says why. The error of the job is [ErrEnded] then.
func (r *Runner) End(kind, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.job.Kind == kind && r.job.Ended.IsZero() && r.end != nil {
		r.end(fmt.Errorf("%w: %s", ErrEnded, why))
	}
}

func (r *Runner) run(ctx context.Context, cancel context.CancelCauseFunc, args []string, done func(Job)) {
	defer cancel(nil)
	told := make(chan ending, 1)
	go func() {
		var e ending
		e.outcome, e.err = r.child(ctx, args)
		told <- e
	}()
	e, gone := r.watch(ctx, cancel, told)
	r.mu.Lock()
	// Nobody can have started another: the child is alive until here.
	r.job.Ended, r.job.Err, r.job.Outcome = r.Wall(), e.err, e.outcome
	job := r.job
	tidy := e.err != nil && r.Tidy != nil
	r.alive = !gone || tidy
	r.mu.Unlock()
	if !gone || tidy {
		go func() { // the disk may hang, too
			if !gone {
				<-told
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

// ending is how a child has ended.
type ending struct {
	outcome Outcome // none after an error
	err     error
}

// watch waits for the end of the child, and ends one that makes no progress. One that hangs is not gone.
func (r *Runner) watch(ctx context.Context, cancel context.CancelCauseFunc, told <-chan ending) (e ending, gone bool) {
	ticker := time.NewTicker(r.Patience)
	defer ticker.Stop()
	for before := int64(0); ; {
		select {
		case e := <-told:
			if e.err != nil && ctx.Err() != nil {
				e.err = context.Cause(ctx) // it says more
			}
			return e, true
		case <-ctx.Done():
			return abandoned(ctx, told)
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

// abandoned waits a moment for a child that was killed, to know whether it hangs.
func abandoned(ctx context.Context, told <-chan ending) (e ending, gone bool) {
	timer := time.NewTimer(letGo + time.Second)
	defer timer.Stop()
	select {
	case <-told: // that it was ended says more
		return ending{err: context.Cause(ctx)}, true
	case <-timer.C:
		return ending{err: fmt.Errorf("%w; process and job end when the kernel lets go of them", context.Cause(ctx))},
			false
	}
}

func (r *Runner) child(ctx context.Context, args []string) (Outcome, error) {
	command := exec.CommandContext(ctx, r.Command[0], append(append([]string{}, r.Command[1:]...), args...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = letGo
	var stderr bytes.Buffer
	command.Stderr = &stderr
	reader, writer := io.Pipe()
	command.Stdout = writer
	read := make(chan report, 1)
	go func() { read <- r.follow(reader) }()
	err := command.Run()
	_ = writer.Close() // it never fails
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

// wasKilled tells whether the kernel, or somebody, has killed it. A child that was told to end gets its own error.
func wasKilled(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, known := exit.Sys().(syscall.WaitStatus)
	return known && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// follow notes how far the child is and gives the last that it says.
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
	from.CloseWithError(io.ErrClosedPipe) // what cannot be read is not waited for
	return last
}
