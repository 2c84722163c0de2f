// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// The steps that an agent may have decided on.
const (
	rollNone uint8 = iota
	rollTake
	rollRelease
	rollBegin
	rollPhase
	rollLeader
	rollRestart
	rollTakeDown
	rollReboot
	rollStart
	rollEnd
	rollAgain
)

func rollSteps() []string {
	return []string{
		"do nothing", "take the lock", "release the lock", "begin", "set the phase", "transfer leadership", "restart",
		"take down", "reboot", "start", "end", "record it again",
	}
}

// The outcomes with which an operation ends.
const (
	rollOther uint8 = iota // nothing was done: the request remains queued
	rollCycled
	rollWithdrawn
)

// rollStep returns the number of a step and its argument.
func rollStep(s policy.Step) (step, arg uint8, known bool) {
	switch s.Kind {
	case policy.StepSetPhase:
		for p := range phaseBack + 1 {
			if opPhase(p) == s.Phase {
				return rollPhase, p, true
			}
		}
	case policy.StepTransferLeadership:
		return rollLeader, uint8(s.MemberID - memberID(0)), true
	case policy.StepEndOp:
		return rollEnd, rollOutcome(s.Outcome), true
	}
	simple := map[policy.StepKind]uint8{
		policy.StepNone: rollNone, policy.StepTakeLock: rollTake, policy.StepReleaseLock: rollRelease,
		policy.StepBeginCycle: rollBegin, policy.StepRestartUnit: rollRestart, policy.StepTakeDown: rollTakeDown,
		policy.StepReboot: rollReboot, policy.StepStartUnit: rollStart, policy.StepRecordAgain: rollAgain,
	}
	step, known = simple[s.Kind]
	return step, 0, known
}

func rollOutcome(code policy.ReasonCode) uint8 {
	switch code {
	case policy.Cycled:
		return rollCycled
	case policy.Cancelled:
		return rollWithdrawn
	}
	return rollOther
}

type rollAdder func(to rolling, found rollBreach, what string, args ...any)

// follow returns all worlds that may follow one.
func (m *rollMachine) follow(w *rolling) []next[rolling] {
	var all []next[rolling]
	add := func(to rolling, found rollBreach, what string, args ...any) {
		to.tidy()
		if to == *w && found == 0 {
			return
		}
		if found == 0 {
			found = m.judge(&to)
		}
		all = append(all, next[rolling]{to, fmt.Sprintf(what, args...), uint8(found)})
	}
	for i := range m.hosts() {
		m.agentActs(w, i, add)
		m.timePasses(w, i, add)
		m.goesWrong(w, i, add)
		m.peopleDo(w, i, add)
	}
	return all
}

// agentActs lets an agent look and decide, carry out its step, or write its note.
func (m *rollMachine) agentActs(w *rolling, i int, add rollAdder) {
	h := &w.hosts[i]
	if h.dead|h.off != 0 {
		return
	}
	if h.note != policy.RequestStays {
		to := *w
		found := m.write(&to, i)
		add(to, found, "%s's note lands", hostName(i))
	}
	if h.step == rollNone {
		to := *w
		found, d := m.round(&to, i)
		add(to, found, "%s decides: %s %s, note %d", hostName(i), d.Step.Kind, d.Step.Outcome, d.Notes.Request.Change)
		return
	}
	to := *w
	found := m.act(&to, i, whole)
	add(to, found, "%s carries out: %s", hostName(i), rollSteps()[h.step])
	if int(w.faults) >= m.Budget {
		return
	}
	for cut := noted; cut <= unanswered; cut++ {
		to := *w
		to.faults++
		found := m.act(&to, i, cut)
		add(to, found, "%s carries out: %s, and %s", hostName(i), rollSteps()[h.step],
			[...]string{"", "dies before the step is done", "dies when the step is done", "is not answered"}[cut])
	}
}

// round is one round with its decision. The queue is written at once; the step and the note are in flight from then on.
func (m *rollMachine) round(w *rolling, i int) (found rollBreach, d policy.Decision) {
	h := &w.hosts[i]
	if h.belief != 0 && w.reaches(i) && int(w.lock) != i+1 { // it renews the lock first
		h.belief = 0
	}
	s := m.look(w, i)
	d = m.decide(&s)
	found = m.judgeDecision(w, i, d)
	if q := d.Notes.Queue; q.News {
		w.queued, w.down = uint8(i+1), [policy.DownLength]uint8{}
		for k, id := range q.Queue.Down {
			w.down[k] = uint8(m.hostAt(id) + 1)
		}
	}
	if c := d.Notes.Request.Change; h.note == policy.RequestStays {
		switch c {
		case policy.RequestSeen, policy.RequestEnds, policy.RequestTurn, policy.RequestAgain:
			h.note, h.code, h.on, h.noteFor, h.noteOld = c, rollOutcome(d.Notes.Request.Code), h.request, w.resumed, 0
			if h.noteIn = 0; c == policy.RequestSeen {
				h.noteIn = begunBefore - w.boot
			}
		}
	}
	step, arg, known := rollStep(d.Step)
	if !known && found == 0 {
		return rollStray, d
	}
	h.step, h.arg, h.fresh, h.read = step, arg, 1, 1
	h.rolls = bit(step == rollEnd && arg != rollOther && h.ask != nothing && w.waiting>>i&1 != 0)
	return found, d
}

// write lands a note: on the disk if the request is still the same, in the record if that is.
func (m *rollMachine) write(w *rolling, i int) rollBreach {
	h := &w.hosts[i]
	is, was := h.request, h.on
	is.freed, was.freed = 0, 0 // that is in etcd
	switch same := is == was; {
	case h.note == policy.RequestTurn && h.ask == nothing:
		h.request = request{cycling: cycling{ask: m.ask()}, resumed: h.noteFor}
	case h.note == policy.RequestSeen && same:
		h.seen = 1
		if h.begun == 0 {
			h.begun = h.noteIn
		}
	case h.note == policy.RequestEnds && same:
		h.endRequest()
		if m.released && h.code != rollCycled {
			h.had = 0
		}
	case h.note == policy.RequestAgain && h.noteOld == 0 && w.reaches(i):
		w.state = rollStopped
		w.rollWritten()
	}
	h.note = policy.RequestStays
	return 0
}

func (h *rolled) endRequest() {
	h.had = h.resumed
	h.request = request{}
}

// How far a step gets.
const (
	whole      uint8 = iota
	noted            // its agent dies after the disk records the step
	landed           // its agent dies before it can record that the step is done
	unanswered       // it has happened, and its agent does not know
)

// act carries out a step.
func (m *rollMachine) act(w *rolling, i int, cut uint8) (found rollBreach) {
	h := &w.hosts[i]
	step, arg := h.step, h.arg
	may := w.reaches(i) && (int(w.lock) == i+1 && h.belief != 0 || m.unfenced)
	same := h.fresh != 0
	h.step = rollNone
	switch step {
	case rollTake:
		if w.reaches(i) && w.lock == 0 && (same || m.unfenced) {
			w.lock, w.token, h.belief = uint8(i+1), 0, bit(cut == whole)
		}
	case rollRelease:
		if w.reaches(i) && int(w.lock) == i+1 {
			w.lock = 0
		}
		h.belief = 0
	case rollBegin, rollAgain:
		if may && (same && w.op == 0 || m.unfenced) {
			m.begin(w, i, step, cut)
		}
	case rollPhase:
		if may && same && w.op != 0 {
			w.phase, w.token = arg, 1
			w.opWritten()
		}
	case rollLeader:
		if may && w.hosts[arg].unit == active {
			w.leader = arg
		}
	case rollRestart, rollTakeDown, rollReboot:
		if may {
			found = m.stop(w, i, step, cut)
		}
	case rollStart:
		if h.unit == taken || h.unit == failed {
			h.unit, h.restarted = starting, 1
		}
		h.stopped = 0
	case rollEnd:
		if may {
			found = m.end(w, i, arg, same && w.op != 0, cut)
		}
	}
	if cut == noted || cut == landed {
		w.hosts[i].dies()
	}
	return found
}

// begin records the operation, after the disk does.
func (m *rollMachine) begin(w *rolling, i int, step, cut uint8) {
	h := &w.hosts[i]
	if step == rollBegin {
		if h.ask == nothing { // it was cancelled just now
			return
		}
		h.begun, h.restarted, h.within = begunNow, 0, w.stretch
	}
	if cut == noted {
		return
	}
	w.op, w.phase, w.token, w.boot, h.freed = uint8(i+1), phaseBegun, 1, bit(h.begun == begunNow), 0
	w.opWritten()
	if cut == whole && step == rollBegin {
		h.seen = 1
	}
}

// stop takes a host down, in any of the ways.
func (m *rollMachine) stop(w *rolling, i int, step, cut uint8) (found rollBreach) {
	h := &w.hosts[i]
	if step == rollTakeDown {
		if h.note != policy.RequestStays { // the same file, written twice
			m.write(w, i)
		}
		if h.ask == nothing || h.ended != 0 { // cancelled just now
			return 0
		}
		h.stopped = 1
	}
	if cut == noted {
		return 0
	}
	found = m.judgeStop(w, i, step)
	h.low = bit(i < rollVoters || w.owns(i)) // without a record, no agent can see why a spare is off
	switch step {
	case rollReboot:
		h.turned = h.within
		w.goesDown(i)
	case rollTakeDown:
		h.unit = taken
	default:
		h.unit, h.restarted, h.turned = starting, 1, h.within
	}
	return found
}

// end deletes the operation's record and writes the rollout's progress, in one transaction.
func (m *rollMachine) end(w *rolling, i int, outcome uint8, same bool, cut uint8) (found rollBreach) {
	h := &w.hosts[i]
	over := outcome != rollOther
	if h.ask != nothing {
		h.seen = 0
		if over {
			h.ended = 1
			if h.rolls != 0 && h.read != 0 {
				h.resumed = max(h.resumed, w.resumed)
			}
		} else {
			h.begun = 0
		}
	}
	if cut == noted || !same || h.rolls != 0 && h.read == 0 && !m.unread {
		return 0
	}
	if h.rolls != 0 {
		found = m.goOn(w, i, outcome, h.read != 0)
	}
	w.op = 0
	w.opWritten()
	if over && cut == whole && h.ask != nothing {
		h.endRequest()
	}
	return found
}

// goOn writes the rollout's progress.
func (m *rollMachine) goOn(w *rolling, i int, outcome uint8, read bool) (found rollBreach) {
	t, step := m.turn(w, i, outcome)
	if m.after != nil {
		m.after(&t, &step)
	}
	end := policy.RolloutAfter(t, step)
	if m.ends != nil {
		m.ends(&end)
	}
	if found = m.judgeEnd(w, i, outcome, end); found == 0 && !read && end != (policy.RolloutEnd{}) {
		found = rollOverwritten
	}
	switch {
	case end.HostDone:
		w.waiting &^= 1 << i
		w.resumed += bit(m.counted)
		w.rollWritten()
		if end.Done {
			w.state = rollDone
		}
	case end.Stopped != "":
		w.state = rollStopped
		w.rollWritten()
	}
	return found
}

// turn is the rollout as seen by the host whose operation ends.
func (m *rollMachine) turn(w *rolling, i int, outcome uint8) (policy.RolloutProgress, policy.Step) {
	others := 0
	for k := range m.hosts() {
		others += int(w.waiting >> k & 1 & bit(k != i))
	}
	t := policy.RolloutProgress{
		Host: hostName(i), Ongoing: w.state == rollRuns || w.state == rollPaused, Waiting: others, Wants: "3.6.16",
		Runs: "3.6.16", Member: i < rollVoters,
	}
	if w.hosts[i].stale != 0 {
		t.Runs = "3.6.15"
	}
	code := [...]policy.ReasonCode{policy.QuorumAtRisk, policy.Cycled, policy.Cancelled}[outcome]
	return t, policy.Step{Kind: policy.StepEndOp, Outcome: code}
}

func (h *rolled) dies() {
	h.dead, h.step, h.note, h.belief = 1, rollNone, policy.RequestStays, 0
}

// goesDown ends everything that runs on a host.
func (w *rolling) goesDown(i int) {
	h := &w.hosts[i]
	h.dies()
	h.off = 1
	if h.unit != inactive {
		h.unit = taken
	}
	if h.begun == begunNow {
		h.begun = begunBefore
	}
	if w.owns(i) {
		w.boot = 0
	}
}

// serves notes that etcd has come up. Agents take it as started since then.
func (h *rolled) serves() {
	h.unit, h.low, h.restarted = active, 0, 1
}

// boots boots a host. Its etcd starts at the boot.
func (m *rollMachine) boots(w *rolling, i int) {
	h := &w.hosts[i]
	h.off, h.dead = 0, 0
	if i < rollVoters {
		h.unit, h.restarted = starting, 1
	} else {
		h.low = 0
	}
}
