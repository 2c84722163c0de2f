// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLog is the size in bytes above which a log file is rotated at a start.
const maxLog = 16 << 20

// launch starts the program. It records the token before the child exists, and the child's PID right after its
// start, so that the child of an agent that was killed in between can be found. If processes of an earlier group are
// left, launch stops them first and queues the start.
func (p *Process) launch(r *record) error {
	left, err := anyLeft(r)
	if err != nil {
		return err
	}
	if left {
		return p.beginStop(r, "start")
	}
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return err
	}
	job := r.Job
	if job == "" {
		job = "start"
	}
	*r = record{
		Version: recordVersion, BootID: p.boot, State: Activating, Since: now,
		Token: rand.Text(), Result: "success", ExitCode: -1, Job: job,
	}
	if err := p.save(r); err != nil {
		return err
	}
	pid, err := p.spawn(r.Token)
	if err != nil {
		r.enter(Failed, now, "failed")
		r.Result, r.Ended = "resources", true
		return err
	}
	stat, err := statOf(pid)
	if err != nil {
		return err // the record stays as it is: the next look finds the child by its token
	}
	r.PID = pid
	if stat != nil {
		r.StartTicks = stat.Starttime
	}
	r.enter(Active, now, "done")
	return nil
}

// spawn forks and execs, and returns the child's PID. On an error there is no child.
func (p *Process) spawn(token string) (pid int, err error) {
	program, err := p.findProgram()
	if err != nil {
		return 0, err
	}
	env, err := p.environment(token)
	if err != nil {
		return 0, err
	}
	log, err := p.openLog()
	if err != nil {
		return 0, err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Cmd{
		Path: program, Args: p.o.Argv, Env: env, Dir: "/", Stdout: log, Stderr: log,
		// A session of its own, and no parent-death signal: the program must outlive the agent.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot run %s: %w: check that it is a program for this machine", program, err)
	}
	pid = cmd.Process.Pid
	// findEnd reaps the child by its PID, which cannot be reused before that. Release frees only resources of the
	// runtime, and cannot fail for a process that was just started.
	_ = cmd.Process.Release()
	return pid, nil
}

// findProgram returns the absolute path of the program.
func (p *Process) findProgram() (string, error) {
	program, err := exec.LookPath(p.o.Argv[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%w: %w: make it executable: chmod +x %s", ErrNotPermitted, err, p.o.Argv[0])
	case err != nil:
		return "", fmt.Errorf("%w: %w: install it, or give its path", ErrNotInstalled, err)
	}
	return program, nil
}

func (p *Process) loadState() string {
	if _, err := p.findProgram(); err != nil {
		return "not-found"
	}
	return "loaded"
}

// environment returns Env without the variables that are only for the agent, then the variables of the environment
// file, then the token. Of two variables with the same name, the later one takes effect.
func (p *Process) environment(token string) ([]string, error) {
	base := p.o.Env
	if base == nil {
		base = os.Environ()
	}
	// systemd sets these for one process alone, see sd_notify(3), sd_listen_fds(3), systemd.exec(5).
	private := []string{
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
		"LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM",
	}
	var env []string
	for _, assignment := range base {
		if name, _, _ := strings.Cut(assignment, "="); !slices.Contains(private, name) {
			env = append(env, assignment)
		}
	}
	vars, err := readEnvironment(p.env)
	if err != nil {
		return nil, explainRead("read its environment file", err)
	}
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	return append(env, tokenVariable+"="+token), nil
}

// openLog opens the log file for appending, after rotating one that has become too large.
func (p *Process) openLog() (*os.File, error) {
	if info, err := os.Stat(p.o.LogFile); err == nil && info.Size() > maxLog {
		if err := os.Rename(p.o.LogFile, p.o.LogFile+".1"); err != nil {
			return nil, explainFile("rotate the log file", err)
		}
	}
	f, err := os.OpenFile(p.o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, explainFile("open the log file", err)
	}
	return f, nil
}
