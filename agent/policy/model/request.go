// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// hostRequest is the request of a host, with everything that its disk records about the request. The record survives
// the end of the agent's process and reboots.
type hostRequest struct {
	work       uint8
	ended      uint8 // an operator has ended the request, or its operation was about to end
	stopped    uint8 // this host's agent has stopped etcd for the request and has not started etcd since
	begun      uint8 // the operation was about to be recorded, in this boot or an earlier one
	opSeen     uint8 // the agent has observed the operation, which then lasts until this host ends it or it is released
	released   uint8 // an operator has released the operation
	program    uint8 // the state of a command's program
	startGuard uint8 // the start guard is set, so etcd does not start at a boot
	recalled   uint8 // the agent has called the work off
}

// The work that a request asks for.
const (
	noWork uint8 = iota
	maintenance
	maintenanceRunning // maintenance while etcd keeps running
	restart
	agentReboot    // a reboot by the host's agent
	externalReboot // a reboot by an external system
	interruptible  // maintenance that the host's agent may call off
	command
	readdressing
	workCount
)

func workText(ask uint8) string {
	return [...]string{
		"nothing", "maintenance", "maintenance with etcd running", "a restart", "a reboot",
		"an external reboot", "interruptible maintenance", "a command", "a readdress",
	}[ask]
}

// The states of a program. A program that was started may begin at any moment, so a started and a running one are not
// distinguished.
const (
	programRuns      uint8 = iota + 1
	programSucceeded       // the program has succeeded
	programFailed          // the program has failed
	programCutOff          // the machine went down while the program ran
	succeededCleaned       // a defragmentation has succeeded, and the old database is deleted
	failedCleaned          // a defragmentation has failed, and its leftover files are deleted
)

// The values of begun.
const (
	begunNow    uint8 = iota + 1
	begunBefore       // the operation began before the last reboot of the machine
	tooLate           // the machine went down for its external reboot before the operation was recorded
)

func (h *host) tidyRequest() {
	if h.work == noWork {
		h.ended, h.stopped, h.begun, h.opSeen, h.released, h.program, h.recalled = 0, 0, 0, 0, 0, 0, 0
		if h.unit == stoppedForRequest {
			h.unit = inactive
		}
	}
}

// requestEvent applies an operator's request, its end, or a requested external reboot.
func (m *machine) requestEvent(w *world, k kind, i int, arg uint8) bool {
	h := &w.hosts[i]
	if h.agent != up || h.down != 0 {
		return false
	}
	switch k {
	case evRequest:
		if arg == noWork || h.work != noWork || int(w.requests) >= m.Requests {
			return false
		}
		if m.External && (arg == restart || arg == command || arg == interruptible) { // quorumd refuses such a request
			return false
		}
		if arg == readdressing && !m.mayReaddress(w, i) {
			return false
		}
		if m.Work != noWork && arg != m.Work && arg != readdressing {
			return false
		}
		h.work = arg
		w.coverStoppedEtcd(i)
		w.requests++
	case evRequestEnds:
		if h.work == noWork || h.ended != 0 {
			return false
		}
		h.finishRequest()
	case evReboots:
		if h.work != externalReboot || h.ended != 0 || !w.cycles(i) || w.opPhase != phaseDown {
			return false
		}
		w.reboots(i)
	}
	return true
}

// noteRequest writes to disk what an agent decided about its host's request.
func (m *machine) noteRequest(w *world, i int, c choice) {
	h := &w.hosts[i]
	switch c.request {
	case policy.RequestStays, policy.RequestEnding, policy.RequestRetried: // recordOnDisk writes the last two changes
	case policy.RequestSeen: // a request made after the operation was recorded begins as the record says
		s := h.standing()
		if !s.Begun {
			s = s.Begins()
			s.OtherBoot = w.opBoot == 0
		}
		m.transition(h, s.Recorded())
	case policy.RequestRecalled:
		m.transition(h, h.standing().CalledOff(calledOff))
	case policy.RequestEnds:
		if c.removesGuard {
			h.startGuard = 0
		}
		h.hostRequest = hostRequest{startGuard: h.startGuard}
	default:
		panic("rollouts are explored separately")
	}
}

// applyStartGuard sets or removes the start guard, as an agent decided or before a step. The world tracks the guard
// only on a host with a member's data, on which a boot could start etcd, or with a voter whose data is lost.
func (w *world) applyStartGuard(i int, want policy.StartGuard) {
	h := &w.hosts[i]
	switch {
	case want == policy.GuardSet && (h.data == current || h.data == old || h.dataLost()):
		h.startGuard = 1
	case want == policy.GuardCleared:
		h.startGuard = 0
	}
}

// coverStoppedEtcd lets a host's request restart an etcd that an operator has stopped.
func (w *world) coverStoppedEtcd(i int) {
	if h := &w.hosts[i]; h.unit == inactive && h.down == 0 && w.decidesAboutEtcd(i) {
		h.unit = stoppedForRequest
	}
}

// workDone reports whether the work for which a host was taken down is done. It does not detect a completed restart.
// The release of the operation ends a reboot but not maintenance.
func (w *world) workDone(i int) bool {
	h := &w.hosts[i]
	readdressed := h.work == readdressing && w.cycles(i) && w.opPhase == phaseDown &&
		w.configuresNew(i) == w.urls[i].has(newRegistered) && w.configuresNew(i) == w.urls[i].has(newInEnv)
	return w.requestOver(i) || h.program > programRuns || readdressed ||
		(h.isReboot() && (w.released(i) || (w.cycles(i) && w.opBoot == 0)))
}

func (c *hostRequest) isReboot() bool { return c.work == agentReboot || c.work == externalReboot }

// keptDown reports whether etcd has to stay down until the work is done. A restart never keeps it down. A command or a
// reboot by the agent does not keep it down if etcd already runs, nor while no voter answers, unless the reboot has
// been triggered. A command keeps it down only during its operation.
func (w *world) keptDown(i int) bool {
	h := &w.hosts[i]
	switch h.work {
	case restart, readdressing:
		return false
	case command:
		return h.unit != active && w.cycles(i) && w.reaches(i)
	case agentReboot:
		return h.unit != active && (w.reaches(i) || h.stepFailed != 0)
	}
	return true
}

// awaitsOthers reports whether an operator or an external system, not the agent, completes the work.
func (c *hostRequest) awaitsOthers() bool {
	return c.isMaintenance() || c.work == maintenanceRunning || c.work == externalReboot
}

// ranAfterReboot reports whether an etcd that is down ran after the requested reboot. Only maintenance sets the start
// guard, so etcd started at that boot and an operator has stopped it since.
func (h *host) ranAfterReboot() bool {
	return h.unit == inactive && h.isReboot() && h.begun == begunBefore
}

// released reports whether an operator has released the requested operation, so that the host does not begin it again.
func (w *world) released(i int) bool {
	return w.hosts[i].opSeen&w.hosts[i].released != 0 && !w.cycles(i)
}

// recordDeleted reports whether a host's operation is recorded on its disk but no longer in etcd.
func (w *world) recordDeleted(i int) bool {
	h := &w.hosts[i]
	return h.opSeen != 0 && h.released == 0 && !w.cycles(i)
}

// inOperation reports whether a host publishes that it is in its operation.
func (c *hostRequest) inOperation() bool { return c.opSeen != 0 && c.released == 0 }

// requestOver reports whether the request no longer takes its host down: it is finished, or its reboot has happened.
func (w *world) requestOver(i int) bool {
	s := w.hosts[i].standing()
	return s.Done() || s.TooLate()
}

// transition writes a transition of a host's request to its disk.
func (m *machine) transition(h *host, next policy.Request) {
	if m.afterTransition != nil {
		next = m.afterTransition(h.standing(), next)
	}
	h.setStanding(next)
}

func (h *host) setStanding(next policy.Request) {
	h.ended, h.stopped, h.opSeen = bit(next.Ended), bit(next.Stopped), bit(next.Seen)
	h.recalled = bit(next.Recalled != "")
	switch {
	case next.Begun:
		h.begun = begunNow + bit(next.OtherBoot)
	case h.begun != tooLate:
		h.begun = 0
	}
	if h.program == 0 && next.Ran == policy.HooksRunning {
		h.program = programRuns
	}
	switch {
	case !next.OldDeleted:
	case h.program == programSucceeded:
		h.program = succeededCleaned
	case h.program == programFailed, h.program == programCutOff:
		h.program = failedCleaned
	}
}

// finishRequest ends the request in the same way as an operator.
func (h *host) finishRequest() {
	next, withdrawn, _ := h.standing().Finished(false, false)
	if h.setStanding(next); withdrawn {
		h.work = noWork
	}
}

// program returns the view of a command's program after its operation has begun.
func program(did uint8) policy.Program {
	p := policy.Program{Name: "upgrade", CanRun: true, Begun: true}
	p.Observed = policy.Hooks{State: policy.HooksDue, Text: "upgrade"}
	switch did {
	case 0:
		return p
	case programRuns:
		p.Observed.State = policy.HooksRunning
	case programSucceeded, succeededCleaned:
		p.Observed.State = policy.HooksDone
	case programFailed, failedCleaned:
		p.Observed.State = policy.HooksFailed
	case programCutOff:
		p.OtherBoot = true
	}
	p.Recorded = policy.HooksRunning
	return p
}

// standing returns the request as the policy's type for transitions.
func (c *hostRequest) standing() policy.Request {
	return policy.Request{
		Interruptible: c.work == interruptible, Recalled: [...]string{"", calledOff}[c.recalled],
		Work: work(c.work), External: c.work == externalReboot, Ended: c.ended != 0, Stopped: c.stopped != 0,
		Begun:     c.begun == begunNow || c.begun == begunBefore,
		OtherBoot: c.begun == begunBefore || c.begun == tooLate,
		Seen:      c.opSeen != 0, KeepRunning: c.work == maintenanceRunning, Hurried: c.work == externalReboot,
		By: "root", Reason: "testing", Program: [...]string{"", "upgrade"}[bit(c.work == command)],
		Ran: program(c.program).Recorded, OldDeleted: c.program >= succeededCleaned,
	}
}

// inMaintenance reports whether etcd was stopped for maintenance that is not over.
func (h *host) inMaintenance() bool { return h.stopped != 0 && h.atWork() }

// isMaintenance reports whether the request is for maintenance that stops etcd.
func (c *hostRequest) isMaintenance() bool { return c.work == maintenance || c.work == interruptible }

// atWork reports whether operators may be working on the host during maintenance.
func (c *hostRequest) atWork() bool { return c.isMaintenance() && c.ended|c.recalled == 0 }

// finishRequests ends the requests whose work an operator or an external system completes.
func (w *world) finishRequests() {
	for i := range w.n {
		switch h := &w.hosts[i]; h.work {
		case maintenance, maintenanceRunning, externalReboot, interruptible:
			h.finishRequest()
		}
	}
}

// decidesAboutEtcd reports whether the end of the request starts an etcd that an operator has stopped in the meantime,
// because nothing shows whether the agent or the operator stopped it. The result is true until the work is done. For a
// restart or a readdress, it is true until the operation records that etcd is back.
func (w *world) decidesAboutEtcd(i int) bool {
	h := &w.hosts[i]
	if h.list == unlisted || h.work == noWork || h.work == maintenanceRunning || w.released(i) {
		return false
	}
	brief := h.work == restart || h.work == readdressing
	return !w.workDone(i) && (!brief || !w.cycles(i) || w.opPhase != phaseBack)
}

// ownsOperation reports whether the operation belongs to this host. An operation that removes a leftover learner
// belongs to no host.
func (w *world) ownsOperation(i int) bool { return w.op != 0 && w.opLeft == 0 && int(w.opHost) == i }

// cycles reports whether the operation takes this host down and brings it back.
func (w *world) cycles(i int) bool { return w.opCycle != 0 && w.ownsOperation(i) }

// starts marks host i's unit as starting if it is down.
func (w *world) starts(i int) {
	h := &w.hosts[i]
	switch h.unit {
	case inactive, failed, stoppedForRequest, restarting:
		h.unit = starting
		w.startsAtURL(i)
		if w.cycles(i) || w.recordDeleted(i) {
			w.opRestarted = 1
		}
	}
}

// jobDone ends a stop job. A restart job then starts the unit again.
func (w *world) jobDone(i int) bool {
	h := &w.hosts[i]
	if h.unit == restarting {
		w.starts(i)
	} else {
		h.unit = stoppedForRequest
	}
	return true
}

// goesDown ends all processes on a host.
func (w *world) goesDown(i int) {
	h := &w.hosts[i]
	w.agentDies(i)
	h.down, h.unit, h.backoff = 1, inactive, 0
	if h.program == programRuns {
		h.program = programCutOff
	}
	switch {
	case h.begun == begunNow:
		h.begun = begunBefore
	case h.begun == 0 && h.work == externalReboot:
		h.begun = tooLate
	}
	if w.ownsOperation(i) {
		w.opBoot = 0
	}
}

// reboots applies a requested reboot. The reboot is a fault only if etcd still runs. Normally, the agent has stopped
// it.
func (w *world) reboots(i int) {
	runs := w.runs(i)
	w.goesDown(i)
	if runs {
		w.markFaulted()
	}
}

// boots applies the boot of a host. If the host has a member's data, its etcd starts unless the start guard is set.
func (w *world) boots(i int) breach {
	h := &w.hosts[i]
	h.down, h.agent, h.unit = 0, up, inactive
	switch {
	case h.lossRecorded() && h.work == noWork && h.startGuard == 0:
		return startedEmpty
	case h.data != current && h.data != old:
		return fine
	case h.startGuard != 0 && h.data == old: // the host no longer has a member
		return fine
	case h.startGuard != 0:
		h.unit = stoppedForRequest
		if !h.isMaintenance() || h.stopped == 0 {
			return startGuardStays
		}
		return fine
	}
	w.starts(i)
	safe := w.cycles(i) && w.opPhase == phaseDown && h.atWork()
	if h.list != unlisted && (safe || h.inMaintenance()) {
		return startedEarly
	}
	return fine
}
