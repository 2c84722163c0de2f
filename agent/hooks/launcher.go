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

// Launch records a request and starts a process with a Runner. It does not wait for the end of the process. A second
// launch of the same run must have no effect.
type Launch func(ctx context.Context, run Run) error

// Launcher starts and checks runs for the agent. Its methods may be called concurrently and wait for no program.
type Launcher struct {
	dir, outcomes string
	launch        Launch

	mu       sync.Mutex
	launched string // ID of the last launched run
	since    time.Time
}

// NewLauncher returns a Launcher for the programs in the subdirectories of dir. outcomes is the directory in which a
// Runner reports the state. A reboot should clear that directory.
func NewLauncher(dir, outcomes string, launch Launch) *Launcher {
	return &Launcher{dir: dir, outcomes: outcomes, launch: launch}
}

// Start starts a run, unless it has begun already. It returns within a few seconds; an error means that the run could
// not be started or did not begin, and Start may be called again.
func (l *Launcher) Start(ctx context.Context, run Run) error {
	now, err := l.State(ctx, run)
	if err != nil || now.State != None {
		return err
	}
	cannot := "cannot run the hooks of " + run.When + ".d: "
	if _, named := namedDirs()[run.When]; named {
		cannot = "cannot run the command " + run.Program + ": "
	}
	if err := l.launch(ctx, run); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	if waited := l.waited(run.ID); waited > BeginWithin {
		return fmt.Errorf(cannot+
			"the start was requested %s ago, but nothing runs yet: see \"journalctl -u 'quorumd*'\"",
			durationfmt.Seconds(waited))
	}
	return nil
}

// waited returns the time since a run was first launched.
func (l *Launcher) waited(id string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.launched != id {
		l.launched, l.since = id, time.Now()
	}
	return time.Since(l.since)
}

// State returns the state of a run. A run without programs is Done. A command that has not started and cannot run is
// Failed.
func (l *Launcher) State(_ context.Context, run Run) (Result, error) {
	if _, named := namedDirs()[run.When]; named {
		now, err := l.outcomeOf(run)
		if err != nil || now.State != None {
			return now, err
		}
		return notStarted(l.find(run.When, run.Program), run), nil
	}
	programs, err := list(l.dir, run.When, "")
	if err != nil {
		return Result{}, err
	}
	if len(programs) == 0 {
		return Result{State: Done, Text: "there are no hooks"}, nil
	}
	return l.outcomeOf(run)
}

// notStarted returns the state of a command that has not begun. If why is not nil, the command cannot run, and the
// state is Failed.
func notStarted(why error, run Run) Result {
	if why != nil {
		return Result{State: Failed, Hook: run.Program, Text: why.Error()}
	}
	return Result{State: None}
}

// outcomeOf returns the reported state of a run; None if none was reported.
func (l *Launcher) outcomeOf(run Run) (Result, error) {
	o, running, err := l.look(run)
	if err == nil && o.State == Running && !running { // the run may have begun or ended between the two reads
		o, running, err = l.look(run)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Result{State: None}, nil
	case errors.Is(err, os.ErrPermission):
		return Result{}, fmt.Errorf("cannot read the state of the hooks: %w; make that file readable by quorumd", err)
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

// look checks whether a runner holds the lock before it reads the outcome. In the opposite order, a run that ends in
// between would appear to have been killed.
func (l *Launcher) look(run Run) (o outcome, running bool, err error) {
	if running, err = locked(l.outcomes, run.When); err == nil {
		err = read(outcomePath(l.outcomes, run.When), &o)
	}
	return o, running, err
}
