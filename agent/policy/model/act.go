// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// rules describe how the explored policy and protocol differ from the real ones. The zero value makes no difference.
// Every field except ignored seeds a mistake.
type rules struct {
	view      func(v *policy.View)     // changes the view before the policy decides
	decision  func(d *policy.Decision) // changes what the policy decides
	quietView func(v *policy.View)     // changes the view before the policy decides whether to poll less often
	ignored   []breach                 // breaches that are ignored, to explore their consequences

	leaseBeforeValidity bool // validity counts from the receipt of the answer, so the lease may end first
	noConfirm           bool // a step starts without confirming that this agent still holds the lock
	noDeadline          bool // a step does not check the lock's validity and may outlast it
	noTokenFence        bool // a write of the record does not compare the lock
	noOpFence           bool // a write of the record does not compare the record with the one that was read
	takeUnfenced        bool // taking the lock does not compare the record with the one that was read
	releaseOpOnStart    bool // when an agent starts, it deletes the record that names its host
	// afterTransition changes what the disk records about a request after a transition, given the request before and
	// after it. It may be nil.
	afterTransition      func(before, after policy.Request) policy.Request
	keptAlive            bool // an unused lease is kept alive until the agent's process ends
	renewedOutsideLoop   bool // another goroutine renews the lock of a hung control loop
	removeBlindly        bool // a member is removed without looking it up first
	ejectionAfterRemoval bool // the ejected host is recorded after the removal instead of before
	lockByName           bool // when an agent starts, it considers a lock with its host's name its own
}

// act begins an agent's decided step, and completes the step if it takes no time.
func (m *machine) act(w *world, h int) breach {
	a := &w.hosts[h]
	step := a.step
	a.stepFailed = 0
	switch {
	case changesMembership(step):
		return m.send(w, h)
	case unfencedCall(step):
		return m.call(w, h)
	case writesRecord(step):
		found := fine
		if step = m.beginsNow(w, h); step != none && m.confirm(w, h) {
			m.recordOnDisk(w, h)
			found = m.write(w, h, step, w.owns(h), w.unchanged(a.fresh, a.absent), a.outdated != 0, false)
			if step == beginRemoval && !w.removes(h) { // the write failed, so the removal has not begun
				w.rmBegun = 0
			}
		}
		a.phase = idle
		return found
	}
	a.phase = idle
	switch step {
	case takeLock:
		m.take(w, h)
	case releaseLock:
		if w.owns(h) && w.reaches(h) {
			w.freeLock()
		}
		a.hasToken, a.valid = 0, 0
	case moveAside:
		if m.confirm(w, h) {
			return w.moveAside(h)
		}
	case writeEnv:
		a.env = joinEnv
		if a.outdated != 0 {
			a.env = noEnv
		}
	case writeNewEnv:
		a.env = newEnv
	case writeURL:
		w.writeURL(h)
	case startUnit, startAsIs:
		w.applyStartGuard(h, guardOf(step))
		w.starts(h)
		m.transition(a, a.standing().EtcdStarted())
	case stopUnit:
		return w.stop(h)
	case runCommand:
		if next, stands := a.standing().StartsProgram(); m.confirm(w, h) && stands {
			m.transition(a, next)
		}
	case deleteOld:
		if m.confirm(w, h) {
			m.transition(a, a.standing().DeletesOld())
		}
	case finishBootstrap:
		a.request = 0
	}
	return fine
}

func (w *world) moveAside(h int) breach {
	a := &w.hosts[h]
	found := fine
	switch {
	case a.data == current:
		found = memberDataMoved
	case a.data == old && (a.unit == starting || a.unit == active):
		found = dataMovedUnderEtcd
	}
	a.data = empty
	return found
}

func (w *world) stop(h int) breach {
	a := &w.hosts[h]
	found := fine
	if a.list == voter && a.data == current && (a.unit == starting || a.unit == active) {
		found = voterStopped
	}
	if a.unit == starting || a.unit == active {
		a.unit = inactive
	}
	return found
}

// confirm models lock.Confirm: it reports whether the validity covers the step and a new transaction shows that this
// agent holds the lock.
func (m *machine) confirm(w *world, h int) bool {
	a := &w.hosts[h]
	if m.noConfirm {
		return w.reaches(h)
	}
	if a.hasToken == 0 || (a.valid == 0 && !m.noDeadline) || !w.reaches(h) {
		return false
	}
	if !w.owns(h) {
		a.hasToken, a.valid = 0, 0
		return false
	}
	return true
}

// send begins a membership change: the client has read the member list, and the call is in flight.
func (m *machine) send(w *world, h int) breach {
	a := &w.hosts[h]
	ok := m.confirm(w, h)
	switch {
	case !ok:
	case a.step == addLearner:
		ok = a.list == unlisted
	case a.step == removeLearner:
		ok = a.outdated == 0 && (m.removeBlindly || w.hosts[a.target].list == learner)
	case a.step == removeMember:
		ok = a.outdated == 0 && w.hosts[a.target].list != unlisted
	case a.step == promote, a.step == updateMember, a.step == restoreMember:
		ok = a.outdated == 0
	}
	if !ok {
		a.phase = idle
		return fine
	}
	a.phase = sent
	switch {
	case !w.owns(h):
		return sentWithoutLock
	case a.step == removeLearner && w.hosts[a.target].list == voter:
		return voterRemoved
	}
	return fine
}

// land applies a membership change in flight. If refused is set, etcd refuses the change although it could accept it.
// ok is false if refused is set and etcd cannot refuse the change.
func (w *world) land(h int, refused bool) (ok bool, found breach) {
	a := &w.hosts[h]
	step, target, gone, faulted := a.step, int(a.target), a.outdated != 0, a.faulted != 0
	if !namesTarget(step) {
		target = h
	}
	if refused && (gone || w.mayRefuse(step, target) == 0) {
		return false, fine
	}
	a.phase = idle
	if gone {
		return true, fine
	}
	if refused {
		a.stepFailed = bit(step == promote)
		return true, fine
	}
	return true, w.change(step, target, false, faulted)
}

// change applies a membership change, and checks that the cluster keeps its quorum and that an ejection is recorded.
func (w *world) change(step uint8, target int, late, faulted bool) breach {
	switch step {
	case addLearner:
		w.add(target, late)
	case promote:
		w.promote(target)
	case updateMember, restoreMember:
		w.updateURL(target, step == updateMember)
	case removeLearner, removeMember:
		unrecorded := w.ejectionUnrecorded(target)
		if w.remove(target, late); unrecorded && w.hosts[target].list == unlisted {
			return ejectionForgotten
		}
	}
	if !w.quorum() && !faulted {
		return quorumLost
	}
	return fine
}

// detach turns a membership change in flight into a late one, because its caller no longer waits for it.
func (w *world) detach(h int) {
	a := &w.hosts[h]
	if a.phase != sent || !changesMembership(a.step) {
		return
	}
	a.phase = idle
	switch {
	case a.outdated != 0:
	case a.step == addLearner:
		a.lateAdd = 1
	case a.step == promote:
		a.latePromote = 1
	case a.step == updateMember, a.step == restoreMember:
		a.lateUpdate, w.lateRestores = 1, bit(a.step == restoreMember)
	case a.step == removeLearner, a.step == removeMember:
		t := &w.hosts[a.target]
		t.lateRemove = 1
		t.faulted |= a.faulted
	}
}

// take models lock.Take.
func (m *machine) take(w *world, h int) {
	a := &w.hosts[h]
	if !w.reaches(h) || (a.hasToken != 0 && a.valid != 0) {
		return
	}
	if a.hasToken != 0 { // the agent only renews the lock
		a.valid = bit(w.owns(h))
		a.hasToken = a.valid
		return
	}
	if w.lock < 0 && (w.unchanged(a.fresh, a.absent) || m.takeUnfenced) {
		w.lockTaken(h)
		w.holderUnaware, a.hasToken, a.valid = 0, 1, 1
	}
}

// unchanged reports whether a transaction finds the record that it expects: the one that was read, or none if there was
// none. A record that was created and deleted in between does not matter.
func (w *world) unchanged(fresh, bare uint8) bool { return fresh != 0 || (bare != 0 && w.op == 0) }

func (w *world) lockTaken(h int) {
	w.freeLock()
	w.lock = int8(h)
}

// freeLock deletes the lock key, so that writes which compare its token fail.
func (w *world) freeLock() {
	w.lock, w.holderUnaware, w.opToken = -1, 0, 0
	for i := range w.n {
		w.hosts[i].lateToken = 0
	}
}

// write applies one fenced write of the operation record. token and record report whether the lock and the record are
// still those that the write expects, gone whether the member named by the write has left, and late whether the write
// was not answered in time.
func (m *machine) write(w *world, h int, step uint8, token, record, gone, late bool) breach {
	if (!token && !m.noTokenFence) || (!record && !m.noOpFence) {
		return fine
	}
	found := fine
	switch begins := begins(step); {
	case !token:
		found = writeWithoutLock
	case !record || (begins && w.op != 0) || (!begins && w.op == 0):
		found = recordOverwritten
	case !begins && w.opCycle != 0 && int(w.opHost) != h:
		found = cycleTouched
	case (step == rollBackKeep || step == rollBackOwn || step == endRemoval || step == stamp) && int(w.opHost) != h &&
		w.opLeft == 0 && w.orphan == 0:
		found = adoptedEarly
	}
	if found == fine && !late { // when a late write lands, the request may have changed
		found = w.judgeRecordedFirst(h, step)
	}
	own := w.joining(h)
	if begins(step) {
		w.opForged = 0
	}
	w.put(h, step, gone)
	if !m.ejectionAfterRemoval {
		w.recordEjection(step)
	}
	if (step == endJoined || step == endFailed) && own && !late {
		w.hosts[h].backoff = bit(step == endFailed)
	}
	if a := &w.hosts[h]; step == endCycle && !late {
		a.hostRequest = hostRequest{startGuard: a.startGuard}
	}
	if step == endRemoval && int(w.rmHost) == h && !late { // the request has ended, whatever the outcome
		w.rmRequested = 0
	}
	w.recordWritten()
	w.opToken, w.orphan, w.opReported = w.op, 0, 0
	w.sinceWrite = 1
	w.noteWrite()
	return found
}

// recordWritten marks the record as changed for all agents and late calls that expect a certain record. A paused agent
// or a late call that expects no record still does so: it does not detect that a record was created and deleted
// meanwhile. All other agents read the record again.
func (w *world) recordWritten() {
	for i := range w.n {
		h := &w.hosts[i]
		h.fresh, h.lateFresh = 0, 0
		if h.agent == up {
			h.absent = 0
		}
	}
}

// put applies a write to the record.
func (w *world) put(h int, step uint8, gone bool) {
	id := 1 + bit(gone || (namesOwn(step) && w.hosts[h].list == unlisted))
	if w.opCycle != 0 {
		w.opOld = 0
	}
	switch step {
	case beginVoter, beginStandby:
		w.op, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld = 1, uint8(h), 0, phaseBegun, 0, 1, 0
		w.opStandby = bit(step == beginStandby)
	case setAdded:
		w.opPhase, w.opID = phaseAdded, id
	case setStarted:
		w.opPhase, w.opID = phaseStarted, id
	case setPromoted:
		w.opPhase, w.opID = phasePromoted, id
	case rollBackKeep:
		w.opPhase = phaseRollback
	case rollBackOwn:
		w.opPhase, w.opID = phaseRollback, id
	case rollBackLeft:
		w.op, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld = 1, w.hosts[h].target, 1, phaseRollback, id, 1,
			0
		w.opStandby = w.hosts[w.opHost].named // a started learner without a join is a standby that was lost
	case beginCycle, beginReaddress, beginAgain, setBegun, setReady, setDown, setBack, setVerify, endCycle, endKeep:
		w.putCycle(h, step)
	case beginRemoval, setRemoving, endRemoval:
		w.putRemoval(h, step)
	case beginReplace, beginRemoveLost:
		w.putReplacement(h, step, gone)
	case beginLeave:
		w.putLeave(h, gone)
	case endJoined, endFailed:
		w.op = 0
	}
}
