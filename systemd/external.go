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

// programRetry is how long after a program that has failed it is not run again.
const programRetry = 10 * time.Second

// Programs start and stop a service that others run. Its methods never wait for a program.
type Programs interface {
	// Ready tells why they cannot be run; nil when they can.
	Ready() error
	// Run has the one of that name run: "start" or "stop".
	Run(ctx context.Context, word string) error
	// Last gives what was run last, and how it goes.
	Last() (ProgramRun, error)
}

// ProgramRun is a run of one of the Programs.
type ProgramRun struct {
	Word    string        // "start", "stop", or empty when none was run since the boot
	At      time.Duration // since boot, with the time asleep
	Running bool
	Failed  string // why it has failed; empty when it has not
}

// ExternalOptions say how a service is seen that others run.
type ExternalOptions struct {
	Name      string   // for people
	Addresses []string // where it listens while it runs: HOST:PORT
	Programs  Programs
	// Settle is how long after a program the service may take to open its ports, or to close them.
	Settle          time.Duration
	EnvironmentFile string
	// Orders has root write it; nil: this process does.
	Orders interface {
		SetEnvironment(ctx context.Context, vars map[string]string) error
	}
}

// External is a service that others run: a kubelet, a container engine, anything. It is seen from its ports: Active
// when somebody listens on one of them, Inactive when all refuse, and Unknown otherwise. Nobody can tell how it ended.
//
// Start and Stop have the operator's Programs do it; where there are none, they say so. Safe for use by several
// goroutines.
type External struct {
	o ExternalOptions

	mu     sync.Mutex
	state  State         // when it was last looked at; Unknown before
	since  time.Duration // of that state, since boot; 0 when the change was not seen
	seenUp time.Duration // when it was last seen to run, since boot
	born   time.Duration
}

// NewExternal makes an External. It asks nothing yet.
func NewExternal(o ExternalOptions) (*External, error) {
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return nil, err
	}
	return &External{o: o, born: now}, nil
}

// Status looks at the ports, and at the program that was run last.
func (e *External) Status(ctx context.Context) (Status, error) {
	st := Status{ExitCode: -1, LoadState: "loaded"}
	up, err := listens(ctx, e.o.Addresses)
	now, clockErr := clock(unix.CLOCK_BOOTTIME)
	if err = errors.Join(err, clockErr); err != nil {
		return st, fmt.Errorf("cannot tell whether %s runs: %w: %w", e.o.Name, ErrUnavailable, err)
	}
	var last ProgramRun
	if st.ByPrograms = e.o.Programs.Ready() == nil; st.ByPrograms {
		if last, err = e.o.Programs.Last(); err != nil {
			return st, fmt.Errorf("cannot tell how %s is: %w: %w", e.o.Name, ErrUnavailable, err)
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
		st.Since = max(now-e.since, 1) // 0 says that it is not known
	}
	return st, nil
}

// judge puts what the ports say together with what the programs were told.
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
		st.State, st.LastJob, st.Result = Failed, "failed", "the program start has failed: "+last.Failed
	case e.born <= last.At: // else it may have run, and been stopped by somebody, before there was anybody to see
		st.State, st.LastJob = Failed, "timeout"
		st.Result = fmt.Sprintf("it has not opened its ports within %s of its start", e.o.Settle)
	}
}

// Start has the operator's program start the service. Where it is being started already, nothing is done.
func (e *External) Start(ctx context.Context) error { return e.run(ctx, "start") }

// Stop has the operator's program stop the service. Where it is being stopped already, nothing is done.
func (e *External) Stop(ctx context.Context) error { return e.run(ctx, "stop") }

// Restart has the service stopped. Whoever wants it to run starts it when it is down.
func (e *External) Restart(ctx context.Context) error { return e.Stop(ctx) }

func (e *External) run(ctx context.Context, word string) error {
	cannot := "cannot " + word + " " + e.o.Name + ": "
	if err := e.o.Programs.Ready(); err != nil {
		return fmt.Errorf(cannot+"others run it, and the programs that would do it are not to be had: %w: %w",
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
		return fmt.Errorf(cannot+"%w: the program %s still runs", ErrUnavailable, last.Word)
	case again:
		return fmt.Errorf(cannot+"its program has failed, and is run again in %s: %s",
			(programRetry - now + last.At).Round(time.Second), last.Failed)
	}
	if err := e.o.Programs.Run(ctx, word); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	return nil
}

// seenBefore tells whether the service has run without a break since before a moment.
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

// Close does nothing: nothing is held.
func (e *External) Close() error { return nil }
