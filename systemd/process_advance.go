// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// advance compares the record with the existing processes and takes the steps that are due. Any agent may call it at
// any time, because a step that is taken twice or late does no harm.
func (p *Process) advance(r *record) error {
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return err
	}
	if r.BootID != p.boot {
		r.lostInReboot(p.boot)
		return nil
	}
	if r.State == Activating {
		if err := adoptInterrupted(r); err != nil {
			return err
		}
	}
	if r.PID != 0 && !r.Ended {
		end, err := findEnd(r)
		if err != nil {
			return err
		}
		if end != nil {
			r.noteEnd(*end)
		}
	}
	switch {
	case r.State == Active && r.Ended:
		r.enter(r.stateAfterEnd(), now, "")
	case r.State == Deactivating:
		return p.continueStop(r)
	}
	return nil
}

// lostInReboot updates a record of an earlier boot. The process is gone: a pending stop is done, and any other pending
// job is cancelled. The agent decides again what to run after the boot.
func (r *record) lostInReboot(boot string) {
	r.BootID = boot
	running := r.PID != 0 && !r.Ended
	stopping := r.State == Deactivating && r.Job == "stop"
	switch {
	case stopping:
		r.enter(Inactive, 0, "done")
	case r.State == Active, r.State == Activating, r.State == Deactivating:
		r.enter(Failed, 0, "canceled")
		r.Result = "reboot"
	default:
		r.Since = 0 // the clock has started again at zero
	}
	if running {
		r.ExitCode, r.Signal, r.Ended = -1, "", true
	}
}

// adoptInterrupted completes a start that was interrupted by the end of the agent. It finds the child by its token, or
// concludes that the child was never created.
func adoptInterrupted(r *record) error {
	leader, err := findLeader(r.Token)
	if err != nil {
		return err
	}
	if leader == nil {
		r.enter(Failed, r.Since, "failed")
		r.Result, r.Ended = "resources", true
		return nil
	}
	r.PID, r.StartTicks = leader.PID, leader.Starttime
	r.enter(Active, r.Since, "done")
	return nil
}

// noteEnd records how the main process ended.
func (r *record) noteEnd(e end) {
	r.Ended, r.Result, r.ExitCode, r.Signal = true, e.result, e.exitCode, e.signal
}

// stateAfterEnd returns the state of a process that ended although no stop was requested.
func (r *record) stateAfterEnd() State {
	if r.Result == "success" {
		return Inactive
	}
	return Failed
}

// beginStop records that the process is stopping, then sends SIGTERM. If job is "start" or "restart", the process is
// started again after the stop.
func (p *Process) beginStop(r *record, job string) error {
	left, err := anyLeft(r)
	if err != nil {
		return err
	}
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return err
	}
	switch {
	case r.State == Deactivating:
		r.Job, r.LastJob = job, ""
		return nil
	case !left: // a Failed process stays Failed, as under systemd
		r.Job, r.LastJob = "", "done"
		return nil
	}
	r.Job, r.LastJob = job, ""
	r.enter(Deactivating, now, "")
	r.StopDeadline, r.Terminated, r.Killed = now+p.o.StopTimeout, false, false
	if err := p.save(r); err != nil {
		return err
	}
	return p.continueStop(r)
}

// continueStop takes the next step of a stop: it sends SIGTERM, sends SIGKILL after the deadline, or completes the stop
// when no process of the group is left.
func (p *Process) continueStop(r *record) error {
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return err
	}
	left, err := anyLeft(r)
	if err != nil {
		return err
	}
	switch {
	case !left:
		return p.finishStop(r)
	case !r.Terminated:
		if err := terminate(r); err != nil {
			return err
		}
		r.Terminated = true
	case now >= r.StopDeadline:
		// Kill the group on every check, because a process may have been forked while the group was signalled.
		if err := killGroup(r); err != nil {
			return err
		}
		if !r.Killed {
			p.log.Warn("process did not stop in time; killed its process group", "pid", r.PID)
		}
		r.Killed = true
	}
	if r.Job != "" && now > r.StopDeadline+jobLimit {
		p.log.Warn("gave up waiting for the process to exit", "pid", r.PID, "job", r.Job)
		r.Job, r.LastJob = "", "timeout"
	}
	return nil
}

// finishStop records a completed stop, and starts the process again if the job requires that.
func (p *Process) finishStop(r *record) error {
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		return err
	}
	job := r.Job
	switch {
	case r.Killed:
		r.Result = "timeout"
	case r.Result == "unknown":
		r.Result = "success" // the process ended as requested, and no other result was observed
	}
	result := "done"
	lapsed := now > r.StopDeadline+jobLimit
	if lapsed && job != "stop" {
		result = "timeout"
	}
	r.enter(Inactive, now, result)
	if job != "start" && job != "restart" || lapsed {
		return nil
	}
	r.Job = job
	if err := p.launch(r); err != nil {
		// Start or Restart returned long ago, so this error is logged. Status reports only that the start failed.
		p.log.Error("cannot start process after stop", "error", fmt.Sprint(err))
	}
	return nil
}
