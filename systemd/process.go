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
	// driveEvery is how often a stop or restart in progress is advanced.
	driveEvery = 50 * time.Millisecond
	// jobLimit is how long after the stop deadline a start may still wait for the old process to end. After that the
	// job ends with "timeout": the request may be outdated by then.
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
// for concurrent use, also by several agents on the same Dir.
//
// The program outlives the agent. Its record is in <Dir>/<Name>.state. Any later Process with the same Dir continues
// from there, even in the middle of a stop or restart; the process is identified by its PID, start time and boot. (If
// systemd runs the agent, the agent's unit needs KillMode=process, otherwise systemd ends both; in a container both end
// with the container.)
//
// It is Active as soon as it runs: there is no readiness protocol. If it ends with code 0 or by SIGTERM it is Inactive,
// as under systemd. If it ended while this agent was not its parent, how it ended is unknown, and it is Failed with
// Result "unknown" unless Stop was called. A program that ends is never restarted automatically.
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

// NewProcess checks the options and creates Dir. It starts nothing. Close must be called on it.
func NewProcess(o ProcessOptions) (*Process, error) {
	switch {
	case !processName.MatchString(o.Name):
		return nil, fmt.Errorf("cannot run process %q: its name is used in file names: use letters, digits, \"_\", "+
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
		return nil, explainFile("make the run directory of "+o.Name, err)
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

// Status checks the process, and does what is due: it records how the process ended, sends SIGKILL after the deadline
// of a stop, and starts the process again for a restart. The error is ErrUnavailable if another agent holds the lock
// for 2 s, ErrNotPermitted, or another error if the state file is unreadable.
func (p *Process) Status(ctx context.Context) (Status, error) {
	st, err := p.look(ctx)
	if st.Job != "" {
		p.wake()
	}
	return st, err
}

// Start starts the program if it is not running, and only waits for the exec. While the old process is still stopping,
// the start is queued. The errors are ErrNotInstalled, ErrNotPermitted, ErrUnavailable or another.
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

// Stop sends SIGTERM, and after StopTimeout SIGKILL to the whole process group. It waits for neither. A queued start is
// cancelled. It is no error if the process is not running.
func (p *Process) Stop(ctx context.Context) error {
	return p.act(ctx, "stop", func(r *record) error { return p.beginStop(r, "stop") })
}

// Restart stops the process, and starts it once the old one is gone. If the process is not running, Restart starts it.
func (p *Process) Restart(ctx context.Context) error {
	return p.act(ctx, "restart", func(r *record) error {
		if r.State == Active || r.State == Deactivating {
			return p.beginStop(r, "restart")
		}
		return p.launch(r)
	})
}

// SetEnvironment adds vars to Env from the next start on, in place of the variables of an earlier call. It writes
// <Dir>/<Name>.env in the form of systemd's EnvironmentFile=, and refuses the same values.
func (p *Process) SetEnvironment(_ context.Context, vars map[string]string) error {
	if err := writeEnvironment(p.env, vars); err != nil {
		return explainFile("set the environment of "+p.o.Name, err)
	}
	return nil
}

// Environment reads what SetEnvironment wrote; nothing if it was never called.
func (p *Process) Environment(context.Context) (map[string]string, error) {
	vars, err := readEnvironment(p.env)
	if err != nil {
		return nil, explainFile("read the environment of "+p.o.Name, err)
	}
	return vars, nil
}

// Close releases the program, which keeps running. The next Process on the same Dir continues a stop or restart in
// progress. Once the agent ends, init reaps its children.
func (p *Process) Close() error {
	p.end()
	<-p.done
	return nil
}

// act updates the record, runs f on it, and leaves the rest to the driver.
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

// drive advances stops and restarts when they are due. It keeps no state of its own: everything is in the record, so
// that Status of a later agent can continue.
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
