// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Launch records a request and starts a process with an Executor. It does not wait for it. A second launch of the same
// run must have no effect.
type Launch func(ctx context.Context, run Run) error

// Runner starts and checks runs for the agent. Its methods may be called concurrently and wait for no program.
type Runner struct {
	dir, outcomes string
	launch        Launch

	mu       sync.Mutex
	launched string // ID of the last launched run
	since    time.Time
}

// NewRunner returns a Runner for the programs in the subdirectories of dir. outcomes is the directory in which an
// Executor reports the state. A reboot should clear it.
func NewRunner(dir, outcomes string, launch Launch) *Runner {
	return &Runner{dir: dir, outcomes: outcomes, launch: launch}
}

// Start starts a run, unless it has begun already. It returns within a few seconds; an error means that the run could
// not be started or did not begin, and Start may be called again.
func (r *Runner) Start(ctx context.Context, run Run) error {
	now, err := r.State(ctx, run)
	if err != nil || now.State != None {
		return err
	}
	cannot := "cannot run the hooks of " + run.When + ".d: "
	if _, named := namedDirs()[run.When]; named {
		cannot = "cannot run the command " + run.Program + ": "
	}
	if err := r.launch(ctx, run); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	if waited := r.waited(run.ID); waited > BeginWithin {
		return fmt.Errorf(cannot+
			"launched, but not running after %s: look for the reason with \"journalctl -u 'quorumd*'\"",
			durationfmt.Seconds(waited))
	}
	return nil
}

// waited returns the time since a run was first launched.
func (r *Runner) waited(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launched != id {
		r.launched, r.since = id, time.Now()
	}
	return time.Since(r.since)
}

// State returns the state of a run. Before its start, a run without programs is Done, and a command that cannot run is
// Failed.
func (r *Runner) State(_ context.Context, run Run) (Result, error) {
	if _, named := namedDirs()[run.When]; named {
		now, err := r.outcomeOf(run)
		if err != nil || now.State != None {
			return now, err
		}
		return notStarted(r.find(run.When, run.Program), run), nil
	}
	programs, err := list(r.dir, run.When, "")
	if err != nil {
		return Result{}, err
	}
	if len(programs) == 0 {
		return Result{State: Done, Text: "there are no hooks"}, nil
	}
	return r.outcomeOf(run)
}

// notStarted returns the state of a command that has not begun. If it cannot run, it has failed already.
func notStarted(why error, run Run) Result {
	if why != nil {
		return Result{State: Failed, Hook: run.Program, Text: why.Error()}
	}
	return Result{State: None}
}

// outcomeOf returns the reported state of a run; None if none was reported.
func (r *Runner) outcomeOf(run Run) (Result, error) {
	o, running, err := r.look(run)
	if err == nil && o.State == Running && !running { // it may have begun or ended between the two reads
		o, running, err = r.look(run)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Result{State: None}, nil
	case errors.Is(err, os.ErrPermission):
		return Result{}, fmt.Errorf("cannot read the state of the hooks: %w; make it readable for quorumd", err)
	case err != nil:
		return Result{}, fmt.Errorf("cannot read the state of the hooks: %w", err)
	case o.ID != run.ID:
		return Result{State: None}, nil
	case o.State == Running && !running:
		return Result{
			State: Failed, Hook: o.Hook,
			Text: "the program that runs the hooks has ended without a result: it was killed, or the machine was " +
				"rebooted",
		}, nil
	}
	return Result{State: o.State, Hook: o.Hook, Text: o.Text}, nil
}

// look checks whether an executor is running before it reads the outcome. In the opposite order, a run that ends in
// between would seem killed.
func (r *Runner) look(run Run) (o outcome, running bool, err error) {
	if running, err = locked(r.outcomes, run.When); err == nil {
		err = read(outcomePath(r.outcomes, run.When), &o)
	}
	return o, running, err
}
