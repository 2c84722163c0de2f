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

// patience is how long a started run may take to begin.
const patience = 15 * time.Second

// Launch records what to run, starts Main, and does not wait for it. Launching twice must do no harm.
type Launch func(ctx context.Context, run Run) error

// Runner is the agent's side. Its methods may be called concurrently and wait for no program.
type Runner struct {
	dir, outcomes string
	launch        Launch

	mu       sync.Mutex
	launched string // ID of the last launched run
	since    time.Time
}

// NewRunner returns a Runner for the programs in dir/before.d and dir/after.d. outcomes is the directory in which Main
// reports the state. A reboot should clear it.
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
	if waited := r.waited(run.ID); waited > patience {
		return fmt.Errorf(cannot+
			"they were started and have not begun after %s: look for the reason with \"journalctl -u 'quorumd*'\"",
			durationfmt.Seconds(waited))
	}
	return nil
}

// waited returns how long a run has been waiting to begin.
func (r *Runner) waited(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launched != id {
		r.launched, r.since = id, time.Now()
	}
	return time.Since(r.since)
}

// State returns the state of a run. A run without programs is Done without a start, and a command that cannot run is
// Failed.
func (r *Runner) State(_ context.Context, run Run) (Result, error) {
	if _, named := namedDirs()[run.When]; named {
		now, err := r.outcomeOf(run)
		if err != nil || now.State != None {
			return now, err
		}
		return couldRun(r.find(run.When, run.Program), run), nil
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

// couldRun returns the state of a command that has not begun: if it cannot run, it has failed already.
func couldRun(why error, run Run) Result {
	if why != nil {
		return Result{State: Failed, Hook: run.Program, Text: why.Error()}
	}
	return Result{State: None}
}

// outcomeOf returns the reported state of a run; None if there is no report of it.
func (r *Runner) outcomeOf(run Run) (Result, error) {
	o, running, err := r.look(run)
	if err == nil && o.State == Running && !running { // it may have begun or ended between the two reads
		o, running, err = r.look(run)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Result{State: None}, nil
	case errors.Is(err, os.ErrPermission):
		return Result{}, fmt.Errorf("cannot see how the hooks go: %w; make it readable for quorumd", err)
	case err != nil:
		return Result{}, fmt.Errorf("cannot see how the hooks go: %w", err)
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

// look first checks whether hooks are running, and then reads the report: a run that ends in between has reported its
// outcome.
func (r *Runner) look(run Run) (o outcome, running bool, err error) {
	if running, err = locked(r.outcomes, run.When); err == nil {
		err = read(outcomePath(r.outcomes, run.When), &o)
	}
	return o, running, err
}
