// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// runs tells whether a listed member takes part in raft.
func (w *world) runs(i int) bool {
	h := &w.hosts[i]
	return h.list != unlisted && h.data == current && (h.unit == starting || h.unit == active) && h.apart == 0
}

// votes counts the voters and those of them that take part.
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

// quorum tells whether etcd answers at all. Which member leads is left out: nothing that quorumd
// does depends on it, and a change of leader only lengthens leases, whose end is open anyway.
func (w *world) quorum() bool {
	voters, running := w.votes()
	return voters > 0 && running >= policy.Quorum(voters)
}

// serves tells whether a member answers for itself: a voter also a linearizable read.
func (w *world) serves(i int) bool {
	return w.runs(i) && w.hosts[i].unit == active && w.quorum()
}

// answers tells whether a member looks live. A voter that reaches no other has no linearizable
// read to give. A learner that is cut off goes on answering for itself, and never notices that
// its leader is gone.
func (w *world) answers(i int) bool {
	h := &w.hosts[i]
	if h.list != learner {
		return w.serves(i)
	}
	return h.data == current && h.unit == active && w.quorum()
}

// follows notes that something was written: a learner that follows has applied it.
func (w *world) follows() {
	if w.serves(int(w.opHost)) {
		w.moved, w.probe = 1, 0
	}
}

// allServe tells whether every voter is live.
func (w *world) allServe() bool {
	for i := range w.n {
		if w.hosts[i].list == voter && !w.serves(i) {
			return false
		}
	}
	return true
}

// reaches tells whether an agent's calls get to etcd and back.
func (w *world) reaches(h int) bool { return w.hosts[h].cutOff == 0 && w.quorum() }

// owns tells whether the lock is the one that this agent has the token of.
func (w *world) owns(h int) bool {
	return int(w.lock) == h && w.ghost == 0 && w.hosts[h].belief != 0
}

// present tells whether the others find a host's record: its agent runs and reaches etcd.
func (w *world) present(i int) bool {
	h := &w.hosts[i]
	return h.agent == up && h.down == 0 && h.cutOff == 0
}

// joining tells whether the operation is this host's join.
func (w *world) joining(i int) bool { return w.op != 0 && w.opLeft == 0 && int(w.opHost) == i }

// spare tells whether a host is no member that counts.
func (w *world) spare(i int) bool {
	h := &w.hosts[i]
	return !w.joining(i) && (h.list == unlisted || (h.list == learner && h.named == 0))
}

// ready tells whether nothing of its own keeps a host from joining.
func (w *world) ready(i int) bool {
	h := &w.hosts[i]
	busy := w.spare(i) && (h.unit == starting || h.unit == active)
	return h.fit == fit && h.backoff == 0 && !busy && w.seesAll(i)
}

// seesAll tells whether an agent finds every voter live.
func (w *world) seesAll(i int) bool {
	others := 0
	for g := range w.n {
		if w.hosts[g].list == voter && g != i {
			others++
		}
	}
	return w.allServe() && (others == 0 || w.hosts[i].blind == 0)
}

// learnerAt gives the host of the learner, or -1. etcd has one at most.
func (w *world) learnerAt() int {
	for i := range w.n {
		if w.hosts[i].list == learner {
			return i
		}
	}
	return -1
}

// add applies a MemberAddAsLearner. What is late has passed etcd's checks long ago, all but those
// that every member makes when it applies the entry.
func (w *world) add(i int, late bool) {
	h := &w.hosts[i]
	if h.list != unlisted || w.learnerAt() >= 0 {
		return // "peerURL exists", "too many learner members"
	}
	voters, running := w.votes()
	if !late && voters > 1 && running < policy.Quorum(voters+1) {
		return // "unhealthy cluster"
	}
	h.list, h.named = learner, 0
	w.stall = 0
	w.listChanged()
	for g := range w.n { // what every environment lists has changed
		w.hosts[g].env = dropJoinEnv(w.hosts[g].env)
	}
}

// promote applies a MemberPromote. etcd asks neither whether the learner is alive nor whether it
// has caught up; only one that has never started is refused.
func (w *world) promote(i int) {
	h := &w.hosts[i]
	if h.list != learner || h.named == 0 {
		return
	}
	h.list = voter
	w.listChanged()
}

// remove applies a MemberRemove.
func (w *world) remove(i int, late bool) {
	h := &w.hosts[i]
	if h.list == unlisted {
		return
	}
	if h.list == voter { // a promotion has landed since the client looked
		voters, running := w.votes()
		if !late && w.runs(i) && running-1 < 1+(voters-1)/2 {
			return // "unhealthy cluster"
		}
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
			a.gone = 1
		}
	}
	if w.op != 0 && int(w.opHost) == i && w.opID == 1 {
		w.opID = 2
	}
}

// namesOwn tells the steps that name this host's own member.
func namesOwn(step uint8) bool {
	switch step {
	case promote, setAdded, setStarted, setPromoted, rollBackOwn:
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
			a.gone = 1
		}
	}
}

// comeUp is what becomes of a unit that is starting, and of one whose member was removed. how
// chooses where etcd's own end is open: a removed member exits with 0 or 1.
func (w *world) comeUp(i int, how uint8) (ok bool, found breach) {
	h := &w.hosts[i]
	if h.apart != 0 || h.unit == inactive || h.unit == failed || (how != 0 && h.data != old) {
		return false, fine
	}
	switch {
	case h.data == old:
		h.unit = failed
		if how != 0 {
			h.unit = inactive
		}
		return true, fine
	case h.unit == active:
		return false, fine
	case h.data == current:
		if !w.quorum() {
			return false, fine
		}
		h.unit, h.named = active, 1
		return true, fine
	}
	return w.firstStart(i)
}

// firstStart is the start of etcd on an empty directory.
func (w *world) firstStart(i int) (ok bool, found breach) {
	h := &w.hosts[i]
	voters, _ := w.votes()
	switch {
	case h.env == newEnv && voters > 0:
		w.second = 1
		h.unit = failed
		return true, secondCluster
	case h.env == newEnv:
		h.list, h.named, h.data, h.unit = voter, 1, current, active
		w.stable = 0
	case h.env == joinEnv && h.list == learner:
		if !w.quorum() {
			return false, fine
		}
		h.unit, h.named, h.data = active, 1, current
	default: // "member count is unequal", or a voter without its data
		h.unit, h.data = failed, remains
	}
	return true, fine
}
