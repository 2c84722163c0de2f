// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// cycling is what was asked of a host and what its disk says about that. It outlives agents and boots.
type cycling struct {
	ask     uint8
	ended   uint8 // a person has said that it is over
	stopped uint8 // this host's agent has stopped etcd for it, and has not started it since
	begun   uint8 // the operation was about to be recorded, in this boot or in one before
	seen    uint8 // and was seen: it is in flight until it has ended here, or was released
	freed   uint8 // a person has released it
	did     uint8 // of a command: how its program is doing
	held    uint8 // what keeps etcd from starting by itself at a boot lies there
}

// What a host can be asked for.
const (
	nothing uint8 = iota
	maintenance
	keeping // only the turn: etcd goes on
	restart
	rebooted // by its agent
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

// The values of did. One that was started may begin at any moment: the two are one.
const (
	runs     uint8 = iota + 1
	ranWell        // it has done its work
	ranBadly       // it has failed
	lost           // the machine has gone down while it ran
)

// The values of begun.
const (
	begunNow    uint8 = iota + 1
	begunBefore       // and the machine has rebooted since
	tooLate           // it was not, and the machine has rebooted, which was all that was waited for
)

func (h *host) tidyCycle() {
	if h.ask == nothing {
		h.ended, h.stopped, h.begun, h.seen, h.freed, h.did = 0, 0, 0, 0, 0, 0
		if h.unit == taken {
			h.unit = inactive
		}
	}
}

// askEvent is what people say, and the reboot that was waited for.
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
		if m.External && (arg == restart || arg == command) { // it is refused
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

// noteRequest is what an agent writes of its decision about what was asked of its host.
func (m *machine) noteRequest(w *world, i int, c choice) {
	h := &w.hosts[i]
	switch c.request {
	case policy.RequestStays, policy.RequestEnding, policy.RequestRetried: // the last two go with their step: see note
	case policy.RequestSeen: // and what its record says of it, if it was asked for anew since that was written
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

// noteHold is what an agent makes of the start guard, by its notes or before a step. Where nothing lies that a boot
// could start, it is not remembered.
func (w *world) noteHold(i int, want policy.StartGuard) {
	h := &w.hosts[i]
	switch {
	case want == policy.HoldBack && (h.data == current || h.data == old || h.bereft()):
		h.held = 1
	case want == policy.HoldNot:
		h.held = 0
	}
}

// cover lets what was asked of a host decide about an etcd that a person has stopped there before.
func (w *world) cover(i int) {
	if h := &w.hosts[i]; h.unit == inactive && h.down == 0 && w.covered(i) {
		h.unit = taken
	}
}

// workDone reports whether what a host was taken down for has been done, but for restarts. With its operation released,
// a reboot is over; not so a maintenance.
func (w *world) workDone(i int) bool {
	h := &w.hosts[i]
	return w.isOver(i) || h.did > runs || (h.forReboot() && (w.released(i) || (w.cycles(i) && w.opBoot == 0)))
}

func (c *cycling) forReboot() bool { return c.ask == rebooted || c.ask == external }

// keptDown reports whether etcd has to stay down for what a host was taken down for until it is done. For what its
// agent does by itself it does not where no voter answers, and nobody has asked for the reboot; nor when it runs
// already.
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

// awaitsPeople reports whether others than its agent go on with what a host is taken down for.
func (c *cycling) awaitsPeople() bool {
	return c.ask == maintenance || c.ask == keeping || c.ask == external
}

// ranAfterReboot reports whether an etcd that is down ran after the reboot that was asked for: it has started by itself
// then, since it is held back for maintenance only. So it was a person who has stopped it.
func (h *host) ranAfterReboot() bool {
	return h.unit == inactive && h.forReboot() && h.begun == begunBefore
}

// released reports whether a person has released the operation that a host was asked for: it takes no turn any more.
func (w *world) released(i int) bool { return w.hosts[i].seen&w.hosts[i].freed != 0 && !w.cycles(i) }

// noted reports whether the operation of a host stands by its disk only: somebody has deleted the record.
func (w *world) noted(i int) bool {
	h := &w.hosts[i]
	return h.seen != 0 && h.freed == 0 && !w.cycles(i)
}

// turn reports whether a host says that it is in its turn.
func (c *cycling) turn() bool { return c.seen != 0 && c.freed == 0 }

// isOver reports whether nothing more is taken down for what was asked.
func (w *world) isOver(i int) bool {
	s := w.hosts[i].standing()
	return s.Done() || s.TooLate()
}

// moves has the disk say what a transition has made of what was asked of a host.
func (m *machine) moves(h *host, next policy.Standing) {
	if m.noted != nil {
		next = m.noted(h.standing(), next)
	}
	h.becomes(next)
}

func (h *host) becomes(next policy.Standing) {
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

// saidOver is a person's word that what was asked is over.
func (h *host) saidOver() {
	next, withdrawn, _ := h.standing().Finished(false, false)
	if h.becomes(next); withdrawn {
		h.ask = nothing
	}
}

// program is what is known of the program of a command, once its operation has begun.
func program(did uint8) policy.Program {
	p := policy.Program{Name: "upgrade", Able: true, Begun: true}
	p.Found = policy.Hooks{State: policy.HooksDue, Text: "upgrade"}
	switch did {
	case 0:
		return p
	case runs:
		p.Found.State = policy.HooksRunning
	case ranWell:
		p.Found.State = policy.HooksDone
	case ranBadly:
		p.Found.State = policy.HooksFailed
	case lost:
		p.OtherBoot = true
	}
	p.Noted = policy.HooksRunning
	return p
}

// standing is what decides whether what was asked is over.
func (c *cycling) standing() policy.Standing {
	return policy.Standing{
		Work: work(c.ask), External: c.ask == external, Ended: c.ended != 0, Stopped: c.stopped != 0,
		Begun:     c.begun == begunNow || c.begun == begunBefore,
		OtherBoot: c.begun == begunBefore || c.begun == tooLate,
		Seen:      c.seen != 0, KeepRunning: c.ask == keeping, Hurried: c.ask == external, By: "root",
		Reason: "testing", Program: [...]string{"", "upgrade"}[bit(c.ask == command)], Ran: program(c.did).Noted,
	}
}

// inMaintenance reports whether etcd was stopped for maintenance that is not over.
func (h *host) inMaintenance() bool { return h.ask == maintenance && h.stopped != 0 && h.ended == 0 }

// askedIsOver ends what waits for people.
func (w *world) askedIsOver() {
	for i := range w.n {
		switch h := &w.hosts[i]; h.ask {
		case maintenance, keeping, external:
			h.saidOver()
		}
	}
}

// covered reports whether what was asked of a host says what becomes of an etcd that a person stops there: the
// end of the work starts it. So it is until that work is done; and as long as a restart is not known to be, for
// nobody can tell then who has stopped it.
func (w *world) covered(i int) bool {
	h := &w.hosts[i]
	if h.list == unlisted || h.ask == nothing || h.ask == keeping || w.released(i) {
		return false
	}
	return !w.workDone(i) && (h.ask != restart || !w.cycles(i) || w.opPhase != phaseBack)
}

// opHosts reports whether an operation of a host, and not of a learner that was left over, is this one's.
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

// jobDone is the end of a stop. The one that is part of a restart goes on by itself.
func (w *world) jobDone(i int) bool {
	h := &w.hosts[i]
	if h.unit == restarting {
		w.starts(i)
	} else {
		h.unit = taken
	}
	return true
}

// goesDown ends all that runs on a host.
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

// reboots is a reboot that was asked for. It is no fault, unless etcd runs again meanwhile.
func (w *world) reboots(i int) {
	runs := w.runs(i)
	w.goesDown(i)
	if runs {
		w.markFaulted()
	}
}

// boots is the boot of a host, with an etcd that starts by itself if it is not held back.
func (w *world) boots(i int) breach {
	h := &w.hosts[i]
	h.down, h.agent, h.unit = 0, up, inactive
	switch {
	case h.gaveUp() && h.ask == nothing && h.held == 0:
		return startedEmpty
	case h.data != current && h.data != old:
		return fine
	case h.held != 0 && h.data == old: // it is no member any more
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
