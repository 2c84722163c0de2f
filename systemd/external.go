// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// programRetry is how long to wait before running a failed program again.
const programRetry = 10 * time.Second

// Programs start and stop an external service. Their methods never wait for a program.
type Programs interface {
	// Ready returns why the programs cannot be run; nil if they can.
	Ready() error
	// Run starts the program of that name: "start" or "stop".
	Run(ctx context.Context, word string) error
	// Last returns the last run of a program.
	Last() (ProgramRun, error)
}

// ProgramRun is a run of the start program or of the stop program.
type ProgramRun struct {
	Word    string        // "start" or "stop"; empty if no program was run since the boot
	At      time.Duration // when the run started, since boot, including time in suspend
	Running bool
	Failed  string // why the run has failed; empty if it has not failed
}

// ExternalOptions describe an external service.
type ExternalOptions struct {
	Name      string   // for display
	Addresses []string // addresses on which the service listens while it runs: HOST:PORT
	Programs  Programs
	// Settle is how long after the start of a program the service may take to open or close its ports. While the
	// program is still running, there is no limit.
	Settle          time.Duration
	EnvironmentFile string
	// Orders lets root write the environment file. If it is nil, this process writes the file.
	Orders interface {
		SetEnvironment(ctx context.Context, vars map[string]string) error
	}
}

// External is a service that another program runs, such as a kubelet or a container engine. Its ports show its state:
// Active if any process listens on one of them, Inactive if all refuse connections, and Unknown otherwise. It is Failed
// if the start program has failed, or if no port was opened in time after a start.
//
// Start and Stop run the operator's Programs, and return an error if these are not available. Safe for concurrent use.
type External struct {
	o ExternalOptions

	mu      sync.Mutex
	state   State         // state at the last check; Unknown before the first
	since   time.Duration // when the service entered state, since boot; 0 if the change was not observed
	seenUp  time.Duration // when the service was last observed running, since boot
	created time.Duration // since boot
}

// NewExternal creates an External. It checks nothing yet.
func NewExternal(o ExternalOptions) (*External, error) {
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return nil, err
	}
	return &External{o: o, created: now}, nil
}

// Status checks the ports, and the last run of a program.
func (e *External) Status(ctx context.Context) (Status, error) {
	st := Status{ExitCode: -1, LoadState: "loaded"}
	up, err := listens(ctx, e.o.Addresses)
	now, clockErr := clock(unix.CLOCK_BOOTTIME)
	if err = errors.Join(err, clockErr); err != nil {
		return st, fmt.Errorf("cannot check whether %s runs: %w: %w", e.o.Name, ErrUnavailable, err)
	}
	var last ProgramRun
	if st.ByPrograms = e.o.Programs.Ready() == nil; st.ByPrograms {
		if last, err = e.o.Programs.Last(); err != nil {
			return st, fmt.Errorf("cannot read the last run of a program for %s: %w: %w", e.o.Name, ErrUnavailable, err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.judge(&st, up, last, now)
	if was := e.state; was != st.State {
		if e.state, e.since = st.State, 0; was != Unknown {
			e.since = now
		}
	}
	if e.since != 0 {
		st.Since = max(now-e.since, 1) // 0 means unknown
	}
	return st, nil
}

// judge derives the status from the state of the ports and the last run of a program.
func (e *External) judge(st *Status, up bool, last ProgramRun, now time.Duration) {
	st.State, st.Result = Inactive, "success"
	if up {
		st.State, e.seenUp = Active, now
	}
	open := last.Running || last.Failed == "" && now-last.At < e.o.Settle
	switch {
	case last.Word == "stop" && up && open:
		st.Job = "stop"
	case last.Word == "stop" && up && last.Failed != "":
		st.LastJob = "failed"
	case last.Word != "start" || up || e.seenUp >= last.At:
	case open:
		st.Job = "start"
	case last.Failed != "":
		st.State, st.LastJob, st.Result = Failed, "failed", "the start program has failed: "+last.Failed
	case e.created <= last.At: // otherwise the service may have run and stopped before this agent started
		st.State, st.LastJob = Failed, "timeout"
		st.Result = fmt.Sprintf("it has not opened its ports within %s of its start", e.o.Settle)
	}
}

// Start runs the operator's program that starts the service. While that program runs, Start does nothing.
func (e *External) Start(ctx context.Context) error { return e.run(ctx, "start") }

// Stop runs the operator's program that stops the service. While that program runs or the service is still stopping,
// Stop does nothing.
func (e *External) Stop(ctx context.Context) error { return e.run(ctx, "stop") }

// Restart only stops the service. The caller starts the service when it is down.
func (e *External) Restart(ctx context.Context) error { return e.Stop(ctx) }

func (e *External) run(ctx context.Context, word string) error {
	cannot := "cannot " + word + " " + e.o.Name + ": "
	if err := e.o.Programs.Ready(); err != nil {
		return fmt.Errorf(cannot+"it is an external service, and its programs are not available: %w: %w",
			ErrNotPermitted, err)
	}
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	last, err := e.o.Programs.Last()
	again := last.Word == word && last.Failed != "" && now-last.At < programRetry
	stopping := word == "stop" && last.Word == word && last.Failed == "" && now-last.At < e.o.Settle
	switch {
	case err != nil:
		return fmt.Errorf(cannot+"%w", err)
	case last.Running && last.Word == word, stopping && e.seenBefore(last.At):
		return nil
	case last.Running:
		return fmt.Errorf(cannot+"%w: the %s program is still running", ErrUnavailable, last.Word)
	case again:
		return fmt.Errorf(cannot+"its program failed and will run again in %s: %s",
			(programRetry - now + last.At).Round(time.Second), last.Failed)
	}
	if err := e.o.Programs.Run(ctx, word); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	return nil
}

// seenBefore reports whether the service, as far as observed, has been running without interruption since the given
// time or earlier.
func (e *External) seenBefore(at time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == Active && (e.since == 0 || e.since <= at)
}

// SetEnvironment writes the variables that a member needs at its first start, for the start program to read.
func (e *External) SetEnvironment(ctx context.Context, vars map[string]string) error {
	if e.o.Orders != nil {
		return e.o.Orders.SetEnvironment(ctx, vars)
	}
	if err := writeEnvironment(e.o.EnvironmentFile, vars); err != nil {
		return explainFile("set the environment of "+e.o.Name, err)
	}
	return nil
}

// Close does nothing, because there is nothing to release.
func (e *External) Close() error { return nil }
