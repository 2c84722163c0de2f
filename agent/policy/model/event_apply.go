// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// expand emits every possible next event with the world after it. next is valid only during the call of emit.
func (m *machine) expand(w *world, emit func(e event, next *world, found breach)) {
	for k := range kinds {
		hosts := w.n
		if k.global() {
			hosts = 1
		}
		for h := range hosts {
			for arg := range m.args(k) {
				e := event{k, uint8(h), arg}
				if class := e.class(); class != 0 && (class&m.faults == 0 || int(w.faults) >= m.budget) {
					continue
				}
				if !w.possible(k, h) {
					continue
				}
				next := &m.scratch
				*next = *w
				ok, found := m.apply(next, e)
				if ok {
					emit(e, next, found)
				}
			}
		}
	}
}

// possible cheaply rules out most impossible events. apply decides about the rest.
func (w *world) possible(k kind, i int) bool {
	h := &w.hosts[i]
	switch k {
	case evRound:
		return h.agent == up && h.phase == idle
	case evAct:
		return h.agent == up && h.phase == decided
	case evLand, evTimeout:
		return h.phase == sent
	case evLateAdd:
		return h.lateAdd != 0
	case evLatePromote:
		return h.latePromote != 0
	case evLateUpdate:
		return h.lateUpdate != 0
	case evLateRemove:
		return h.lateRemove != 0
	case evConnected:
		return w.urls[i].has(unverified)
	case evLateWrite:
		return h.lateWrite != 0
	case evUnitChanges:
		return h.unit == starting || h.unit == active || h.unit == stopping || h.unit == restarting
	case evProgress, evFallsBehind:
		return h.list == learner
	case evLearnerLags:
		return w.op != 0
	case evRetryDue:
		return h.stepFailed != 0
	case evBackoffOver:
		return h.backoff != 0
	case evEjectionWaitOver:
		return h.ejection == ejectedWaiting && h.list == unlisted
	case evValidityOver:
		return h.valid != 0
	case evAgentStarts, evAgentResumes:
		return h.agent != up
	case evHostBoots:
		return h.down != 0
	case evLinkHeals:
		return h.cutOff != 0
	case evMemberHeals:
		return h.isolated != 0
	case evReachHeals:
		return h.blind != 0
	case evHealthy:
		return h.health != healthy
	case evOperatorStarts:
		return (h.unit == inactive || h.unit == stoppedForRequest) && h.data == current
	case evCommandEnds:
		return h.work == command && h.program <= programRuns
	case evGraceOver:
		return w.dead == 0 && w.mayBeDead(i)
	case evReported:
		return w.dead|w.opReplace != 0
	case evRecordAges, evServed:
		return w.opCycle != 0
	case evRequestEnds:
		return h.work != noWork
	case evRemovalExpires:
		return w.rmRequested != 0 && w.rmExpired == 0
	case evRequestRemoval:
		return w.rmRequested|w.opRemove == 0
	case evRaised:
		return w.lowered != 0
	case evDecided:
		return w.oldest != 0
	case evLowered:
		return w.lowered == 0 && w.limit > 1
	case evTransferExpires:
		return w.trRequested != 0 && w.trExpired == 0
	case evReboots:
		return h.work == externalReboot
	case evExternalStop:
		return w.mayStopExternally(i)
	case evSwapped:
		retired := h.list == learner && w.isRetired(i) && !w.inOperation(i) && h.data == current
		return retired || h.inMaintenance() && h.unit == stoppedForRequest && h.list == voter && h.data == current &&
			h.recorded != 0
	}
	return true
}

// apply applies an event if it is possible, and returns the breach that it causes.
func (m *machine) apply(w *world, e event) (ok bool, found breach) {
	h := int(e.host)
	switch {
	case e.kind <= evLateWrite:
		ok, found = m.agentEvent(w, e.kind, h, e.arg)
	case e.kind <= evLeaseOver:
		ok, found = m.timeEvent(w, e.kind, h, e.arg)
	case e.kind <= evOperatorStarts:
		ok, found = m.healEvent(w, e.kind, h)
	case e.kind == evExternalStop:
		ok, found = m.externalStop(w, h)
	case e.kind == evRequestRemoval:
		ok = m.requestRemoval(w, h, e.arg)
	case e.kind == evRequestTransfer:
		ok = m.requestTransfer(w, h, e.arg)
	case e.kind == evTransferExpires:
		w.trExpired, ok = 1, true
	case e.kind == evRetire:
		ok = m.retire(w, h, e.arg)
	case e.kind == evRaised:
		ok = w.raiseLimit()
	case e.kind == evResize:
		ok = m.resize(w)
	case e.kind == evDecided:
		w.oldest, ok = 0, true
	case e.kind == evRemovalExpires:
		w.rmExpired, ok = 1, true
	case e.kind <= evRequest:
		ok = m.requestEvent(w, e.kind, h, e.arg)
	default:
		if ok = w.faultEvent(e.kind, h, e.arg); ok {
			w.faults++
		}
	}
	if !ok {
		return false, fine
	}
	w.dropWrites(m.rules)
	w.dropSteps(m.rules)
	w.tidy()
	m.forgetStartGuards(w)
	if found = m.unlessIgnored(found); found == fine {
		found = m.unlessIgnored(w.judgeState())
	}
	return true, found
}

// unlessIgnored returns the breach, or fine if the rules ignore it.
func (m *machine) unlessIgnored(found breach) breach {
	if slices.Contains(m.ignored, found) {
		return fine
	}
	return found
}

// dropWrites drops late writes that can never be committed.
func (w *world) dropWrites(r rules) {
	for i := range w.n {
		h := &w.hosts[i]
		if h.lateWrite == 0 {
			continue
		}
		token := h.lateToken != 0 || r.noTokenFence || h.lateWrite == takeLock
		record := h.lateFresh|h.lateAbsent != 0 || (r.noOpFence && h.lateWrite != takeLock) ||
			(r.takeUnfenced && h.lateWrite == takeLock)
		if !token || !record {
			h.lateWrite = 0
		}
	}
}

// dropSteps drops decisions that can have no effect: a step whose lock or record has changed, a take-down or a command
// for a cancelled request, and a call for a removed member. Instead of acting on them, the agent begins its next round.
func (w *world) dropSteps(r rules) {
	for i := range w.n {
		h := &w.hosts[i]
		if h.phase == idle {
			continue
		}
		void := h.outdated != 0 && changesMembership(h.step)
		if h.phase == decided {
			locked := underLock(h.step)
			bound := writesRecord(h.step) || h.step == takeLock
			_, stands := h.standing().StopsEtcd() // the agent reads the disk again
			void = void || ((takesDown(h.step) || h.step == runCommand) && (h.work == noWork || !stands))
			// That an operator starts etcd within the milliseconds before the environment is written is not modelled:
			// the new URL would stay unverified until quorumd is restarted, which then restarts etcd as well.
			void = void || h.step == writeURL && (h.unit == starting || h.unit == active)
			void = void || (locked && !w.owns(i) && !r.noConfirm) ||
				(bound && h.fresh|h.absent == 0 && !r.noOpFence && !r.takeUnfenced)
		}
		if void {
			h.phase = idle
		}
	}
}

// agentEvent applies an event of an agent or of one of its calls.
func (m *machine) agentEvent(w *world, k kind, h int, arg uint8) (ok bool, found breach) {
	a := &w.hosts[h]
	switch k {
	case evRound:
		return m.round(w, h, rank(arg%2), arg/2)
	case evAct:
		return m.actEvent(w, h, arg)
	case evLand:
		if a.phase == sent && unfencedCall(a.step) {
			return w.callLands(h, arg != 0)
		}
		if a.phase != sent || !w.quorum() {
			return false, fine
		}
		return w.land(h, arg != 0)
	case evTimeout:
		if a.phase != sent || a.agent != up || !changesMembership(a.step) {
			return false, fine
		}
		if w.reaches(h) && !m.spend(w, LateCall) {
			return false, fine
		}
		a.stepFailed = bit(a.step == promote)
		w.detach(h)
		return true, fine
	case evLateWrite:
		return m.lateWrite(w, h, arg)
	}
	return w.lateChange(k, h)
}

// spend takes one fault of a class from the budget, and reports whether the scope allows it.
func (m *machine) spend(w *world, class Faults) bool {
	if m.faults&class == 0 || int(w.faults) >= m.budget {
		return false
	}
	w.faults++
	return true
}

// actEvent begins a step. With arg 1, the step is a write that etcd does not answer in time, or the agent dies early in
// a step of several actions; with arg 2, it dies later. The timeout of a membership change is evTimeout.
func (m *machine) actEvent(w *world, h int, arg uint8) (ok bool, found breach) {
	a := &w.hosts[h]
	if a.phase != decided || a.agent != up {
		return false, fine
	}
	if arg == 0 {
		return true, m.act(w, h)
	}
	if starts(a.step) || arg == 2 {
		return m.diesInStep(w, h, arg)
	}
	if (!writesRecord(a.step) && a.step != takeLock) || a.step == rollBackLeft || a.lateWrite != 0 ||
		!m.spend(w, LateCall) {
		return false, fine
	}
	if a.step == takeLock {
		if !w.reaches(h) || a.hasToken != 0 {
			return false, fine
		}
	} else if !m.confirm(w, h) {
		return false, fine
	}
	if a.step = m.beginsNow(w, h); a.step == none {
		return false, fine
	}
	m.recordOnDisk(w, h)
	a.lateWrite, a.lateFresh, a.lateToken, a.lateAbsent = a.step, a.fresh, bit(w.owns(h)), a.absent
	a.phase = idle
	return true, fine
}

// lateWrite applies a write that was not answered in time or, with arg 1, loses it for good.
func (m *machine) lateWrite(w *world, h int, arg uint8) (ok bool, found breach) {
	a := &w.hosts[h]
	step := a.lateWrite
	if step == 0 || !w.quorum() {
		return false, fine
	}
	fresh, token := w.unchanged(a.lateFresh, a.lateAbsent) || (step == takeLock && m.takeUnfenced), a.lateToken != 0
	a.lateWrite = 0
	if arg != 0 {
		return true, fine
	}
	if step == takeLock {
		if w.lock >= 0 || !fresh {
			return true, fine
		}
		w.lockTaken(h)
		w.holderUnaware = 1
		return true, fine
	}
	return true, m.write(w, h, step, token, fresh, false, true)
}

func (w *world) lateChange(k kind, h int) (ok bool, found breach) {
	a := &w.hosts[h]
	late, step := &a.lateAdd, addLearner
	switch k {
	case evLatePromote:
		late, step = &a.latePromote, promote
	case evLateUpdate:
		if late, step = &a.lateUpdate, updateMember; w.lateRestores != 0 {
			step = restoreMember
		}
	case evLateRemove:
		late, step = &a.lateRemove, removeLearner
	}
	if *late == 0 || !w.quorum() {
		return false, fine
	}
	*late = 0
	return true, w.change(step, h, true, a.faulted != 0)
}

// round runs one round of an agent: the agent renews its lock, observes and decides.
func (m *machine) round(w *world, h int, r rank, how uint8) (ok bool, found breach) {
	a := &w.hosts[h]
	leads, unread := how != follower, how == leaderWithoutReads
	if a.agent != up || a.phase != idle || a.down != 0 || (leads && !w.mayLead(h)) || unread && !w.readsMayTimeOut(h) ||
		comparesWrites(how) && !w.mayStepDown(h) {
		return false, fine
	}
	if w.reaches(h) && !unread {
		if a.hasToken != 0 {
			a.hasToken = bit(w.owns(h))
			a.valid = a.hasToken
		}
	}
	w.tidy()
	s := w.observe(h)
	s.setViewpoint(how)
	choices := m.decide(&s)
	if m.inOrder {
		r = byNumber
	}
	c := &choices[r]
	if r == selfLast && c.step == choices[selfFirst].step && c.target == choices[selfFirst].target {
		return false, fine // the rank makes no difference
	}
	if found = judgeComparison(&s, *c); found == fine {
		found = w.judgeDecision(h, *c, leads, m.target(w.resized))
	}
	if found == fine {
		found = m.judgeSize(w, h, *c)
	}
	if found == fine {
		found = m.judgeLearnerBegins(w, h, *c)
	}
	if found == fine {
		found = m.judgeNextLimit(w, h, *c)
	}
	if found == fine {
		found = w.judgeUpgrade(*c)
	}
	if found == fine && m.External {
		found = w.judgeExternal(h, *c, leads)
	}
	if found == fine {
		found = m.judgeAlarm(w, h, *c)
	}
	if found == fine && m.view == nil && s.reachable != 0 && !unread &&
		c.ready != w.ready(h) {
		found = readyDiffers
	}
	if found == fine {
		found = w.judgeStartGuard(h, *c)
	}
	if found == fine && m.view == nil && c.quiet {
		found = w.judgeQuiet(h)
	}
	if found == fine {
		found = w.judgeRequest(h, *c)
	}
	if found == fine {
		found = w.judgeRecall(h, *c)
	}
	if found == fine {
		found = w.judgeRemovalNote(h, c.removed)
	}
	if found == fine {
		found = w.judgeTransferNote(h, &s, c.transferred)
	}
	if found == fine {
		found = w.judgeSelf(h, c.self)
	}
	if found == fine && c.inVain {
		found = begunInVain
	}
	if !m.External { // the start guard does not apply to an external etcd
		w.applyStartGuard(h, c.startGuard)
	}
	m.noteRequest(w, h, *c)
	w.noteRemoval(c.removed)
	w.noteTransfer(c.transferred)
	a.noteSelf(c.self)
	if s.reachable != 0 && w.joining(h) {
		w.learnerMoved = 0
	}
	if c.step != none {
		a.phase, a.step, a.target, a.outdated, a.fresh = decided, c.step, c.target, 0, 1
		if c.step == transferLeadership { // every voter may lead at every moment, so the target has no effect
			a.target = 0
		}
		if (c.step == takeLock || begins(c.step)) && w.op == 0 {
			a.fresh, a.absent = 0, 1
		}
		if a.lateAdd|a.latePromote|a.lateUpdate|a.lateRemove == 0 {
			a.faulted = 0
		}
		if c.step == promote && found == fine && !w.serves(h) { // the learner has just been cut off; see judgePromote
			a.faulted = 1
		}
	}
	return true, found
}
