// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// tokenVariable carries the token of a record in the environment of the process started for it.
const tokenVariable = "QUORUMD_PROCESS"

// end describes how a main process ended, in the terms of Status.
type end struct {
	result   string
	exitCode int
	signal   string
}

// findEnd returns how the record's main process ended; nil if it has not. If the process is a child of this agent,
// findEnd reaps it, because only its parent can read the exit status.
func findEnd(r *record) (*end, error) {
	stat, err := statOf(r.PID)
	if err != nil {
		return nil, err
	}
	unseen := &end{result: "unknown", exitCode: -1}
	switch {
	case stat == nil, stat.Starttime != r.StartTicks: // the process is gone, and its number may have been reused
		return unseen, nil
	case !isDead(stat):
		return nil, nil
	case stat.PPID != os.Getpid():
		return unseen, nil
	}
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(r.PID, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // other code in this agent reaps all children
			return unseen, nil //nolint:nilerr // the process has ended, but its exit status is unknown
		case pid == 0:
			return nil, nil
		}
		return endOf(ws), nil
	}
}

// endOf converts a wait status to systemd's terms. The signals are those that systemd treats as a clean end, see
// SuccessExitStatus= in systemd.service(5).
func endOf(ws unix.WaitStatus) *end {
	switch {
	case ws.Exited() && ws.ExitStatus() == 0:
		return &end{result: "success"}
	case ws.Exited():
		return &end{result: "exit-code", exitCode: ws.ExitStatus()}
	}
	e := &end{result: "signal", exitCode: -1, signal: signalName(ws.Signal())}
	clean := []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE}
	switch {
	case slices.Contains(clean, ws.Signal()):
		e.result = "success"
	case ws.CoreDump():
		e.result = "core-dump"
	}
	return e
}

// anyLeft reports whether the main process or a member of its group still runs. The token identifies the members,
// because the ID of a group without its leader may have been reused.
func anyLeft(r *record) (bool, error) {
	if r.PID == 0 {
		return false, nil
	}
	if !r.Ended {
		return true, nil
	}
	found, err := findTagged(r.Token, func(s procfs.ProcStat) bool { return s.PGRP == r.PID })
	return found != nil, err
}

// terminate sends SIGTERM to the main process or, if that has ended, to the rest of its group.
func terminate(r *record) error {
	if r.Ended {
		return signalGroup(r.PID, unix.SIGTERM)
	}
	// FindProcess pins the process, so that the checked process gets the signal.
	proc, err := os.FindProcess(r.PID)
	if err != nil {
		return ignoreGone(err, r.PID)
	}
	stat, err := statOf(r.PID)
	if err == nil && stat != nil && stat.Starttime == r.StartTicks {
		err = proc.Signal(unix.SIGTERM)
	}
	return errors.Join(ignoreGone(err, r.PID), proc.Release())
}

// killGroup sends SIGKILL to the process group. The group's ID has not been reused, because anyLeft has just found the
// leader or a member.
func killGroup(r *record) error { return signalGroup(r.PID, unix.SIGKILL) }

// signalGroup sends a signal to a process group. It rejects the IDs that kill(2) interprets as "every process" or "my
// own group", which a bug or a corrupt state file could contain.
func signalGroup(pgid int, signal syscall.Signal) error {
	if pgid <= 1 {
		return fmt.Errorf("cannot signal process group %d: quorumd did not start that group: remove the state file",
			pgid)
	}
	return ignoreGone(unix.Kill(-pgid, signal), pgid)
}

func ignoreGone(err error, pid int) error {
	switch {
	case err == nil, errors.Is(err, os.ErrProcessDone), errors.Is(err, unix.ESRCH):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: cannot signal process %d: %w: run as root, or as the user of that process",
			ErrNotPermitted, pid, err)
	}
	return fmt.Errorf("cannot signal process %d: %w", pid, err)
}

// findLeader returns the live session leader with the token; nil if there is none.
func findLeader(token string) (*procfs.ProcStat, error) {
	return findTagged(token, func(s procfs.ProcStat) bool { return s.Session == s.PID })
}

// findTagged returns a live process that accept selects and whose environment has the token.
func findTagged(token string, accept func(procfs.ProcStat) bool) (*procfs.ProcStat, error) {
	if token == "" {
		return nil, nil
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w: mount /proc", err)
	}
	for _, proc := range all {
		stat, err := proc.Stat()
		if err != nil || stat.PID <= 1 || isDead(&stat) || !accept(stat) {
			continue // the process may be gone by now; init never belongs to quorumd
		}
		// If the environment is unreadable, the process belongs to a different user, so it cannot be the right one.
		if env, err := proc.Environ(); err == nil && slices.Contains(env, tokenVariable+"="+token) {
			return &stat, nil
		}
	}
	return nil, nil
}

// statOf reads /proc/PID/stat; nil if there is no such process.
func statOf(pid int) (*procfs.ProcStat, error) {
	proc, err := procfs.NewProc(pid)
	if err == nil {
		var stat procfs.ProcStat
		if stat, err = proc.Stat(); err == nil {
			return &stat, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	return nil, fmt.Errorf("cannot inspect process %d: %w: mount /proc", pid, err)
}

// isDead reports whether the process is a zombie or about to vanish, and no thread of it still runs. The main thread
// can be a zombie long before the other threads, which keep files and ports open: kill -9 does not end a thread that
// waits for a disk.
func isDead(s *procfs.ProcStat) bool {
	return s.State == "X" || s.State == "x" || s.State == "Z" && s.NumThreads <= 1
}
