// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// maxHosts is the maximum number of hosts in a scenario.
const maxHosts = 5

// The states of a host in the member list.
const (
	unlisted uint8 = iota
	learner
	voter
)

// The progress of a learner. Only a steady learner has been within the lag limit for long enough to be promoted.
const (
	behind uint8 = iota
	near
	steady
)

// The states of a unit. While a unit starts, its member votes, but does not serve. The agent does not start a unit that
// an operator has stopped; it does start a unit that was stopped for a request.
const (
	inactive uint8 = iota
	failed
	starting
	active
	stopping
	restarting        // stopping, to start again in the same job
	stoppedForRequest // stopped cleanly; the end of the request starts it
)

// The contents of a data directory. A member's data is current as long as etcd lists that member ID.
const (
	empty uint8 = iota
	current
	old
	remains // files of an etcd that exited before it was a member
)

// The environment with which a unit with an empty data directory would start. A join environment lists the members, so
// a change of the member list invalidates it.
const (
	noEnv uint8 = iota
	joinEnv
	newEnv
)

// The health states and the state of the clock, in one value. clockWrong also means that the host was WARM recently or,
// for a voter that replacementState.witness marks, that it is SLOW only because of past samples.
const (
	healthy uint8 = iota
	slow
	unknown
	clockWrong
)

// States of an agent's process.
const (
	up uint8 = iota
	down
	paused // stopped for longer than its lock may be valid
)

// The phases of an agent's step.
const (
	idle    uint8 = iota
	decided       // the agent has decided on a step but not begun it
	sent          // a membership change before its deadline, or an unfenced call of a host operation, is in flight
)

// host is a host with its agent, its unit and its state in etcd. Instead of numbers that only grow, such as member IDs
// and tokens, it records whether they are current.
type host struct {
	list     uint8
	named    uint8 // its member has started at least once
	progress uint8

	unit     uint8
	data     uint8
	env      uint8
	recorded uint8 // the disk records that this data is a member's; see dataLost for a voter without data
	health   uint8
	backoff  uint8
	request  uint8 // a bootstrap is requested

	agent    uint8
	down     uint8 // the whole host is down
	cutOff   uint8 // the agent reaches no endpoint
	isolated uint8 // the member reaches no other member
	blind    uint8 // the agent reads the member list, but reaches no other host's member

	hasToken   uint8 // the agent has a token
	valid      uint8 // the agent's token is valid by the agent's own clock
	stepFailed uint8 // its promotion, or a call of its host operation, has just failed

	hostRequest

	phase    uint8
	step     uint8
	target   uint8 // the host whose member the step names
	outdated uint8 // since the decision, the step's member has left the list; for an environment: the list has changed
	fresh    uint8 // the operation record is still the one that was read
	absent   uint8 // there was no record at the decision, and there may be none again

	// Calls that timed out and may still land.
	lateAdd     uint8
	latePromote uint8
	lateUpdate  uint8
	lateRemove  uint8
	lateWrite   uint8 // the step whose write may land
	lateFresh   uint8 // the record is still the one that the late write expects
	lateToken   uint8 // the lock is still the one that the late write expects
	lateAbsent  uint8 // the late write expects no record

	faulted uint8 // a fault has happened since the agent decided or sent its call

	ejection uint8 // its member was ejected, or is about to be; see ejected.go
}

// noteSelf writes to disk what the agent decided to record about its host's member.
func (h *host) noteSelf(note policy.SelfNote) {
	if note.Member {
		h.recorded = bit(note.MemberID != 0)
	}
	if note.Lost != 0 {
		h.recorded = bit(h.dataLost())
	}
}

// dataLost reports whether a host is listed as a voter whose data is gone. For such a host, recorded means that its
// disk records the loss.
func (h *host) dataLost() bool { return h.list == voter && h.data != current && h.data != old }

// lossRecorded reports whether a voter's data is gone and its disk records that.
func (h *host) lossRecorded() bool { return h.dataLost() && h.recorded != 0 }

// world is a state of the model.
type world struct {
	n     int
	hosts [maxHosts]host

	pause          uint8
	alarm          uint8 // the alarm of the scenario is active
	stable         uint8 // the settle time has passed since the last change of the member list
	learnerMoved   uint8 // the joining learner has applied an entry since its agent's last round
	sinceWrite     uint8 // the record was written after the learner progressed: 1 just now, 2 long ago
	idleTime       uint8 // no operation has been in flight for: 1 the cooldown, 2 longer than any queued host waits
	learnerStalled uint8 // the learner has not progressed for longer than its limit

	lock          int8  // the host that holds the lock, or -1
	holderUnaware uint8 // the holder's agent does not have the token, for example after a restart

	op        uint8
	opHost    uint8
	opLeft    uint8 // the operation was created to remove a learner without a join
	opForged  uint8 // another program wrote the record: its host has not begun the operation
	opPhase   uint8
	opStandby uint8
	opID      uint8 // the member in the record: 0 not known yet, 1 the listed member of opHost, 2 a removed one
	opToken   uint8 // the operation record has the current token of the lock
	opBoot    uint8 // the operation's host has not rebooted
	opOld     uint8 // 1: the operation exceeds its limit; for a host operation, the age of its record in steps
	orphan    uint8 // the operation has been without its lock for the grace period

	opCycle     uint8 // the operation is a host operation; opStandby, opID and orphan have no meaning then
	opRestarted uint8 // its host's etcd was started since the operation began, even if the record was deleted since
	servedLong  uint8 // its host's etcd has served for the required time

	requests uint8 // number of host operations requested so far

	removalState
	replacementState
	resizeState
	transferState
	learnerState
	upgradeState
	readdressState

	faults uint8 // number of faults so far
}

// The phases of an operation.
const (
	phaseBegun uint8 = iota
	phaseAdded
	phaseStarted
	phasePromoted
	phaseRollback
	phaseReady
	phaseDown
	phaseBack
)

// key is a packed world: one word for each host, then two for the rest.
type key [maxHosts + 2]uint64

type packer struct {
	v    uint64
	bits uint
}

func (p *packer) put(x uint8, bits uint) {
	p.v |= uint64(x) << p.bits
	p.bits += bits
}

func (p *packer) get(bits uint) uint8 {
	x := uint8(p.v >> p.bits & (1<<bits - 1))
	p.bits += bits
	return x
}

func (h *host) pack() uint64 {
	var p packer
	p.put(h.list, 2)
	p.put(h.named, 1)
	p.put(h.progress|h.ejection, 2) // progress is for learners, ejection for all others
	p.put(h.unit, 3)
	p.put(h.data, 2)
	p.put(h.env, 2)
	p.put(h.recorded, 1)
	p.put(h.health, 2)
	p.put(h.backoff, 1)
	p.put(h.request, 1)
	p.put(h.agent, 2)
	p.put(h.down, 1)
	p.put(h.cutOff, 1)
	p.put(h.isolated, 1)
	p.put(h.blind, 1)
	p.put(h.hasToken, 1)
	p.put(h.valid, 1)
	p.put(h.stepFailed, 1)
	p.put(h.phase, 2)
	p.put(h.step, 6)
	p.put(h.outdated, 1)
	p.put(h.fresh, 1)
	p.put(h.lateAdd, 1)
	p.put(h.latePromote|h.lateUpdate, 1) // latePromote is for learners, lateUpdate for voters
	p.put(h.lateRemove, 1)
	p.put(h.lateWrite, 6)
	p.put(h.lateFresh, 1)
	p.put(h.lateToken, 1)
	p.put(h.faulted, 1)
	p.put(h.absent, 1)
	p.put(h.lateAbsent, 1)
	p.put(h.packedWork(), 4)
	p.put(h.ended, 1)
	p.put(h.stopped, 1)
	p.put(h.begun, 2)
	p.put(h.opSeen, 1)
	p.put(h.startGuard, 1)
	p.put(h.released, 1)
	p.put(h.target, 3) // last, because canonical sorts hosts without it and adds three bits
	return p.v
}

func unpackHost(v uint64) (h host) {
	p := packer{v: v}
	h.list = p.get(2)
	h.named = p.get(1)
	if h.progress = p.get(2); h.list != learner {
		h.progress, h.ejection = behind, h.progress
	}
	h.unit = p.get(3)
	h.data = p.get(2)
	h.env = p.get(2)
	h.recorded = p.get(1)
	h.health = p.get(2)
	h.backoff = p.get(1)
	h.request = p.get(1)
	h.agent = p.get(2)
	h.down = p.get(1)
	h.cutOff = p.get(1)
	h.isolated = p.get(1)
	h.blind = p.get(1)
	h.hasToken = p.get(1)
	h.valid = p.get(1)
	h.stepFailed = p.get(1)
	h.phase = p.get(2)
	h.step = p.get(6)
	h.outdated = p.get(1)
	h.fresh = p.get(1)
	h.lateAdd = p.get(1)
	if h.latePromote = p.get(1); h.list != learner {
		h.latePromote, h.lateUpdate = 0, h.latePromote
	}
	h.lateRemove = p.get(1)
	h.lateWrite = p.get(6)
	h.lateFresh = p.get(1)
	h.lateToken = p.get(1)
	h.faulted = p.get(1)
	h.absent = p.get(1)
	h.lateAbsent = p.get(1)
	h.unpackWork(p.get(4))
	h.ended = p.get(1)
	h.stopped = p.get(1)
	h.begun = p.get(2)
	h.opSeen = p.get(1)
	h.startGuard = p.get(1)
	h.released = p.get(1)
	h.target = p.get(3)
	return h
}

// The values of packedWork for work that was called off.
const (
	packedRecalledWork   = command + failedCleaned + 1 + iota // interruptible maintenance
	packedRecalledReboot                                      // a reboot by the agent
)

// packedWork packs the work together with the state of its program, or with whether it was called off. Only a command,
// the last value of work, has a program, and only two other kinds of work can be called off.
func (c *hostRequest) packedWork() uint8 {
	switch {
	case c.work == readdressing: // packURLs packs it
		return noWork
	case c.recalled == 0:
		return c.work + c.program
	case c.work == interruptible:
		return packedRecalledWork
	}
	return packedRecalledReboot
}

func (c *hostRequest) unpackWork(v uint8) {
	switch v {
	case packedRecalledWork:
		c.work, c.recalled = interruptible, 1
	case packedRecalledReboot:
		c.work, c.recalled = agentReboot, 1
	default:
		c.program = max(v, command) - command
		c.work = v - c.program
	}
}

// packRest packs the state that belongs to no host.
func (w *world) packRest() uint64 {
	var p packer
	p.put(w.pause, 1)
	p.put(w.alarm, 1)
	p.put(w.stable, 1)
	p.put(w.learnerMoved, 1)
	p.put(w.sinceWrite, 2)
	p.put(w.idleTime, 2)
	p.put(w.learnerStalled, 1)
	p.put(uint8(w.lock+1), 3)
	p.put(w.holderUnaware, 1)
	p.put(w.op, 1)
	p.put(w.opHost, 3)
	p.put(w.opLeft, 1)
	p.put(w.opForged, 1)
	p.put(w.opPhase, 3)
	p.put(w.opStandby, 1)
	p.put(w.opID, 2)
	p.put(w.opToken, 1)
	p.put(w.opBoot, 1)
	p.put(w.opOld, 2)
	p.put(w.orphan, 1)
	p.put(w.faults, 3)
	p.put(w.opCycle, 1)
	p.put(w.opRestarted, 1)
	p.put(w.servedLong|w.opVotes, 1) // servedLong is for host operations, opVotes for replacements
	p.put(w.requests, 3)
	w.removalState.pack(&p)
	w.replacementState.pack(&p)
	return p.v
}

func (w *world) unpackRest(v uint64) {
	p := packer{v: v}
	w.pause = p.get(1)
	w.alarm = p.get(1)
	w.stable = p.get(1)
	w.learnerMoved = p.get(1)
	w.sinceWrite = p.get(2)
	w.idleTime = p.get(2)
	w.learnerStalled = p.get(1)
	w.lock = int8(p.get(3)) - 1
	w.holderUnaware = p.get(1)
	w.op = p.get(1)
	w.opHost = p.get(3)
	w.opLeft = p.get(1)
	w.opForged = p.get(1)
	w.opPhase = p.get(3)
	w.opStandby = p.get(1)
	w.opID = p.get(2)
	w.opToken = p.get(1)
	w.opBoot = p.get(1)
	w.opOld = p.get(2)
	w.orphan = p.get(1)
	w.faults = p.get(3)
	w.opCycle = p.get(1)
	w.opRestarted = p.get(1)
	w.servedLong = p.get(1)
	w.requests = p.get(3)
	w.removalState.unpack(&p)
	w.replacementState.unpack(&p)
	w.unpackVotes()
}

// pack returns the world's key with its hosts in their order.
func (w *world) pack() (k key) {
	for i := range w.n {
		k[i] = w.hosts[i].pack()
	}
	k[maxHosts], k[maxHosts+1] = w.packRest(), w.packSize()
	return k
}

// unpack returns the world of a key with n hosts.
func unpack(k *key, n int) (w world) {
	w.n = n
	for i := range n {
		w.hosts[i] = unpackHost(k[i])
	}
	w.unpackRest(k[maxHosts])
	w.unpackSize(k[maxHosts+1])
	return w
}

// canonical returns the key of the world with its hosts sorted, so that worlds that differ only in the order of their
// hosts usually have the same key. This is sound: for hosts that the policy ranks as equal, both orders are explored,
// so nothing in the model depends on a host's number.
func (w *world) canonical() key {
	var order [maxHosts]uint8
	var keys [maxHosts]uint64
	for i := range w.n {
		h := w.hosts[i]
		h.target = 0
		k := h.pack() << 3
		if int(w.retired) == i+1 {
			k |= 4
		}
		if int(w.successor) == i+1 {
			k ^= 0xbf58476d1ce4e5b9
		}
		if int(w.lock) == i {
			k |= 1
		}
		if w.op != 0 && int(w.opHost) == i {
			k |= 2
		}
		k ^= w.transferMark(i) ^ w.learnerMark(i) ^ w.upgradeMark(i) ^ w.urlMark(i)
		j := i
		for ; j > 0 && keys[j-1] > k; j-- {
			keys[j], order[j] = keys[j-1], order[j-1]
		}
		keys[j], order[j] = k, uint8(i)
	}
	p := w.permuted(order)
	return p.pack()
}

// permuted returns the world with host order[i] at place i.
func (w *world) permuted(order [maxHosts]uint8) world {
	var place [maxHosts]uint8
	for i := range w.n {
		place[order[i]] = uint8(i)
	}
	p := *w
	for i := range w.n {
		h := w.hosts[order[i]]
		p.urls[i] = w.urls[order[i]]
		if namesTarget(h.step) && h.phase != idle {
			h.target = place[h.target]
		}
		p.hosts[i] = h
	}
	if w.lock >= 0 {
		p.lock = int8(place[w.lock])
	}
	if w.op != 0 {
		p.opHost = place[w.opHost]
	}
	if w.rmRequested|w.opRemove != 0 {
		p.rmHost, p.rmTarget = place[w.rmHost], place[w.rmTarget]
	}
	p.replacementState.permute(&place)
	if w.retired != 0 {
		p.retired = place[w.retired-1] + 1
	}
	if w.successor != 0 {
		p.successor = place[w.successor-1] + 1
	}
	p.transferState.permute(&place)
	p.learnerState.permute(&place)
	p.upgradeState.permute(&place)
	return p
}

// anyRecordDeleted reports whether the operation of any host is recorded only on its disk.
func (w *world) anyRecordDeleted() bool {
	for i := range w.n {
		if w.recordDeleted(i) {
			return true
		}
	}
	return false
}

// tidy clears state that has no meaning, so that worlds that no agent can distinguish become equal.
func (w *world) tidy() {
	awaited := w.op != 0 && w.opCycle|w.opRemove|w.opLeave == 0 && w.hosts[w.opHost].list == voter &&
		!w.serves(int(w.opHost))
	for i := range w.n {
		h := &w.hosts[i]
		switch h.list {
		case unlisted:
			h.named, h.latePromote, h.lateRemove = 0, 0, 0
		case voter:
			h.backoff, h.latePromote = 0, 0
		case learner:
			h.lateUpdate = 0
			awaited = true
		}
		w.tidyEjection(i)
		if h.list != learner && !w.cycles(i) {
			h.stepFailed = 0
		}
		if h.list != learner || !w.answers(i) {
			h.progress = behind
		}
		if h.data == current || h.data == old {
			h.env = noEnv
		} else if h.list != voter {
			h.recorded = 0
		}
		if h.hasToken == 0 {
			h.valid = 0
		}
		h.tidyRequest()
		h.tidyUnit()
		if h.phase == idle {
			h.step, h.target, h.outdated, h.fresh = 0, 0, 0, 0
		}
		if !writesRecord(h.step) && h.step != takeLock {
			h.fresh = 0
		}
		if h.phase == idle {
			h.absent = 0
		}
		if h.lateWrite == 0 {
			h.lateFresh, h.lateToken, h.lateAbsent = 0, 0, 0
		}
		if h.phase == idle && h.lateAdd|h.latePromote|h.lateUpdate|h.lateRemove == 0 {
			h.faulted = 0
		}
	}
	if !awaited {
		w.learnerStalled = 0
	}
	switch {
	case w.op == 0 || w.opLeft|w.opCycle|w.opRemove|w.opLeave != 0 || w.hosts[w.opHost].list != learner,
		w.opPhase == phaseRollback: // the join is rolled back, whatever progress the learner makes
		w.learnerMoved, w.sinceWrite = 0, 0
	case !w.answers(int(w.opHost)): // see evLearnerLags
		w.sinceWrite = min(w.sinceWrite, 1)
	}
	if w.lock < 0 {
		w.holderUnaware, w.opToken = 0, 0
	} else if w.hosts[w.lock].hasToken == 0 {
		w.holderUnaware = 1
	}
	if w.op == 0 {
		w.opHost, w.opLeft, w.opForged, w.opPhase, w.opStandby, w.opID = 0, 0, 0, 0, 0, 0
		w.opToken, w.opBoot, w.opOld, w.orphan, w.opCycle = 0, 0, 0, 0, 0
		w.opRestarted &= bit(w.anyRecordDeleted())
	} else {
		w.idleTime = 0
	}
	if w.settleIrrelevant() {
		w.stable = 0
	}
	w.tidyRemoval()
	w.tidyReplacement()
	w.tidyTransfer()
	w.tidyURLs()
	w.opLeave &= w.op
	if w.retired == 0 || w.hosts[w.retired-1].list != voter { // no place is kept for the successor any longer
		w.successor = 0
	}
	if w.opCycle == 0 || w.opPhase != phaseBack || !w.serves(int(w.opHost)) {
		w.servedLong = 0
	}
}
