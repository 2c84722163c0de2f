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

// patience is how long a line of hooks that was started may take to begin.
const patience = 15 * time.Second

// Launch notes what is to be run, has Main run it, and does not wait for it. Launching twice must do no harm.
type Launch func(ctx context.Context, run Run) error

// Runner is the agent's side. Its methods are safe for use by several goroutines and wait for no program.
type Runner struct {
	dir, outcomes string
	launch        Launch

	mu       sync.Mutex
	launched string // ID of what was launched last
	since    time.Time
}

// NewRunner makes a Runner for the programs in dir/before.d and dir/after.d. outcomes is the directory in which Main
// tells how it goes. A reboot should clear it.
func NewRunner(dir, outcomes string, launch Launch) *Runner {
	return &Runner{dir: dir, outcomes: outcomes, launch: launch}
}

// Start has a run begin, unless it has begun already. It returns within a few seconds; an error says that it could not
// be started, or that nothing came of that, and it may be called again.
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

// waited tells for how long a run has been started in vain.
func (r *Runner) waited(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launched != id {
		r.launched, r.since = id, time.Now()
	}
	return time.Since(r.since)
}

// State tells how a run goes. A run without programs is Done without having been started, and a command that could not
// be run is Failed.
func (r *Runner) State(_ context.Context, run Run) (Result, error) {
	if _, named := namedDirs()[run.When]; named {
		now, err := r.told(run)
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
	return r.told(run)
}

// couldRun is how a command is that has not begun: none that is to be had has failed already.
func couldRun(why error, run Run) Result {
	if why != nil {
		return Result{State: Failed, Hook: run.Program, Text: why.Error()}
	}
	return Result{State: None}
}

// told gives what the running side has told of a run: None when that is nothing.
func (r *Runner) told(run Run) (Result, error) {
	o, running, err := r.look(run)
	if err == nil && o.State == Running && !running { // it may have begun, or ended, between the two looks
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

// look looks first whether somebody runs hooks, and then at what is told of them: what has ended between the two has
// told how.
func (r *Runner) look(run Run) (o outcome, running bool, err error) {
	if running, err = locked(r.outcomes, run.When); err == nil {
		err = read(outcomePath(r.outcomes, run.When), &o)
	}
	return o, running, err
}
