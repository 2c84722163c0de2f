// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// defaultStopTimeout is twice the 15 s that an etcd with open streams may need to end.
	defaultStopTimeout = 30 * time.Second
	// driveEvery is the interval at which a stop or restart in progress is advanced.
	driveEvery = 50 * time.Millisecond
	// jobLimit is how long after the stop deadline a start may still wait for the old process to end. After that, the
	// job ends with "timeout", because the request may be outdated.
	jobLimit = 30 * time.Second
)

// ProcessOptions describe the program that a Process runs, and where it keeps its files.
type ProcessOptions struct {
	// Name is part of the file names in Dir: letters, digits, "_", "-" and ".".
	Name string
	// Argv is the program and its arguments. The program is a path or found in PATH. It runs in "/",
	// as under systemd, so paths in its arguments should be absolute.
	Argv []string
	// Env is the base environment, as NAME=value, to which SetEnvironment adds; nil for the agent's own. Variables that
	// systemd set for the agent alone, such as NOTIFY_SOCKET, are left out.
	Env []string
	// Dir is the absolute path of a directory for the state, lock and environment files, created if missing. It must
	// outlive the agent. A tmpfs such as /run is best, so that no slow disk interferes.
	Dir string
	// LogFile receives the program's stdout and stderr. Above 16 MiB it is moved to LogFile.1 at the next start.
	LogFile string
	// StopTimeout is how long after SIGTERM the process group gets SIGKILL; 0 for 30 s.
	StopTimeout time.Duration
	// Logger logs important events; nil for slog.Default.
	Logger *slog.Logger
}

// Process runs a plain program the way systemd runs a unit: in a session of its own, with its output in a file. Safe
// for concurrent use, including by several agents with the same Dir.
//
// The program outlives the agent. Its record is in <Dir>/<Name>.state. Any later Process with the same Dir and Name
// continues from there, even in the middle of a stop or restart. It identifies the program by PID, start time and boot.
// If systemd runs the agent, the agent's unit needs KillMode=process, otherwise systemd ends both. In a container, both
// end with the container.
//
// The program is Active as soon as it runs, because there is no readiness protocol. If it exits with code 0 or by a
// signal that counts as a clean end, such as SIGTERM, it is Inactive, as under systemd. If it ended while this agent
// was not its parent, its exit status is unknown, and it is Failed with Result "unknown", unless it was being stopped.
// A program that ends is never restarted automatically.
type Process struct {
	o     ProcessOptions
	boot  string
	state string // path of the state file
	lock  string // path of the lock file
	env   string // path of the environment file
	log   *slog.Logger

	life context.Context // ends when Close is called
	end  context.CancelFunc
	kick chan struct{} // wakes the driver
	done chan struct{} // closed when the driver has ended
}

var processName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$`)

// NewProcess checks the options and creates Dir. It does not start the program. The caller must call Close.
func NewProcess(o ProcessOptions) (*Process, error) {
	switch {
	case !processName.MatchString(o.Name):
		return nil, fmt.Errorf("cannot run process %q: its name is used in file names; use letters, digits, \"_\", "+
			"\"-\" and \".\"", o.Name)
	case len(o.Argv) == 0 || o.Argv[0] == "":
		return nil, fmt.Errorf("cannot run %s: no program: give its path", o.Name)
	case !filepath.IsAbs(o.Dir) || !filepath.IsAbs(o.LogFile):
		return nil, fmt.Errorf("cannot run %s: run directory %q, log file %q: give absolute paths", o.Name, o.Dir,
			o.LogFile)
	case o.StopTimeout < 0:
		return nil, fmt.Errorf("cannot run %s: stop timeout %v is negative: give a time such as 30s", o.Name,
			o.StopTimeout)
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = defaultStopTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	boot, err := BootID()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w", o.Name, err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, explainFile("create the run directory of "+o.Name, err)
	}
	p := &Process{
		o: o, boot: boot, log: o.Logger.With("process", o.Name),
		state: filepath.Join(o.Dir, o.Name+".state"),
		lock:  filepath.Join(o.Dir, o.Name+".lock"),
		env:   filepath.Join(o.Dir, o.Name+".env"),
		kick:  make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.life, p.end = context.WithCancel(context.Background())
	go p.drive()
	return p, nil
}

// Status checks the process, and takes the steps that are due: it records how the process ended, sends SIGKILL after
// the deadline of a stop, and starts the process again if that was requested. The error is ErrUnavailable if another
// agent holds the lock for 2 s, ErrNotPermitted if access was denied, or a different error if the state file is
// unreadable.
func (p *Process) Status(ctx context.Context) (Status, error) {
	st, err := p.look(ctx)
	if st.Job != "" {
		p.wake()
	}
	return st, err
}

// Start starts the program if it is not running, and waits only for the exec. While the old process is still stopping,
// the start is queued. The errors are ErrNotInstalled, ErrNotPermitted, ErrUnavailable or a different one.
func (p *Process) Start(ctx context.Context) error {
	return p.act(ctx, "start", func(r *record) error {
		switch r.State {
		case Active:
			r.Job, r.LastJob = "", "done"
			return nil
		case Deactivating:
			r.Job, r.LastJob = "start", ""
			return nil
		}
		return p.launch(r)
	})
}

// Stop sends SIGTERM to the process, and after StopTimeout SIGKILL to its whole process group. It does not wait for the
// end of the process, and cancels a queued start. If the process is not running, Stop returns nil.
func (p *Process) Stop(ctx context.Context) error {
	return p.act(ctx, "stop", func(r *record) error { return p.beginStop(r, "stop") })
}

// Restart stops the process, and starts it again as soon as the old one is gone. If the process is not running, Restart
// starts it.
func (p *Process) Restart(ctx context.Context) error {
	return p.act(ctx, "restart", func(r *record) error {
		if r.State == Active || r.State == Deactivating {
			return p.beginStop(r, "restart")
		}
		return p.launch(r)
	})
}

// SetEnvironment adds vars to Env from the next start on, in place of the variables of an earlier call. It writes
// <Dir>/<Name>.env in the format of systemd's EnvironmentFile=, and refuses the values that Service.SetEnvironment
// refuses.
func (p *Process) SetEnvironment(_ context.Context, vars map[string]string) error {
	if err := writeEnvironment(p.env, vars); err != nil {
		return explainFile("set the environment of "+p.o.Name, err)
	}
	return nil
}

// Environment returns the variables that SetEnvironment wrote; none if it was never called.
func (p *Process) Environment(context.Context) (map[string]string, error) {
	vars, err := readEnvironment(p.env)
	if err != nil {
		return nil, explainRead("read the environment of "+p.o.Name, err)
	}
	return vars, nil
}

// Close releases the program, which keeps running. The next Process with the same Dir and Name continues a stop or
// restart in progress. After the agent has ended, init reaps the program.
func (p *Process) Close() error {
	p.end()
	<-p.done
	return nil
}

// act updates the record, runs f on it, and wakes the driver if a job is pending.
func (p *Process) act(ctx context.Context, verb string, f func(*record) error) error {
	err := p.withRecord(ctx, func(r *record) error {
		err := p.advance(r)
		if err == nil {
			err = f(r)
		}
		if r.Job != "" {
			p.wake()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot %s %s: %w", verb, p.o.Name, err)
	}
	return nil
}

// look updates the record and returns it as a Status.
func (p *Process) look(ctx context.Context) (Status, error) {
	st := Status{ExitCode: -1}
	err := p.withRecord(ctx, func(r *record) error {
		err := p.advance(r)
		now, clockErr := clock(unix.CLOCK_BOOTTIME)
		if clockErr == nil {
			st = r.status(now)
			st.LoadState = p.loadState()
		}
		return errors.Join(err, clockErr)
	})
	if err != nil {
		return st, fmt.Errorf("cannot inspect %s: %w", p.o.Name, err)
	}
	return st, nil
}

// wake lets the driver advance a stop or restart. It never blocks.
func (p *Process) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// drive advances stops and restarts when they are due. All state is in the record, so that a later agent can continue.
func (p *Process) drive() {
	defer close(p.done)
	for {
		select {
		case <-p.life.Done():
			return
		case <-p.kick:
			p.driveJob()
		}
	}
}

// driveJob checks the process until no job is pending, at most until the job is past its limit.
func (p *Process) driveJob() {
	ctx, cancel := context.WithTimeout(p.life, p.o.StopTimeout+jobLimit+time.Second)
	defer cancel()
	tick := time.NewTicker(driveEvery)
	defer tick.Stop()
	for {
		if st, err := p.look(ctx); err == nil && st.Job == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
