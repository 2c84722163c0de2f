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

	mu  sync.Mutex
	job Job
	// alive is the child, which may hang after it was killed
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
	Err     error
	Outcome Outcome
}

// ErrRunning means that there is a job already.
var ErrRunning = errors.New("another job with snapshots is running")

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
	go r.run(ctx, append([]string{kind}, args...), done)
	return r.job, nil
}

func (r *Runner) run(ctx context.Context, args []string, done func(Job)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	told := make(chan error, 1)
	var outcome Outcome
	go func() {
		err := r.child(ctx, args, &outcome)
		r.mu.Lock()
		r.alive = false
		r.mu.Unlock()
		told <- err
	}()
	err := r.watch(ctx, cancel, told)
	r.mu.Lock()
	r.job.Ended, r.job.Err = r.Wall(), err
	if err == nil {
		r.job.Outcome = outcome
	}
	job := r.job
	r.mu.Unlock()
	if done != nil {
		done(job)
	}
}

// watch waits for the end of the child, and ends one that makes no progress.
func (r *Runner) watch(ctx context.Context, cancel context.CancelCauseFunc, told <-chan error) error {
	ticker := time.NewTicker(r.Patience)
	defer ticker.Stop()
	for before := int64(0); ; {
		select {
		case err := <-told:
			return err
		case <-ctx.Done():
			return abandoned(ctx, told)
		case <-ticker.C:
		}
		now := r.Job().Bytes
		if now-before < leastProgress {
			cancel(fmt.Errorf("the store or etcd does not answer: %d bytes in %s, and %d are the least", now-before,
				r.Patience, leastProgress))
		}
		before = now
	}
}

// abandoned waits a moment for a child that was killed, to know whether it hangs.
func abandoned(ctx context.Context, told <-chan error) error {
	timer := time.NewTimer(letGo + time.Second)
	defer timer.Stop()
	select {
	case <-told: //nolint:errcheck // that it was ended says more
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%w; process and job end when the kernel lets go of them", context.Cause(ctx))
	}
}

func (r *Runner) child(ctx context.Context, args []string, outcome *Outcome) error {
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
		return errors.New(last.Error)
	case last.Outcome != nil:
		*outcome = *last.Outcome
		return nil
	case stderr.Len() > 0:
		return errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	}
	return fmt.Errorf("the process ended before it was done: %w", err)
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
		r.job.Bytes = said.Bytes
		r.mu.Unlock()
	}
	from.CloseWithError(io.ErrClosedPipe) // what cannot be read is not waited for
	return last
}
