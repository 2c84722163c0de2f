// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// rules are the protocol of lock and agent. The zero value is the real one; every field is a
// mistake in it.
type rules struct {
	view func(v *policy.View)     // what the policy is made to see
	say  func(d *policy.Decision) // what it is made to say
	calm func(v *policy.View)     // what it is made to see where it says whether all is quiet
	past []breach                 // promises whose breach is let pass, so that it is seen what follows from it

	leaseBeforeValidity bool // validity counts from receipt: the lease may end before it
	noConfirm           bool // a step starts without asking whether the lock is still ours
	noDeadline          bool // neither does it ask for its validity, nor end with it
	noTokenFence        bool // a write of the record is not bound to the lock
	noOpFence           bool // a write of the record is not bound to the record that was seen
	takeUnfenced        bool // taking the lock is not bound to the record that was seen
	releaseOpOnStart    bool // an agent that starts deletes the record that names its host
	// noted changes what the disk says of a request after a transition, given how it stood before. It may be nil.
	noted         func(before, after policy.Standing) policy.Standing
	keptAlive     bool // a lease that nobody uses is kept alive as long as the process lives
	renewedAside  bool // the lock of a loop that hangs is renewed beside it
	removeBlindly bool // what is removed is not looked up first
	outAfterwards bool // who is taken out is written down after the removal, and not before
	lockByName    bool // an agent that starts believes a lock that bears its host's name
}

// act begins the step that an agent has decided on; a step that is done at once is finished.
func (m *machine) act(w *world, h int) breach {
	a := &w.hosts[h]
	step := a.step
	a.tried = 0
	switch {
	case changesMembership(step):
		return m.send(w, h)
	case cycleCall(step):
		return m.call(w, h)
	case writesRecord(step):
		found := fine
		if m.confirm(w, h) {
			m.note(w, h)
			found = m.write(w, h, step, w.owns(h), w.unchanged(a.fresh, a.bare), a.gone != 0, false)
			if step == beginRemoval && !w.removes(h) { // it is not taken
				w.rmRuns = 0
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
		a.belief, a.valid = 0, 0
	case moveAside:
		if m.confirm(w, h) {
			return w.moveAside(h)
		}
	case writeEnv:
		a.env = joinEnv
		if a.gone != 0 {
			a.env = noEnv
		}
	case writeNewEnv:
		a.env = newEnv
	case startUnit, startAsIs:
		w.noteHold(h, guardOf(step))
		w.starts(h)
		m.moves(a, a.standing().EtcdStarted())
	case stopUnit:
		return w.stop(h)
	case runCommand:
		if next, stands := a.standing().StartsProgram(); m.confirm(w, h) && stands {
			m.moves(a, next)
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

// confirm is lock.Confirm: the validity covers the step, and a fresh transaction shows that the
// lock is ours.
func (m *machine) confirm(w *world, h int) bool {
	a := &w.hosts[h]
	if m.noConfirm {
		return w.reaches(h)
	}
	if a.belief == 0 || (a.valid == 0 && !m.noDeadline) || !w.reaches(h) {
		return false
	}
	if !w.owns(h) {
		a.belief, a.valid = 0, 0
		return false
	}
	return true
}

// send begins a change of membership: the client has looked at the member list, the call is on
// its way.
func (m *machine) send(w *world, h int) breach {
	a := &w.hosts[h]
	ok := m.confirm(w, h)
	switch {
	case !ok:
	case a.step == addLearner:
		ok = a.list == unlisted
	case a.step == removeLearner:
		ok = a.gone == 0 && (m.removeBlindly || w.hosts[a.target].list == learner)
	case a.step == removeMember:
		ok = a.gone == 0 && w.hosts[a.target].list != unlisted
	case a.step == promote:
		ok = a.gone == 0
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

// land lets a change of membership that is on its way reach etcd, which may refuse it without
// need.
func (w *world) land(h int, refused bool) (ok bool, found breach) {
	a := &w.hosts[h]
	step, target, gone, faulted := a.step, int(a.target), a.gone != 0, a.faulted != 0
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
		a.tried = bit(step == promote)
		return true, fine
	}
	return true, w.change(step, target, false, faulted)
}

// change applies a change of membership and looks what it has done to the quorum.
func (w *world) change(step uint8, target int, late, faulted bool) breach {
	switch step {
	case addLearner:
		w.add(target, late)
	case promote:
		w.promote(target)
	case removeLearner, removeMember:
		unwritten := w.unwritten(target)
		if w.remove(target, late); unwritten && w.hosts[target].list == unlisted {
			return ejectionForgotten
		}
	}
	if !w.quorum() && !faulted {
		return quorumLost
	}
	return fine
}

// detach makes a call that is on its way one that may land at any time: its caller does not wait
// for it any more.
func (w *world) detach(h int) {
	a := &w.hosts[h]
	if a.phase != sent || !changesMembership(a.step) {
		return
	}
	a.phase = idle
	switch {
	case a.gone != 0:
	case a.step == addLearner:
		a.lateAdd = 1
	case a.step == promote:
		a.latePromote = 1
	case a.step == removeLearner, a.step == removeMember:
		t := &w.hosts[a.target]
		t.lateRemove = 1
		t.faulted |= a.faulted
	}
}

// take is lock.Take.
func (m *machine) take(w *world, h int) {
	a := &w.hosts[h]
	if !w.reaches(h) || (a.belief != 0 && a.valid != 0) {
		return
	}
	if a.belief != 0 { // it only tries to renew
		a.valid = bit(w.owns(h))
		a.belief = a.valid
		return
	}
	if w.lock < 0 && (w.unchanged(a.fresh, a.bare) || m.takeUnfenced) {
		w.lockTaken(h)
		w.ghost, a.belief, a.valid = 0, 1, 1
	}
}

// unchanged reports whether the record is the one that a transaction expects: the one that was seen,
// or none if there was none, whatever came and went since.
func (w *world) unchanged(fresh, bare uint8) bool { return fresh != 0 || (bare != 0 && w.op == 0) }

func (w *world) lockTaken(h int) {
	w.freeLock()
	w.lock = int8(h)
}

// freeLock removes the lock key. Whatever was bound to its token is void.
func (w *world) freeLock() {
	w.lock, w.ghost, w.opToken = -1, 0, 0
	for i := range w.n {
		w.hosts[i].lateToken = 0
	}
}

// write is one fenced write of the operation record. token and record tell whether lock and
// record are those that it expects; gone whether the member that it names has left.
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
	if found == fine && !late { // what was asked may be something else by then
		found = w.judgeNoted(h, step)
	}
	own := w.joining(h)
	if begins(step) {
		w.opForged = 0
	}
	w.put(h, step, gone)
	if !m.outAfterwards {
		w.putOut(step)
	}
	if (step == endJoined || step == endFailed) && own && !late {
		w.hosts[h].backoff = bit(step == endFailed)
	}
	if a := &w.hosts[h]; step == endCycle && !late {
		a.cycling = cycling{held: a.held}
	}
	if step == endRemoval && int(w.rmBy) == h && !late { // it is over, however it went
		w.rm = 0
	}
	w.recordWritten()
	w.opToken, w.orphan, w.opTold = w.op, 0, 0
	w.probe = 1
	w.follows()
	return found
}

// recordWritten notes that the record is another one than it was. One that comes and goes again is
// not noticed by a call that is late, nor by an agent that is paused; all others look again.
func (w *world) recordWritten() {
	for i := range w.n {
		h := &w.hosts[i]
		h.fresh, h.lateFresh = 0, 0
		if h.agent == up {
			h.bare = 0
		}
	}
}

// put is what a write makes of the record.
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
		w.opStandby = w.hosts[w.opHost].named // it was one, and is lost
	case beginCycle, beginAgain, setBegun, setReady, setDown, setBack, endCycle, endKeep:
		w.putCycle(h, step)
	case beginRemoval, setRemoving, endRemoval:
		w.putRemoval(h, step)
	case beginReplace, beginLeave:
		w.putReplacement(h, step, gone)
	case endJoined, endFailed:
		w.op = 0
	}
}
