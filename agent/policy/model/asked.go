// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// cycling is the request of a host and what its disk records about it. It outlives agents and boots.
type cycling struct {
	ask     uint8
	ended   uint8 // an operator has declared it done
	stopped uint8 // this host's agent has stopped etcd for it and has not started etcd since
	begun   uint8 // the operation was about to be recorded, in this boot or an earlier one
	seen    uint8 // the operation was seen: it is in flight until it ends here or is released
	freed   uint8 // an operator has released it
	did     uint8 // of a command: the state of its program
	held    uint8 // the start guard is set: etcd does not start at a boot
}

// The requests of a host.
const (
	nothing uint8 = iota
	maintenance
	keeping // only the operation: etcd keeps running
	restart
	rebooted // a reboot by its agent
	external // an external reboot
	command
	works
)

func workText(ask uint8) string {
	return [...]string{
		"nothing", "maintenance", "maintenance with etcd running", "a restart", "a reboot",
		"an external reboot", "a command",
	}[ask]
}

// The values of did. A program that was started may begin at any moment, so that both are one state.
const (
	runs     uint8 = iota + 1
	ranWell        // it has succeeded
	ranBadly       // it has failed
	lost           // the machine went down while it ran
)

// The values of begun.
const (
	begunNow    uint8 = iota + 1
	begunBefore       // and the machine has rebooted since
	tooLate           // it was not recorded, and the machine has rebooted, which was all that was requested
)

func (h *host) tidyCycle() {
	if h.ask == nothing {
		h.ended, h.stopped, h.begun, h.seen, h.freed, h.did = 0, 0, 0, 0, 0, 0
		if h.unit == taken {
			h.unit = inactive
		}
	}
}

// askEvent applies an operator's request, or the reboot it was waiting for.
func (m *machine) askEvent(w *world, k kind, i int, arg uint8) bool {
	h := &w.hosts[i]
	if h.agent != up || h.down != 0 {
		return false
	}
	switch k {
	case evAsk:
		if arg == nothing || h.ask != nothing || int(w.asks) >= m.Asks {
			return false
		}
		if m.External && (arg == restart || arg == command) { // the request is refused
			return false
		}
		h.ask = arg
		w.cover(i)
		w.asks++
	case evOver:
		if h.ask == nothing || h.ended != 0 {
			return false
		}
		h.saidOver()
	case evReboots:
		if h.ask != external || h.ended != 0 || !w.cycles(i) || w.opPhase != phaseDown {
			return false
		}
		w.reboots(i)
	}
	return true
}

// noteRequest records an agent's decision about its host's request.
func (m *machine) noteRequest(w *world, i int, c choice) {
	h := &w.hosts[i]
	switch c.request {
	case policy.RequestStays, policy.RequestEnding, policy.RequestRetried: // see note for the last two
	case policy.RequestSeen: // and what its record states, if the request was renewed since that was written
		s := h.standing()
		if !s.Begun {
			s = s.Begins()
			s.OtherBoot = w.opBoot == 0
		}
		m.moves(h, s.Recorded())
	case policy.RequestEnds:
		if c.loosens {
			h.held = 0
		}
		h.cycling = cycling{held: h.held}
	default:
		panic("rollouts are explored separately")
	}
}

// noteHold applies an agent's notes, or a step's preparation, to the start guard. If there is nothing that a boot could
// start, the world does not track it.
func (w *world) noteHold(i int, want policy.StartGuard) {
	h := &w.hosts[i]
	switch {
	case want == policy.GuardSet && (h.data == current || h.data == old || h.bereft()):
		h.held = 1
	case want == policy.GuardCleared:
		h.held = 0
	}
}

// cover makes a host's request decide about an etcd that an operator stopped earlier.
func (w *world) cover(i int) {
	if h := &w.hosts[i]; h.unit == inactive && h.down == 0 && w.covered(i) {
		h.unit = taken
	}
}

// workDone reports whether the work for which a host was taken down is done; restarts are not covered. Releasing the
// operation ends a reboot but not a maintenance.
func (w *world) workDone(i int) bool {
	h := &w.hosts[i]
	return w.isOver(i) || h.did > runs || (h.forReboot() && (w.released(i) || (w.cycles(i) && w.opBoot == 0)))
}

func (c *cycling) forReboot() bool { return c.ask == rebooted || c.ask == external }

// keptDown reports whether etcd has to stay down until the work is done. Work of the agent itself does not keep it down
// while no voter answers and the reboot was not requested yet, nor if etcd runs already.
func (w *world) keptDown(i int) bool {
	h := &w.hosts[i]
	switch h.ask {
	case restart:
		return false
	case command:
		return h.unit != active && w.cycles(i) && w.reaches(i)
	case rebooted:
		return h.unit != active && (w.reaches(i) || h.tried != 0)
	}
	return true
}

// awaitsPeople reports whether someone other than the agent continues the work.
func (c *cycling) awaitsPeople() bool {
	return c.ask == maintenance || c.ask == keeping || c.ask == external
}

// ranAfterReboot reports whether an etcd that is down ran after the requested reboot. The start guard holds it back
// only for maintenance, so it started at that boot, and an operator has stopped it since.
func (h *host) ranAfterReboot() bool {
	return h.unit == inactive && h.forReboot() && h.begun == begunBefore
}

// released reports whether an operator has released the requested operation: the host does not enter it again.
func (w *world) released(i int) bool { return w.hosts[i].seen&w.hosts[i].freed != 0 && !w.cycles(i) }

// noted reports whether only the disk still records a host's operation, because its record was deleted.
func (w *world) noted(i int) bool {
	h := &w.hosts[i]
	return h.seen != 0 && h.freed == 0 && !w.cycles(i)
}

// turn reports whether a host publishes that it is in its operation.
func (c *cycling) turn() bool { return c.seen != 0 && c.freed == 0 }

// isOver reports whether the request takes nothing down any more.
func (w *world) isOver(i int) bool {
	s := w.hosts[i].standing()
	return s.Done() || s.TooLate()
}

// moves records a transition of a host's request on its disk.
func (m *machine) moves(h *host, next policy.Request) {
	if m.noted != nil {
		next = m.noted(h.standing(), next)
	}
	h.becomes(next)
}

func (h *host) becomes(next policy.Request) {
	h.ended, h.stopped, h.seen = bit(next.Ended), bit(next.Stopped), bit(next.Seen)
	switch {
	case next.Begun:
		h.begun = begunNow + bit(next.OtherBoot)
	case h.begun != tooLate:
		h.begun = 0
	}
	if h.did == 0 && next.Ran == policy.HooksRunning {
		h.did = runs
	}
}

// saidOver is an operator declaring the request done.
func (h *host) saidOver() {
	next, withdrawn, _ := h.standing().Finished(false, false)
	if h.becomes(next); withdrawn {
		h.ask = nothing
	}
}

// program returns what is known about a command's program once its operation has begun.
func program(did uint8) policy.Program {
	p := policy.Program{Name: "upgrade", CanRun: true, Begun: true}
	p.Observed = policy.Hooks{State: policy.HooksDue, Text: "upgrade"}
	switch did {
	case 0:
		return p
	case runs:
		p.Observed.State = policy.HooksRunning
	case ranWell:
		p.Observed.State = policy.HooksDone
	case ranBadly:
		p.Observed.State = policy.HooksFailed
	case lost:
		p.OtherBoot = true
	}
	p.Recorded = policy.HooksRunning
	return p
}

// standing returns what decides whether the request is over.
func (c *cycling) standing() policy.Request {
	return policy.Request{
		Work: work(c.ask), External: c.ask == external, Ended: c.ended != 0, Stopped: c.stopped != 0,
		Begun:     c.begun == begunNow || c.begun == begunBefore,
		OtherBoot: c.begun == begunBefore || c.begun == tooLate,
		Seen:      c.seen != 0, KeepRunning: c.ask == keeping, Hurried: c.ask == external, By: "root",
		Reason: "testing", Program: [...]string{"", "upgrade"}[bit(c.ask == command)], Ran: program(c.did).Recorded,
	}
}

// inMaintenance reports whether etcd was stopped for maintenance that is not over.
func (h *host) inMaintenance() bool { return h.ask == maintenance && h.stopped != 0 && h.ended == 0 }

// askedIsOver ends requests that wait for an operator.
func (w *world) askedIsOver() {
	for i := range w.n {
		switch h := &w.hosts[i]; h.ask {
		case maintenance, keeping, external:
			h.saidOver()
		}
	}
}

// covered reports whether the request decides about an etcd that an operator stops: the end of the work starts it. That
// holds until the work is done; for a restart, as long as it is not known to be done, because nothing shows who stopped
// etcd.
func (w *world) covered(i int) bool {
	h := &w.hosts[i]
	if h.list == unlisted || h.ask == nothing || h.ask == keeping || w.released(i) {
		return false
	}
	return !w.workDone(i) && (h.ask != restart || !w.cycles(i) || w.opPhase != phaseBack)
}

// opHosts reports whether the operation belongs to this host. An operation that removes a leftover learner belongs to
// no host.
func (w *world) opHosts(i int) bool { return w.op != 0 && w.opLeft == 0 && int(w.opHost) == i }

// cycles reports whether the operation takes this host down and brings it back.
func (w *world) cycles(i int) bool { return w.opCycle != 0 && w.opHosts(i) }

// starts starts a unit.
func (w *world) starts(i int) {
	h := &w.hosts[i]
	switch h.unit {
	case inactive, failed, taken, restarting:
		h.unit = starting
		if w.cycles(i) || w.noted(i) {
			w.opRestarted = 1
		}
	}
}

// jobDone ends a stop job. The one of a restart starts the unit again by itself.
func (w *world) jobDone(i int) bool {
	h := &w.hosts[i]
	if h.unit == restarting {
		w.starts(i)
	} else {
		h.unit = taken
	}
	return true
}

// goesDown ends everything that runs on a host.
func (w *world) goesDown(i int) {
	h := &w.hosts[i]
	w.agentDies(i)
	h.down, h.unit, h.backoff = 1, inactive, 0
	if h.did == runs {
		h.did = lost
	}
	switch {
	case h.begun == begunNow:
		h.begun = begunBefore
	case h.begun == 0 && h.ask == external:
		h.begun = tooLate
	}
	if w.opHosts(i) {
		w.opBoot = 0
	}
}

// reboots is a requested reboot. It is no fault unless etcd runs again meanwhile.
func (w *world) reboots(i int) {
	runs := w.runs(i)
	w.goesDown(i)
	if runs {
		w.markFaulted()
	}
}

// boots boots a host. Its etcd starts unless the start guard holds it back.
func (w *world) boots(i int) breach {
	h := &w.hosts[i]
	h.down, h.agent, h.unit = 0, up, inactive
	switch {
	case h.gaveUp() && h.ask == nothing && h.held == 0:
		return startedEmpty
	case h.data != current && h.data != old:
		return fine
	case h.held != 0 && h.data == old: // it is no longer a member
		return fine
	case h.held != 0:
		h.unit = taken
		if h.ask != maintenance || h.stopped == 0 {
			return heldBack
		}
		return fine
	}
	w.starts(i)
	safe := w.cycles(i) && w.opPhase == phaseDown && h.ask == maintenance && h.ended == 0
	if h.list != unlisted && (safe || h.inMaintenance()) {
		return startedEarly
	}
	return fine
}
