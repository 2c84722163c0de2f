// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

const (
	recordVersion = 1
	// lockTimeout bounds the wait for another agent, which holds the lock for milliseconds unless it hangs.
	lockTimeout = 2 * time.Second
	lockRetry   = 5 * time.Millisecond
)

// record is the content of the state file: all state of the process. Times count from the boot with the ID BootID.
type record struct {
	Version int           `json:"version"`
	BootID  string        `json:"bootID"`
	State   State         `json:"state"`
	Since   time.Duration `json:"since"`

	// The main process. The token is in its environment and in that of its children, so that they can be found when PID
	// and StartTicks are not enough.
	PID        int    `json:"pid,omitempty"`
	StartTicks uint64 `json:"startTicks,omitempty"`
	Token      string `json:"token,omitempty"`

	// How the main process ended, if Ended is true.
	Ended    bool   `json:"ended,omitempty"`
	Result   string `json:"result"`
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`

	// The job in progress, the result of the last job, and the steps of the current or last stop.
	Job          string        `json:"job,omitempty"`
	LastJob      string        `json:"lastJob,omitempty"`
	StopDeadline time.Duration `json:"stopDeadline,omitempty"`
	Terminated   bool          `json:"terminated,omitempty"` // SIGTERM was sent
	Killed       bool          `json:"killed,omitempty"`     // SIGKILL was sent
}

// enter changes the state. If a job is pending and result is not empty, the job ends with that result.
func (r *record) enter(s State, now time.Duration, result string) {
	r.State, r.Since = s, now
	if r.Job != "" && result != "" {
		r.Job, r.LastJob = "", result
	}
}

func (r *record) status(now time.Duration) Status {
	st := Status{
		State: r.State, Result: r.Result, ExitCode: r.ExitCode,
		Signal: r.Signal, Job: r.Job, LastJob: r.LastJob,
	}
	if r.Since != 0 {
		st.Since = max(0, now-r.Since)
	}
	if !r.Ended {
		st.PID = r.PID
	}
	return st
}

// withRecord runs f on the record under a lock that excludes other agents and other goroutines. It saves the changes
// even if f fails, because some facts, such as the exit status of a process, can be read only once.
func (p *Process) withRecord(ctx context.Context, f func(*record) error) error {
	if p.life.Err() != nil {
		return ErrClosed
	}
	unlock, err := p.takeLock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(p.change(f), unlock())
}

func (p *Process) change(f func(*record) error) error {
	r, err := p.load()
	if err != nil {
		return err
	}
	before := *r
	err = f(r)
	if *r == before {
		return err
	}
	if r.State != before.State {
		p.log.Info("process changed state", "from", before.State, "to", r.State, "pid", r.PID, "result", r.Result)
	}
	return errors.Join(err, p.save(r))
}

// takeLock takes the lock file's flock. The kernel releases it when the agent ends, however it ends. A child that was
// just forked keeps it until its exec. From then on, the next agent finds the child by the token in its environment.
func (p *Process) takeLock(ctx context.Context) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	f, err := os.OpenFile(p.lock, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, explainFile("lock the run directory", err)
	}
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			// Unlock, not only Close: a child that is just being forked holds a copy of the descriptor.
			return func() error { return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close()) }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w: use a local file system", p.lock, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%w: another agent holds %s: %w: stop that agent, or give each agent "+
				"its own directory",
				ErrUnavailable, p.lock, ctx.Err()), f.Close())
		case <-retry.C:
		}
	}
}

// load reads the record. Without a state file, it returns the record of a process that was never started.
func (p *Process) load() (*record, error) {
	data, err := os.ReadFile(p.state)
	if errors.Is(err, fs.ErrNotExist) {
		return &record{Version: recordVersion, BootID: p.boot, State: Inactive, Result: "success", ExitCode: -1}, nil
	}
	if err != nil {
		return nil, explainRead("read the state of "+p.o.Name, err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w: if %s is running, stop it by hand; then remove that file", p.state,
			err, p.o.Name)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("cannot read %s: it has version %d, not %d: use the version of quorumd that wrote it",
			p.state, r.Version, recordVersion)
	}
	if r.PID < 0 || r.PID == 1 {
		return nil, fmt.Errorf("cannot read %s: quorumd did not start process %d: stop %s by hand if it is running, "+
			"then remove that file",
			p.state, r.PID, p.o.Name)
	}
	return &r, nil
}

func (p *Process) save(r *record) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.Write(p.state, append(data, '\n'), 0o644, true)
	}
	if err != nil {
		return explainFile("write the state of "+p.o.Name, err)
	}
	return nil
}
