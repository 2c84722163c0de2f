// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// The steps that an agent may have decided on.
const (
	rolloutNone uint8 = iota
	rolloutTakeLock
	rolloutReleaseLock
	rolloutBegin
	rolloutSetPhase
	rolloutTransfer
	rolloutRestart
	rolloutTakeDown
	rolloutReboot
	rolloutStart
	rolloutEnd
	rolloutRecordAgain
)

func rolloutStepTexts() []string {
	return []string{
		"do nothing", "take the lock", "release the lock", "begin", "set the phase", "transfer leadership", "restart",
		"take down", "reboot", "start", "end", "record the operation again",
	}
}

// The outcomes with which an operation ends.
const (
	rolloutOtherOutcome uint8 = iota // the work was not done, and the request remains queued
	rolloutCycled
	rolloutCancelled
)

// rolloutStepOf returns the model's step and argument for a step of the policy. known is false if no rollout needs it.
func rolloutStepOf(s policy.Step) (step, arg uint8, known bool) {
	switch s.Kind {
	case policy.StepSetPhase:
		for p := range phaseBack + 1 {
			if opPhase(p) == s.Phase {
				return rolloutSetPhase, p, true
			}
		}
	case policy.StepTransferLeadership:
		return rolloutTransfer, uint8(s.MemberID - memberID(0)), true
	case policy.StepEndOp:
		return rolloutEnd, rolloutOutcome(s.Outcome), true
	}
	simple := map[policy.StepKind]uint8{
		policy.StepNone: rolloutNone, policy.StepTakeLock: rolloutTakeLock, policy.StepReleaseLock: rolloutReleaseLock,
		policy.StepBeginCycle: rolloutBegin, policy.StepRestartUnit: rolloutRestart,
		policy.StepTakeDown: rolloutTakeDown, policy.StepReboot: rolloutReboot, policy.StepStartUnit: rolloutStart,
		policy.StepRecordAgain: rolloutRecordAgain,
	}
	step, known = simple[s.Kind]
	return step, 0, known
}

func rolloutOutcome(code policy.ReasonCode) uint8 {
	switch code {
	case policy.Cycled:
		return rolloutCycled
	case policy.Cancelled:
		return rolloutCancelled
	}
	return rolloutOtherOutcome
}

type rolloutAdder func(to rolloutWorld, found rolloutBreach, what string, args ...any)

// successors returns all worlds that can follow w.
func (m *rolloutMachine) successors(w *rolloutWorld) []successor[rolloutWorld] {
	var all []successor[rolloutWorld]
	add := func(to rolloutWorld, found rolloutBreach, what string, args ...any) {
		to.tidy()
		if to == *w && found == 0 {
			return
		}
		if found == 0 {
			found = m.judge(&to)
		}
		all = append(all, successor[rolloutWorld]{to, fmt.Sprintf(what, args...), uint8(found)})
	}
	for i := range m.hosts() {
		m.agentActs(w, i, add)
		m.timePasses(w, i, add)
		m.failures(w, i, add)
		m.operatorActs(w, i, add)
	}
	return all
}

// agentActs lets an agent decide, carry out its step, or write its pending change of the request.
func (m *rolloutMachine) agentActs(w *rolloutWorld, i int, add rolloutAdder) {
	h := &w.hosts[i]
	if h.agentDown|h.hostDown != 0 {
		return
	}
	if h.pending != policy.RequestStays {
		to := *w
		found := m.write(&to, i)
		add(to, found, "%s writes its request change", hostName(i))
	}
	if h.step == rolloutNone {
		to := *w
		found, d := m.round(&to, i)
		add(to, found, "%s decides: %s %s, request change %d", hostName(i), d.Step.Kind, d.Step.Outcome,
			d.Notes.Request.Change)
		return
	}
	to := *w
	found := m.act(&to, i, completed)
	add(to, found, "%s carries out: %s", hostName(i), rolloutStepTexts()[h.step])
	if int(w.faults) >= m.Budget {
		return
	}
	for cut := crashedBefore; cut <= unanswered; cut++ {
		to := *w
		to.faults++
		found := m.act(&to, i, cut)
		add(to, found, "%s carries out: %s, and %s", hostName(i), rolloutStepTexts()[h.step],
			[...]string{"", "dies before the step is done", "dies when the step is done", "is not answered"}[cut])
	}
}

// round runs one round of an agent. The agent writes the queue at once. The step and the change of the request are in
// flight from then on.
func (m *rolloutMachine) round(w *rolloutWorld, i int) (found rolloutBreach, d policy.Decision) {
	h := &w.hosts[i]
	if h.hasToken != 0 && w.reaches(i) && int(w.lock) != i+1 { // the agent renews the lock first
		h.hasToken = 0
	}
	s := m.observe(w, i)
	d = m.decide(&s)
	found = m.judgeDecision(w, i, d)
	if q := d.Notes.Queue; q.News {
		w.queueWriter, w.queueDown = uint8(i+1), [policy.DownLength]uint8{}
		for k, id := range q.Queue.Down {
			w.queueDown[k] = uint8(m.hostAt(id) + 1)
		}
	}
	if c := d.Notes.Request.Change; h.pending == policy.RequestStays {
		switch c {
		case policy.RequestSeen, policy.RequestEnds, policy.RequestTurn, policy.RequestAgain,
			policy.RequestHeld:
			h.pending, h.pendingOutcome = c, rolloutOutcome(d.Notes.Request.Code)
			h.pendingRequest, h.pendingResumed, h.pendingStale = h.rolloutRequest, w.resumed, 0
			if h.pendingBoot = 0; c == policy.RequestSeen {
				h.pendingBoot = begunBefore - w.sameBoot
			}
		}
	}
	step, arg, known := rolloutStepOf(d.Step)
	if !known && found == 0 {
		return rolloutUnexpectedStep, d
	}
	h.step, h.arg, h.opFresh, h.rolloutFresh = step, arg, 1, 1
	h.writesRollout = bit(step == rolloutEnd && arg != rolloutOtherOutcome && h.work != noWork && w.waiting>>i&1 != 0)
	return found, d
}

// write applies the pending change of a request, on disk or in the rollout's record. It drops the change if the request
// or the record has changed in the meantime.
func (m *rolloutMachine) write(w *rolloutWorld, i int) rolloutBreach {
	h := &w.hosts[i]
	is, was := h.rolloutRequest, h.pendingRequest
	is.released, was.released = 0, 0 // a release is recorded in etcd, not on disk
	switch same := is == was; {
	case h.pending == policy.RequestTurn && h.work == noWork:
		h.rolloutRequest = rolloutRequest{hostRequest: hostRequest{work: m.hostWork()}, resumed: h.pendingResumed}
	case h.pending == policy.RequestSeen && same:
		h.opSeen = 1
		if h.begun == 0 {
			h.begun = h.pendingBoot
		}
	case h.pending == policy.RequestEnds && same:
		h.endRequest()
		if m.releasedNotDone && h.pendingOutcome != rolloutCycled {
			h.lastResumed = 0
		}
	case h.pending == policy.RequestAgain && h.pendingStale == 0 && w.reaches(i):
		w.state = rolloutStopped
		w.rolloutWritten()
	case h.pending == policy.RequestHeld && h.pendingStale == 0 && w.reaches(i):
		if w.hold = 0; !m.holdsWithoutPause {
			w.state = rolloutPaused
		}
		w.rolloutWritten()
	}
	h.pending = policy.RequestStays
	return 0
}

func (h *rolloutHost) endRequest() {
	h.lastResumed = h.resumed
	h.rolloutRequest = rolloutRequest{}
}

// How a step ends.
const (
	completed     uint8 = iota
	crashedBefore       // the agent dies after the disk has recorded the step, but before the step takes effect
	crashedAfter        // the agent dies after the step has taken effect, but before recording that
	unanswered          // the step takes effect, but the agent receives no answer
)

// act carries out a step.
func (m *rolloutMachine) act(w *rolloutWorld, i int, cut uint8) (found rolloutBreach) {
	h := &w.hosts[i]
	step, arg := h.step, h.arg
	may := w.reaches(i) && (int(w.lock) == i+1 && h.hasToken != 0 || m.unfenced)
	same := h.opFresh != 0
	h.step = rolloutNone
	switch step {
	case rolloutTakeLock:
		if w.reaches(i) && w.lock == 0 && (same || m.unfenced) {
			w.lock, w.token, h.hasToken = uint8(i+1), 0, bit(cut == completed)
		}
	case rolloutReleaseLock:
		if w.reaches(i) && int(w.lock) == i+1 {
			w.lock = 0
		}
		h.hasToken = 0
	case rolloutBegin, rolloutRecordAgain:
		if may && (same && w.op == 0 || m.unfenced) {
			m.begin(w, i, step, cut)
		}
	case rolloutSetPhase:
		if may && same && w.op != 0 {
			w.phase, w.token = arg, 1
			w.opWritten()
		}
	case rolloutTransfer:
		if may && w.hosts[arg].unit == active {
			w.leader = arg
		}
	case rolloutRestart, rolloutTakeDown, rolloutReboot:
		if may {
			found = m.stop(w, i, step, cut)
		}
	case rolloutStart:
		if h.unit == stoppedForRequest || h.unit == failed {
			h.unit, h.restarted = starting, 1
		}
		h.stopped = 0
	case rolloutEnd:
		if may {
			found = m.end(w, i, arg, same && w.op != 0, cut)
		}
	}
	if cut == crashedBefore || cut == crashedAfter {
		w.hosts[i].agentDies()
	}
	return found
}

// begin records that the operation begins, first on disk and then in etcd.
func (m *rolloutMachine) begin(w *rolloutWorld, i int, step, cut uint8) {
	h := &w.hosts[i]
	if step == rolloutBegin {
		if h.work == noWork { // an operator has just cancelled the request
			return
		}
		h.begun, h.restarted, h.begunIn = begunNow, 0, w.trueResumed
	}
	if cut == crashedBefore {
		return
	}
	w.op, w.phase, w.token, w.sameBoot, h.released = uint8(i+1), phaseBegun, 1, bit(h.begun == begunNow), 0
	w.opWritten()
	if cut == completed && step == rolloutBegin {
		h.opSeen = 1
	}
}

// stop takes a host down by a restart, a take-down or a reboot.
func (m *rolloutMachine) stop(w *rolloutWorld, i int, step, cut uint8) (found rolloutBreach) {
	h := &w.hosts[i]
	if step == rolloutTakeDown {
		if h.pending != policy.RequestStays { // both writes go to the same file, in order
			m.write(w, i)
		}
		if h.work == noWork || h.ended != 0 { // an operator has just cancelled the request
			return 0
		}
		h.stopped = 1
	}
	if cut == crashedBefore {
		return 0
	}
	found = m.judgeStop(w, i, step)
	h.down = bit(i < rolloutVoters || w.owns(i)) // without a record, no agent can see why a spare is down
	switch step {
	case rolloutReboot:
		h.doneIn = h.begunIn
		w.goesDown(i)
	case rolloutTakeDown:
		h.unit = stoppedForRequest
	default:
		h.unit, h.restarted, h.doneIn = starting, 1, h.begunIn
		h.upgraded |= bit(m.Upgrade && h.wrongVersion == 0)
	}
	return found
}

// end deletes the operation's record and writes the rollout's progress, in one transaction.
func (m *rolloutMachine) end(w *rolloutWorld, i int, outcome uint8, same bool, cut uint8) (found rolloutBreach) {
	h := &w.hosts[i]
	over := outcome != rolloutOtherOutcome
	if h.work != noWork {
		h.opSeen = 0
		if over {
			h.ended = 1
			if h.writesRollout != 0 && h.rolloutFresh != 0 {
				h.resumed = max(h.resumed, w.resumed)
			}
		} else {
			h.begun = 0
		}
	}
	if cut == crashedBefore || !same || h.writesRollout != 0 && h.rolloutFresh == 0 && !m.overwrites {
		return 0
	}
	if h.writesRollout != 0 {
		found = m.advance(w, i, outcome, h.rolloutFresh != 0)
	}
	w.op = 0
	w.opWritten()
	if over && cut == completed && h.work != noWork {
		h.endRequest()
	}
	return found
}

// advance changes the rollout's record as the end of a host's operation requires.
func (m *rolloutMachine) advance(w *rolloutWorld, i int, outcome uint8, read bool) (found rolloutBreach) {
	t, step := m.progress(w, i, outcome)
	if m.beforeEnd != nil {
		m.beforeEnd(&t, &step)
	}
	end := policy.RolloutAfter(t, step)
	if m.afterEnd != nil {
		m.afterEnd(&end)
	}
	if found = m.judgeEnd(w, i, outcome, end); found == 0 && !read && end != (policy.RolloutEnd{}) {
		found = rolloutOverwritten
	}
	switch {
	case end.HostDone:
		w.waiting &^= 1 << i
		w.resumed += bit(m.countsAsResumed)
		w.rolloutWritten()
		if end.Done {
			w.state = rolloutDone
		}
	case end.Stopped != "":
		w.state = rolloutStopped
		w.rolloutWritten()
	}
	return found
}

// progress returns the rollout as observed by the host whose operation ends, and the step that ends it.
func (m *rolloutMachine) progress(w *rolloutWorld, i int, outcome uint8) (policy.RolloutProgress, policy.Step) {
	others := 0
	for k := range m.hosts() {
		others += int(w.waiting >> k & 1 & bit(k != i))
	}
	t := policy.RolloutProgress{
		Host: hostName(i), Ongoing: w.state == rolloutRuns || w.state == rolloutPaused, Waiting: others,
		Wants: "3.6.16", Runs: "3.6.16", Member: i < rolloutVoters,
	}
	if w.hosts[i].wrongVersion != 0 {
		t.Runs = "3.6.15"
	}
	code := [...]policy.ReasonCode{policy.QuorumAtRisk, policy.Cycled, policy.Cancelled}[outcome]
	return t, policy.Step{Kind: policy.StepEndOp, Outcome: code}
}

func (h *rolloutHost) agentDies() {
	h.agentDown, h.step, h.pending, h.hasToken = 1, rolloutNone, policy.RequestStays, 0
}

// goesDown ends all processes on a host.
func (w *rolloutWorld) goesDown(i int) {
	h := &w.hosts[i]
	h.agentDies()
	h.hostDown = 1
	if h.unit != inactive {
		h.unit = stoppedForRequest
	}
	if h.begun == begunNow {
		h.begun = begunBefore
	}
	if w.owns(i) {
		w.sameBoot = 0
	}
}

// etcdServes marks a host's etcd as serving. The host's agent observes that etcd has started since the operation began.
func (h *rolloutHost) etcdServes() {
	h.unit, h.down, h.restarted = active, 0, 1
}

// boots applies the boot of a host. A voter's etcd starts at the boot.
func (m *rolloutMachine) boots(w *rolloutWorld, i int) {
	h := &w.hosts[i]
	h.hostDown, h.agentDown = 0, 0
	if i < rolloutVoters {
		h.unit, h.restarted = starting, 1
	} else {
		h.down = 0
	}
}
