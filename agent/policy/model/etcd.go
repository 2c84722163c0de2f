// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// runs reports whether a listed member takes part in Raft. The only voter needs no other member, so losing its
// connections does not stop it.
func (w *world) runs(i int) bool {
	h := &w.hosts[i]
	return h.list != unlisted && h.data == current && (h.unit == starting || h.unit == active) &&
		(h.isolated == 0 || w.alone(i))
}

// alone reports whether a member is the only voter.
func (w *world) alone(i int) bool {
	for g := range w.n {
		if (w.hosts[g].list == voter) != (g == i) {
			return false
		}
	}
	return true
}

// votes returns the number of voters and how many of them take part in Raft.
func (w *world) votes() (voters, running int) {
	for i := range w.n {
		if w.hosts[i].list == voter {
			voters++
			if w.runs(i) {
				running++
			}
		}
	}
	return voters, running
}

// majority is etcd's own arithmetic. It must not be shared with the policy under test.
func majority(members int) int { return members/2 + 1 }

// quorum reports whether etcd answers at all. The leader is not modelled, because in every view that depends on it, any
// voter may lead. A change of leader only lengthens leases, which may end late anyway.
func (w *world) quorum() bool {
	voters, running := w.votes()
	return voters > 0 && running >= majority(voters)
}

// serves reports whether a member serves requests. For a voter, these include linearizable reads. A learner serves only
// while it reaches another running member.
func (w *world) serves(i int) bool {
	h := &w.hosts[i]
	return w.runs(i) && h.unit == active && w.quorum() && (h.list == voter || w.reachesMember(i))
}

// reachesMember reports whether a host's etcd reaches another running member.
func (w *world) reachesMember(i int) bool {
	for g := range w.n {
		if g != i && w.hosts[i].isolated == 0 && w.hosts[g].isolated == 0 && w.runs(g) {
			return true
		}
	}
	return false
}

// answers reports whether a member looks live to an agent. A voter must serve linearizable reads. A learner that is cut
// off keeps answering for itself and never detects that it has lost its leader.
func (w *world) answers(i int) bool {
	h := &w.hosts[i]
	if h.list != learner {
		return w.serves(i)
	}
	return h.data == current && h.unit == active && w.quorum()
}

// noteWrite records that the joining learner has applied a write, if that learner serves.
func (w *world) noteWrite() {
	if w.serves(int(w.opHost)) {
		w.learnerMoved, w.sinceWrite = 1, 0
	}
}

// allServe reports whether every voter is live.
func (w *world) allServe() bool {
	for i := range w.n {
		if w.hosts[i].list == voter && !w.serves(i) {
			return false
		}
	}
	return true
}

// reaches reports whether an agent's calls reach etcd and are answered.
func (w *world) reaches(h int) bool { return w.hosts[h].cutOff == 0 && w.quorum() }

// owns reports whether this agent has the token of the current lock.
func (w *world) owns(h int) bool {
	return int(w.lock) == h && w.holderUnaware == 0 && w.hosts[h].hasToken != 0
}

// present reports whether other agents find a host's record, which requires that its agent runs and reaches etcd.
func (w *world) present(i int) bool {
	h := &w.hosts[i]
	return h.agent == up && h.down == 0 && h.cutOff == 0
}

// joining reports whether the operation is this host's join or replacement. A standby ignores the record of a join that
// it did not begin.
func (w *world) joining(i int) bool {
	h := &w.hosts[i]
	return w.ownsOperation(i) && w.opCycle|w.opRemove|w.opLeave == 0 && (w.opForged == 0 || h.list != learner ||
		h.named == 0)
}

// spare reports whether a host has no member, or only a learner that has never started, outside its own join.
func (w *world) spare(i int) bool {
	h := &w.hosts[i]
	return !w.joining(i) && (h.list == unlisted || (h.list == learner && h.named == 0))
}

// ready reports whether a host would publish no reason against joining. A voter has already joined, so only its own
// request can make it wait.
func (w *world) ready(i int) bool {
	h := &w.hosts[i]
	if h.list == voter {
		return h.work == noWork
	}
	busy := w.spare(i) && (h.unit == starting || h.unit == active || h.unit == stopping || h.unit == restarting)
	return !w.limitBlocks(i) && h.health == healthy && h.backoff == 0 && !w.isRetired(i) && !w.ejected(i) && !busy &&
		h.work == noWork && (w.seesAll(i) || w.awaitsRepair(i))
}

// seesAll reports whether an agent observes every voter as live.
func (w *world) seesAll(i int) bool {
	others := 0
	for g := range w.n {
		if w.hosts[g].list == voter && g != i {
			others++
		}
	}
	return w.allServe() && (others == 0 || w.hosts[i].blind == 0)
}

// learnerAt returns the host of the learner that is not permanent, or of the permanent one while it joins; -1 if there
// is neither.
func (w *world) learnerAt() int {
	for i := range w.n {
		if w.hosts[i].list == learner && (!w.isPermanent(i) || w.joining(i)) {
			return i
		}
	}
	return -1
}

// add applies a MemberAddAsLearner. A late call is subject only to the checks that every member makes when it applies
// the entry.
func (w *world) add(i int, late bool) {
	if w.refusesAdd(i, late) != accepted {
		return
	}
	w.hosts[i].list, w.hosts[i].named = learner, 0
	w.joinsAtURL(i)
	w.learnerStalled = 0
	w.listChanged()
	for g := range w.n { // the member list in every environment is now outdated
		w.hosts[g].env = dropJoinEnv(w.hosts[g].env)
	}
}

// promote applies a MemberPromote.
func (w *world) promote(i int) {
	if w.refusesPromote(i) != accepted {
		return
	}
	w.hosts[i].list = voter
	w.listChanged()
}

// remove applies a MemberRemove.
func (w *world) remove(i int, late bool) {
	h := &w.hosts[i]
	if w.refusesRemove(i, late) != accepted {
		return
	}
	h.list = unlisted
	if h.data == current {
		h.data = old
	}
	w.listChanged()
	for g := range w.n {
		a := &w.hosts[g]
		a.env = dropJoinEnv(a.env)
		if a.phase != idle && ((g == i && namesOwn(a.step)) || (namesTarget(a.step) && int(a.target) == i)) {
			a.outdated = 1
		}
	}
	if w.op != 0 && int(w.opHost) == i && w.opID == 1 {
		w.opID = 2
	}
	if w.rmRequested|w.opRemove != 0 && int(w.rmTarget) == i {
		w.rmGone = 1
	}
	if w.opReplace != 0 && int(w.rpTarget) == i {
		w.rpGone = 1
	}
}

// namesOwn reports whether the step names this host's own member.
func namesOwn(step uint8) bool {
	switch step {
	case promote, setAdded, setStarted, setPromoted, rollBackOwn, updateMember, restoreMember:
		return true
	}
	return false
}

func dropJoinEnv(env uint8) uint8 {
	if env == joinEnv {
		return noEnv
	}
	return env
}

func (w *world) listChanged() {
	w.stable = 0
	for g := range w.n {
		if a := &w.hosts[g]; a.phase == decided && a.step == writeEnv {
			a.outdated = 1
		}
	}
}
