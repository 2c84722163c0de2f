// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// unfencedCall reports whether a step of a host operation is a call that no transaction can fence. The call can take
// effect at any time while its agent lives, even if that agent was paused and has lost its lock. Until then the agent
// does nothing else. When the agent's process ends, the call has taken effect or never will.
func unfencedCall(step uint8) bool {
	switch step {
	case transferLeadership, restartUnit, takeDown, takeDownHeld, takeDownURL, reboot:
		return true
	}
	return false
}

func takesDown(step uint8) bool {
	return step == takeDown || step == takeDownHeld || step == takeDownURL
}

func starts(step uint8) bool { return step == startUnit || step == startAsIs }

// call begins an unfenced call. A take-down is recorded on disk before etcd is stopped.
func (m *machine) call(w *world, h int) breach {
	a := &w.hosts[h]
	if !m.confirm(w, h) {
		a.phase = idle
		return fine
	}
	a.phase = sent
	if takesDown(a.step) {
		next, stands := a.standing().StopsEtcd()
		if !stands {
			a.phase = idle
			return fine
		}
		m.transition(a, next)
	}
	w.applyStartGuard(h, guardOf(a.step))
	if !w.owns(h) {
		return calledWithoutLock
	}
	return fine
}

// callLands applies a call. If fails is set, the call fails; only a leadership transfer and a reboot can fail. A
// leadership transfer changes nothing, because every voter may lead at every moment.
func (w *world) callLands(h int, fails bool) (ok bool, found breach) {
	a := &w.hosts[h]
	step := a.step
	if a.agent == down || (fails && step != transferLeadership && step != reboot) {
		return false, fine
	}
	runs := a.unit == starting || a.unit == active
	released := a.faulted != 0 && !w.cycles(h)
	// A reboot is checked when it is decided. An etcd that is started after that goes down with the machine.
	if !fails && runs && step != transferLeadership && step != reboot {
		found = w.judgeLanding(h)
	}
	a.phase = idle
	// The operation's record was deleted, so the next operation may have begun. For the next operation, the effect of
	// this call is a fault.
	if released && !fails && step != transferLeadership {
		w.markFaulted()
	}
	switch {
	case fails:
		a.stepFailed = 1
	case step == reboot:
		w.reboots(h)
	case takesDown(step) && runs:
		if a.unit = stopping; step == takeDownURL {
			w.writeURL(h)
		}
	case step == restartUnit && runs:
		a.unit = restarting
	case step == restartUnit:
		w.starts(h)
	}
	return true, found
}

// diesInStep kills an agent within a step of several actions. With arg 2, the agent dies later than with arg 1.
func (m *machine) diesInStep(w *world, h int, arg uint8) (ok bool, found breach) {
	a := &w.hosts[h]
	switch {
	case starts(a.step) && a.stopped != 0:
		w.applyStartGuard(h, guardOf(a.step))
		if arg == 2 {
			w.starts(h)
		}
	case a.step == beginRemoval && arg == 2:
		if !m.confirm(w, h) {
			return false, fine
		}
		m.recordOnDisk(w, h)
	case a.step == endCycle:
		if !m.confirm(w, h) {
			return false, fine
		}
		m.recordOnDisk(w, h)
		found = m.write(w, h, a.step, w.owns(h), w.unchanged(a.fresh, a.absent), a.outdated != 0, true)
	default:
		return false, fine
	}
	if !m.spend(w, AgentCrash) {
		return false, fine
	}
	w.agentDies(h)
	return true, found
}

// recordOnDisk records the start or end of an operation on disk before the operation record is created or deleted.
// Otherwise, after a crash in between, the agent would repeat the work.
func (m *machine) recordOnDisk(w *world, h int) {
	a := &w.hosts[h]
	w.noteRemovalBegins(a.step)
	if a.work == noWork {
		return
	}
	switch a.step {
	case beginCycle, beginReaddress:
		m.transition(a, a.standing().Begins())
	case endKeep:
		m.transition(a, a.standing().GivenUp())
	case endCycle:
		m.transition(a, a.standing().OperationEnds())
	}
}

// putCycle applies a write to the record of a host operation.
func (w *world) putCycle(h int, step uint8) {
	switch step {
	case beginCycle, beginReaddress:
		w.op, w.opCycle, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld, w.opRestarted = 1, 1, uint8(h), 0,
			phaseBegun, 0, 1, 0, 0
		w.opStandby, w.hosts[h].released = 0, 0
		w.putReaddress(h, step == beginReaddress)
	case beginAgain:
		w.op, w.opCycle, w.opHost, w.opLeft, w.opPhase, w.opID, w.opStandby, w.opOld = 1, 1, uint8(h), 0, phaseBegun, 0,
			0, 0
		w.opBoot = bit(w.hosts[h].begun == begunNow)
		w.putReaddress(h, w.hosts[h].work == readdressing)
	case setBegun:
		w.opPhase = phaseBegun
	case setReady:
		w.opPhase = phaseReady
	case setDown:
		w.opPhase = phaseDown
	case setBack, setVerify:
		w.opPhase = phaseBack
	case endCycle, endKeep:
		w.op = 0
	}
	w.opVerify = bit(step == setVerify)
}

// ageRecord lets time pass without a write of the record, and reports whether that can change a decision.
func (w *world) ageRecord() bool {
	most := uint8(1)
	if w.opPhase == phaseReady {
		most = 2
	}
	if w.opCycle == 0 || w.opPhase == phaseBegun || w.opOld >= most {
		return false
	}
	w.opOld++
	return true
}

// mayLead reports whether a host's decision can depend on its own leadership, or on that of the member it removes or
// replaces.
func (w *world) mayLead(h int) bool {
	if w.removes(h) {
		return w.opPhase == phaseBegun && w.hosts[w.rmTarget].list == voter && w.serves(int(w.rmTarget))
	}
	if w.replaces(h) {
		target := int(w.rpTarget)
		return w.hosts[h].list == voter && w.rpGone == 0 && w.hosts[target].list == voter && w.serves(target)
	}
	if w.mayStepDown(h) {
		return true
	}
	if w.transferMayEnd(h) {
		return true
	}
	return w.cycles(h) && w.hosts[h].list == voter && w.serves(h) && w.opPhase == phaseReady
}

// markReleased marks hosts whose calls are in flight when the operation record is deleted, with or without a release,
// so that no effect of those calls counts as a violation. A request that remains may restart an etcd that an operator
// has stopped.
func (w *world) markReleased() {
	for i := range w.n {
		h := &w.hosts[i]
		if h.phase != idle && (unfencedCall(h.step) || h.step == removeMember) || h.lateRemove != 0 && w.opRemove != 0 {
			h.faulted = 1
		}
		w.coverStoppedEtcd(i)
	}
}

// judgeStop checks, at the time of the view, whether the other voters are healthy and keep quorum without host h.
func (w *world) judgeStop(h int, leads bool) breach {
	a := &w.hosts[h]
	if a.list != voter || (a.unit != starting && a.unit != active) {
		return fine
	}
	voters, unhealthy := 0, 0
	for i := range w.n {
		g := &w.hosts[i]
		if g.list == voter {
			voters++
		}
		if i != h && g.list == voter && (!w.serves(i) || !w.present(i) || g.health == slow || g.health == unknown) {
			return stopAtRisk
		}
		if i != h && g.list == learner && g.named != 0 && w.answers(i) && g.progress == behind && a.blind == 0 &&
			!w.isPermanent(i) {
			return stopAtRisk
		}
		standby := g.list == learner && g.named != 0 && !w.isPermanent(i)
		if g.health == slow && w.present(i) && (g.list == voter || standby) {
			unhealthy++
		}
	}
	switch {
	case voters < 3 || voters%2 == 0 || unhealthy > 1 || a.work == maintenanceRunning:
		return stopAtRisk
	case leads && (a.stepFailed == 0 || w.opOld == 0 || !a.isMaintenance()):
		return leaderStopped
	}
	return fine
}

// judgeLanding checks the other voters when a running etcd is stopped. After a fault since the step's view, no effect
// counts as a violation.
func (w *world) judgeLanding(h int) breach {
	if w.hosts[h].list != voter || w.hosts[h].faulted != 0 {
		return fine
	}
	if !w.cycles(h) {
		return stoppedWithoutOp
	}
	for i := range w.n {
		g := &w.hosts[i]
		if i == h || g.list != voter || w.runs(i) {
			continue
		}
		if g.stopped != 0 || g.unit == restarting {
			return twoDown
		}
		return stopAtRisk
	}
	return fine
}

// judgeEnd checks whether a host is back when its operation is about to end.
func (w *world) judgeEnd(h int, c choice) breach {
	a := &w.hosts[h]
	if found := w.judgeVerified(h); found != fine && c.outcome == policy.Cycled {
		return found
	}
	switch {
	case c.outcome == policy.MemberLost && a.lossRecorded() && w.workDone(h):
	case c.outcome == policy.MemberLost:
		return endedEarly
	case a.work == command && a.program != programSucceeded && a.program != succeededCleaned &&
		c.outcome == policy.Cycled:
		return notRun
	case a.work == agentReboot && c.outcome == policy.Cycled && w.opBoot != 0,
		a.work == agentReboot && c.outcome == policy.Recalled && w.opBoot == 0,
		a.work != agentReboot && c.outcome == policy.Cycled && a.recalled != 0,
		a.work != agentReboot && c.outcome == policy.Recalled && a.recalled == 0:
		return recallMisreported
	case a.list != voter || a.work == maintenanceRunning:
	case !returned(c.outcome) && (a.stopped != 0 || a.unit == stopping || a.unit == restarting):
		return endedEarly
	case c.step == endCycle && a.unit != inactive && a.unit != stoppedForRequest && w.opRestarted != 0 &&
		(!w.serves(h) || w.servedLong == 0):
		return endedEarly
	case returned(c.outcome) && (!w.serves(h) || w.servedLong == 0):
		return endedEarly
	}
	return fine
}

// returned reports whether an outcome means that the host's member is back.
func returned(outcome policy.ReasonCode) bool {
	return outcome == policy.Cycled || outcome == policy.Recalled
}
