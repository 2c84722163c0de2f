// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// timeEvent applies an event that occurs sooner or later without an agent or a fault. It can occur at any time, with
// two exceptions. A lease never ends before its holder's validity, which counts from before the request was sent. And
// where the policy waits for the lock's TTL so that no removal can be applied any more, that wait does not end while
// one still can.
func (m *machine) timeEvent(w *world, k kind, i int, arg uint8) (ok bool, found breach) {
	h := &w.hosts[i]
	switch k {
	case evUnitChanges:
		return w.unitChanges(i, arg)
	case evProgress:
		if h.list != learner || h.progress == steady || !w.serves(i) {
			return false, fine
		}
		h.progress++
		w.learnerStalled &= bit(w.learnerAt() != i)
		if w.joining(i) {
			w.noteWrite()
		}
	case evLearnerLags: // while the learner does not answer, no decision depends on its lag
		return w.answers(int(w.opHost)) && compareAndSet(&w.sinceWrite, 1, 2), fine
	case evRetryDue:
		h.stepFailed = 0
	case evSettled:
		if w.stable != 0 || w.settleIrrelevant() {
			return false, fine
		}
		w.stable = 1
	case evCooled:
		if w.idleTime == 2 || (w.idleTime == 1 && m.Requests+m.ResizeTo+m.Retirements == 0) || w.op != 0 ||
			w.stable == 0 {
			return false, fine
		}
		if w.resized != 0 && w.removalLate() { // a voter leaves only when no earlier removal can take effect
			return false, fine
		}
		if w.updateLate() {
			return false, fine
		}
		w.idleTime++
	case evStalled:
		l := w.learnerAt()
		if l < 0 && w.op != 0 && w.opCycle|w.opRemove|w.opLeave == 0 && w.hosts[w.opHost].list == voter {
			l = int(w.opHost)
		}
		if l < 0 || w.learnerStalled != 0 ||
			(w.serves(l) && (w.hosts[l].list == voter || w.hosts[l].progress != behind)) {
			return false, fine
		}
		w.learnerStalled = 1
	case evBackoffOver:
		if h.backoff == 0 {
			return false, fine
		}
		h.backoff = 0
	case evEjectionWaitOver:
		return w.ejectedRecovers(i), fine
	case evOrphaned:
		if w.op == 0 || w.opCycle|w.opToken != 0 || w.orphan != 0 {
			return false, fine
		}
		w.orphan = 1
	case evRecordAges:
		return w.ageRecord(), fine
	case evServed:
		return w.serves(int(w.opHost)) && w.hosts[w.opHost].list == voter && compareAndSet(&w.servedLong, 0, 1), fine
	case evCommandEnds: // a program that has not been started can only fail, because it is missing
		if h.down != 0 || (h.program != programRuns && arg == 0) {
			return false, fine
		}
		h.program = programSucceeded + arg
	case evGraceOver:
		return m.graceOver(w, i), fine
	case evReported:
		return w.reportAgain(), fine
	case evConnected:
		return w.connects(i), fine
	case evValidityOver:
		return m.validityOver(w, i), fine
	case evLeaseOver:
		return m.leaseOver(w), fine
	}
	return true, fine
}

// validityOver ends the validity of an agent's lock, which happens only if the agent cannot renew it. The deadline of
// the agent's call passes at the same time.
func (m *machine) validityOver(w *world, i int) bool {
	h := &w.hosts[i]
	if h.hasToken == 0 || h.valid == 0 || (h.agent != paused && w.reaches(i)) {
		return false
	}
	if m.renewedOutsideLoop && w.reaches(i) {
		return false
	}
	h.valid = 0
	if !m.noDeadline {
		w.detach(i)
	}
	return true
}

// leaseOver ends the lease of the lock at the server.
func (m *machine) leaseOver(w *world) bool {
	if w.lock < 0 || !w.quorum() {
		return false
	}
	holder := int(w.lock)
	h := &w.hosts[holder]
	switch {
	case m.keptAlive && w.holderUnaware != 0 && h.agent != down:
		return false
	case w.holderUnaware != 0 || h.hasToken == 0 || h.valid == 0:
	case m.leaseBeforeValidity && (h.agent == paused || !w.reaches(holder)):
	default:
		return false
	}
	w.freeLock()
	return true
}

// healEvent heals a fault. Healing does not count against the budget.
func (m *machine) healEvent(w *world, k kind, i int) (ok bool, found breach) {
	h := &w.hosts[i]
	switch k {
	case evAgentStarts:
		if h.agent != down || h.down != 0 {
			return false, fine
		}
		h.agent = up
		if m.lockByName && int(w.lock) == i {
			h.hasToken, h.valid = 1, 1
		}
		if m.releaseOpOnStart && w.ownsOperation(i) && w.reaches(i) {
			w.op = 0
			return true, recordReleased
		}
	case evAgentResumes:
		return compareAndSet(&h.agent, paused, up), fine
	case evHostBoots:
		if h.down == 0 {
			return false, fine
		}
		found = w.boots(i)
		if m.External && found == startedEarly { // the external manager starts etcd even if the start guard is set
			found = fine
		}
		return true, found
	case evLinkHeals:
		return compareAndSet(&h.cutOff, 1, 0), fine
	case evMemberHeals:
		return compareAndSet(&h.isolated, 1, 0), fine
	case evReachHeals:
		return compareAndSet(&h.blind, 1, 0), fine
	case evHealthy:
		if h.health == healthy {
			return false, fine
		}
		h.health = healthy
	case evOperatorResumes:
		return w.quorum() && compareAndSet(&w.pause, 1, 0), fine
	case evAlarmEnds:
		return compareAndSet(&w.alarm, 1, 0), fine
	case evOperatorStarts:
		if (h.unit != inactive && h.unit != stoppedForRequest) || h.startGuard != 0 || h.data != current ||
			h.down != 0 {
			return false, fine
		}
		w.starts(i)
	}
	return true, fine
}

// compareAndSet sets a field to the value to if it has the value from, and reports whether it did.
func compareAndSet(x *uint8, from, to uint8) bool {
	if *x != from {
		return false
	}
	*x = to
	return true
}

// faultEvent applies a fault or an operator's action, and reports whether that was possible.
func (w *world) faultEvent(k kind, i int, arg uint8) bool {
	h := &w.hosts[i]
	ok := true
	switch k {
	case evAgentDies:
		if h.agent == down {
			return false
		}
		w.agentDies(i)
	case evAgentPauses:
		ok = compareAndSet(&h.agent, up, paused)
	case evEtcdDies:
		if h.unit != starting && h.unit != active {
			return false
		}
		h.unit = failed
		w.markFaulted()
	case evHostDies:
		if h.down != 0 {
			return false
		}
		w.hostDies(i)
	case evLinkCut:
		ok = compareAndSet(&h.cutOff, 0, 1)
		h.restartEjectionWait()
	case evMemberCut:
		if h.list == unlisted || h.unit != active || h.isolated != 0 {
			return false
		}
		h.isolated = 1
		w.markFaulted()
	case evReachLost:
		ok = compareAndSet(&h.blind, 0, 1)
	case evHealthChanges:
		if arg == healthy || h.health != healthy {
			return false
		}
		h.health = arg
		h.restartEjectionWait()
	case evTooLong:
		ok = w.op != 0 && w.opCycle|w.opRemove == 0 && compareAndSet(&w.opOld, 0, 1)
	case evFallsBehind:
		if h.list != learner || h.progress == behind {
			return false
		}
		h.progress = behind
	case evAlarm:
		ok = w.quorum() && compareAndSet(&w.alarm, 0, 1)
	case evSwapped:
		if h.data, h.recorded = empty, 0; h.list == learner {
			h.unit, h.progress = failed, behind
		}
	case evLowered:
		return w.lowerLimit(i)
	case evForged:
		return w.forgeRecord(i)
	case evDeleted:
		return w.deleteRecord()
	default:
		return w.operatorEvent(k, i)
	}
	return ok
}

// forgeRecord writes the most harmful record: a join, in the rollback phase, whose host is a standby or a voter.
func (w *world) forgeRecord(i int) bool {
	h := &w.hosts[i]
	if w.op != 0 || !w.quorum() || h.list == unlisted || h.named == 0 {
		return false
	}
	w.op, w.opHost, w.opForged, w.opPhase, w.opID = 1, uint8(i), 1, phaseRollback, 1+bit(h.list == voter)
	w.recordWritten()
	return true
}

// deleteRecord deletes the record as an operator's release does, but records no release.
func (w *world) deleteRecord() bool {
	if w.op == 0 || !w.quorum() {
		return false
	}
	w.op, w.opCycle = 0, 0
	w.recordWritten()
	w.markReleased()
	return true
}

// release applies an operator's release of an operation, even if the record of the operation is gone.
func (w *world) release() bool {
	if !w.quorum() || (w.op == 0 && !w.anyRecordDeleted()) {
		return false
	}
	for i := range w.n {
		if w.cycles(i) || (w.op == 0 && w.recordDeleted(i)) {
			w.hosts[i].released = bit(w.hosts[i].work != noWork)
		}
	}
	w.op, w.opCycle = 0, 0
	w.recordWritten()
	w.markReleased()
	return true
}

func (w *world) operatorEvent(k kind, i int) bool {
	h := &w.hosts[i]
	switch k {
	case evOperatorPauses:
		return w.quorum() && compareAndSet(&w.pause, 0, 1)
	case evOperatorReleases:
		return w.release()
	case evOperatorStops:
		if h.data != current || (h.unit != starting && h.unit != active) {
			return false
		}
		h.unit = inactive
		w.coverStoppedEtcd(i)
		w.markFaulted()
	}
	return true
}

// agentDies ends an agent's process. Its memory is lost, but its calls may still land.
func (w *world) agentDies(i int) {
	h := &w.hosts[i]
	w.detach(i)
	h.restartEjectionWait() // the model keeps the healthy period only in the agent's memory
	w.forgetTransfer(i)
	h.agent, h.phase, h.hasToken, h.valid, h.stepFailed, h.env = down, idle, 0, 0, 0, noEnv
}

func (w *world) hostDies(i int) {
	w.agentDies(i)
	w.goesDown(i)
	w.markFaulted()
}

// markFaulted marks every decision and call in flight. A member has failed or was stopped in the meantime, so the
// effect of a marked call on the quorum is not a violation.
func (w *world) markFaulted() {
	for i := range w.n {
		if h := &w.hosts[i]; h.phase != idle || h.lateAdd|h.latePromote|h.lateUpdate|h.lateRemove != 0 {
			h.faulted = 1
		}
	}
}
