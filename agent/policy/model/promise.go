// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"

	"github.com/quorumd/quorumd/agent/policy"
)

// breach is a way to break a promise.
type breach uint8

const (
	fine breach = iota
	twoHolders
	holderWithoutLock
	twoChanges
	changeWithoutLock
	sentWithoutLock
	writeWithoutLock
	recordOverwritten
	recordReleased
	adoptedEarly
	changeWithoutOp
	voterDown
	unsettled
	learnerUnready
	secondLearner
	evenVoters
	quorumLost
	voterRemoved
	standbyRemoved
	unfitJoins
	clockOff
	unknownJoins
	unknownEvicts
	commonCause
	memberDataMoved
	dataMovedUnderEtcd
	voterStopped
	stoppedStarted
	stepWhilePaused
	secondCluster
	noReason
	quietTooEarly
	readyDiffers
	steppedDownInTurn
	steppedDownToDead
	steppedDownToWorse
	steppedDownToSlower
	steppedDownToTaken
	cycleTouched
	stoppedWithoutOp
	twoDown
	secondTurn
	endedEarly
	calledWithoutLock
	stopAtRisk
	leaderStopped
	rebootedAgain
	startedEarly
	startedMeanwhile
	startedEmpty
	ranMeanwhile
	drivenForOthers
	joinsUnstartable
	ranTwice
	notRun
	liveRemoved
	removedAtRisk
	removedUnasked
	removalForgotten
	removalDropped
	removedAgain
	liveReplaced
	replacedUntold
	replacedInCommon
	replacedForNothing
	ejectedJoins
	ejectionForgotten
	standbyLetGo
	standbyForNothing
	wellReplaced
	wellRemoved
	removedBeforeJoin
	leaderRemoved
	heldBack
	leftLoose
	turnUnnoted
	cycleUnnoted
	joinUncounted
	selfUnnoted
	forgotten
	targetMissed
	notBack
	operationStuck
	noRest
	removalStands
	notReplaced
	begunInAlarm
)

// promise names the promise of the design that a breach breaks, and describes how.
type promise struct{ name, text string }

func promises() map[breach]promise {
	all := repairPromises()
	maps.Copy(all, unhealthyPromises())
	maps.Copy(all, map[breach]promise{
		twoHolders:        {"P1", "two agents believe that they hold the lock"},
		twoChanges:        {"P1", "two membership changes are in flight at once"},
		recordOverwritten: {"P1", "an operation record is overwritten without comparing its revision"},
		recordReleased:    {"P1", "an operation record is deleted without the lock"},
		adoptedEarly: {
			"P1",
			"an operation is adopted before its host has been without the lock for the grace time",
		},
		changeWithoutOp:    {"P1", "the membership is changed without an operation of this host"},
		holderWithoutLock:  {"P5", "an agent wrongly believes that it holds the lock"},
		changeWithoutLock:  {"P5", "a membership change is in flight that the lock does not cover"},
		sentWithoutLock:    {"P5", "an agent without the lock sends a membership change"},
		writeWithoutLock:   {"P5", "an agent without the lock writes an operation record"},
		voterDown:          {"P2", "a voter is added or promoted although not every other voter is live"},
		unsettled:          {"P2", "the membership is changed before the last change has settled"},
		learnerUnready:     {"P2", "a learner is promoted that does not serve or has not caught up long enough"},
		secondLearner:      {"P2", "a second learner is added"},
		evenVoters:         {"P2", "the voter count becomes even and no further host is ready to join"},
		quorumLost:         {"P2", "a membership change by quorumd has lost quorum"},
		voterRemoved:       {"P2", "a voter is removed by the rollback of a learner"},
		standbyRemoved:     {"P2", "a standby is removed for a join that its host has not begun"},
		unfitJoins:         {"P2", "a host joins in a health state that forbids it"},
		clockOff:           {"P2", "a host joins with a wrong clock"},
		voterStopped:       {"P2", "the etcd of a voter is stopped"},
		secondCluster:      {"P2", "a second cluster is made"},
		memberDataMoved:    {"P3", "the data of a listed member is moved aside"},
		dataMovedUnderEtcd: {"P3", "data is moved aside while etcd runs on it"},
		stoppedStarted:     {"P4", "a cleanly stopped etcd is started"},
		stepWhilePaused:    {"P4", "a step is decided while the cluster is paused"},
		unknownJoins:       {"P6", "a host with unknown health joins"},
		unknownEvicts:      {"P6", "a join is aborted because the health of its host is unknown"},
		commonCause:        {"P7", "a member is added while several hosts are unhealthy"},
		noReason:           {"P8", "a decision has neither a step nor a reason"},
		quietTooEarly:      {"P6", "a host polls less often although it knows of pending work"},
		readyDiffers:       {"P8", "the model and the policy differ on whether a host is ready"},
		steppedDownInTurn: {
			"P1",
			"a host transfers leadership during or right before its own operation",
		},
		steppedDownToDead:   {"P2", "leadership is transferred to a voter that does not serve"},
		steppedDownToWorse:  {"P6", "leadership is transferred to a host that is not known to be healthy"},
		steppedDownToSlower: {"P6", "leadership is transferred for slow writes to a voter not known to be faster"},
		steppedDownToTaken: {
			"P1",
			"leadership is transferred to a host with an operation or removal, pending or running",
		},
		cycleTouched:     {"P1", "another host writes the operation of a host that is down"},
		stoppedWithoutOp: {"P1", "a voter's etcd is stopped without an operation of its host"},
		twoDown: {
			"P1",
			"a voter's etcd is stopped while another one is down for its own operation",
		},
		secondTurn: {
			"P1",
			"an operation begins during another host's operation whose record was deleted",
		},
		endedEarly:        {"P1", "the operation ends before its host is back"},
		calledWithoutLock: {"P5", "an agent without the lock stops etcd or transfers its leadership"},
		stopAtRisk:        {"P2", "a voter's etcd is stopped although the other voters cannot spare it"},
		leaderStopped:     {"P2", "the leader's etcd is stopped without a leadership transfer"},
		rebootedAgain:     {"P2", "a machine is rebooted twice for one request"},
		startedEarly:      {"P4", "an etcd that was stopped for maintenance runs before the maintenance ends"},
		startedMeanwhile:  {"P4", "an etcd is started while the command for which it was stopped is running"},
		startedEmpty:      {"P2", "a voter's etcd starts, or may start at boot, without its data"},
		ranMeanwhile:      {"P2", "a command runs while the etcd of its host is running"},
		drivenForOthers:   {"P4", "a step starts or stops an external etcd"},
		joinsUnstartable:  {"P2", "a join begins on a host whose etcd cannot be started"},
		ranTwice:          {"P8", "a command is run twice"},
		notRun:            {"P8", "an operation is reported as successful although its command has not succeeded"},
		liveRemoved:       {"P2", "a live voter is to be removed without permission"},
		removedAtRisk: {
			"P2",
			"a voter is removed although the others lack quorum without it or one of them is down",
		},
		removedUnasked:   {"P1", "a member is removed without an operation for it"},
		removalForgotten: {"P5", "the operation of a removal ends while the removal may still be applied"},
		removalDropped: {
			"P1",
			"a removal request is dropped before its member is gone or it expires or is released, or while it runs",
		},
		removedAgain:   {"P4", "a released removal begins again"},
		heldBack:       {"P4", "etcd does not start after a boot although there is no maintenance"},
		leftLoose:      {"P2", "the etcd of a host without a member may start by itself at boot"},
		selfUnnoted:    {"P2", "a host does not record its member ID, or that it is no longer a member"},
		joinUncounted:  {"P8", "the outcome of a join is counted wrongly"},
		cycleUnnoted:   {"P1", "an operation record is written without a record on the host's disk"},
		turnUnnoted:    {"P1", "a host does not record that its requested operation is in flight"},
		forgotten:      {"P1", "a request is dropped before it is finished or released, or while etcd is down for it"},
		targetMissed:   {"liveness", "all faults are healed, time passes, and the target is not reached"},
		notBack:        {"liveness", "all faults are healed, the request is finished, and a host is not back"},
		begunInAlarm:   {"P2", "a host joins during an etcd alarm, or a voter is removed during a CORRUPT alarm"},
		operationStuck: {"liveness", "time passes, voters live, and the operation is never freed"},
		noRest:         {"liveness", "all faults have stopped, and the agents do not become idle"},
		removalStands:  {"liveness", "all faults are healed, and an expired removal request remains"},
	})
	return all
}

// judgeState returns the breach that a state shows by itself.
func (w *world) judgeState() breach {
	holders, changes := 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		if h.belief != 0 && h.valid != 0 {
			holders++
		}
		if h.phase == sent && changesMembership(h.step) {
			changes++
		}
	}
	switch {
	case holders > 1:
		return twoHolders
	case changes > 1:
		return twoChanges
	}
	for i := range w.n {
		h := &w.hosts[i]
		switch {
		case h.phase == sent && changesMembership(h.step) && !w.owns(i):
			return changeWithoutLock
		case h.belief != 0 && h.valid != 0 && !w.owns(i):
			return holderWithoutLock
		}
	}
	return fine
}

// judgeDecision checks a decision against the world at the time of the view.
func (w *world) judgeDecision(h int, c choice, leads bool) breach {
	if c.step == none {
		if c.reason == "" {
			return noReason
		}
		return fine
	}
	if w.pause != 0 && c.step != releaseLock && w.reaches(h) && (!starts(c.step) || w.hosts[h].stopped == 0) {
		return stepWhilePaused
	}
	a := &w.hosts[h]
	if begins(c.step) && c.step != beginAgain && w.anotherInOperation(h) {
		return secondTurn
	}
	switch c.step {
	case beginVoter, beginStandby:
		return w.judgeFitness(h)
	case addLearner:
		return w.judgeAdd(h)
	case promote:
		return w.judgePromote(h)
	case removeLearner:
		if w.opForged != 0 && c.target == w.opHost {
			return standbyRemoved
		}
		return w.judgeLetGo(h, c)
	case rollBackLeft:
		return w.judgeLetGo(h, c)
	case runCommand:
		if a.did != 0 {
			return ranTwice
		}
		if a.unit != taken && a.unit != failed && a.unit != inactive {
			return ranMeanwhile
		}
	case startUnit, startAsIs:
		if a.did == runs {
			return startedMeanwhile
		}
		if a.bereft() {
			return startedEmpty
		}
		// If the disk records that the agent stopped etcd, an operator's later stop is not detectable, except after a
		// boot.
		noted := a.stopped != 0 && !a.ranAfterReboot()
		if a.unit == inactive && a.data == current && (!w.joining(h) || a.list == voter) && a.request == 0 && !noted {
			return stoppedStarted
		}
		if a.stopped != 0 && w.keptDown(h) && !w.workDone(h) {
			return startedEarly
		}
	case takeDown, takeDownHeld, restartUnit:
		return w.judgeStop(h, leads)
	case reboot:
		if a.begun == begunBefore {
			return rebootedAgain
		}
		return w.judgeStop(h, leads)
	case stepDown:
		return w.judgeStepDown(h, int(c.target))
	case endCycle, endKeep:
		return w.judgeEnd(h, c)
	case beginReplace, beginLeave:
		if w.ejected(h) {
			return ejectedJoins
		}
		return w.judgeReplacement(h, c, leads)
	case beginRemoval, setRemoving, removeMember, endRemoval:
		if w.opReplace != 0 {
			if c.step == setRemoving && w.rpGone == 0 && !c.repairs && !w.replacesItself() {
				return ejectionForgotten
			}
			return w.judgeReplacement(h, c, leads)
		}
		return w.judgeRemoval(h, c)
	case endJoined, endFailed:
		if found := w.endsReplacement(); found != fine || !w.joining(h) || w.countedRight(c) {
			return found
		}
		return joinUncounted
	case rollBackKeep, rollBackOwn:
		if c.outcome == policy.HealthLost && a.fit == unknown {
			return unknownEvicts
		}
	}
	return fine
}

// countedRight reports whether the end of a host's own join is counted according to its outcome. A replacement that
// etcd was not asked for may count or not.
func (w *world) countedRight(c choice) bool {
	switch {
	case w.opVotes != 0:
		return c.counts == policy.JoinUncounted
	case c.step == endJoined:
		return c.counts == policy.JoinSucceeded
	case c.outcome == policy.Disowned:
		return c.counts == policy.JoinUncounted
	}
	untold := w.opReplace != 0 && w.opPhase == phaseBegun
	return c.counts == policy.JoinFailed || c.counts == policy.JoinUncounted && untold
}

// judgeHold checks whether a decision's change of the start guard fits the host.
func (w *world) judgeHold(h int, c choice) breach {
	a, hold := &w.hosts[h], c.hold
	// An etcd that keeps restarting, as a removed member's does, is held back like one that is down.
	idle := a.unit == inactive || a.unit == failed || a.unit == taken || a.unit == starting
	switch {
	case a.list != unlisted && a.data == current && hold == policy.GuardSet:
		return heldBack
	case a.list != unlisted && a.data == current && c.request == policy.RequestEnds && !c.loosens:
		return heldBack // afterwards nothing shows what the guard was set for
	case a.list == unlisted && a.request == 0 && hold == policy.GuardCleared,
		a.list == unlisted && a.request|a.stopped == 0 && idle && w.reaches(h) && !w.opHosts(h) &&
			hold != policy.GuardSet:
		return leftLoose
	}
	return fine
}

// judgeRequest checks whether a decision's change of the request fits the outcome of its operation.
func (w *world) judgeRequest(h int, c choice) breach {
	note := c.request
	a := &w.hosts[h]
	cycles, reaches := w.cycles(h), w.reaches(h)
	down := a.stopped != 0 && a.list != unlisted && a.unit != active
	done := a.ended != 0 || a.begun == tooLate || a.begun == begunBefore && a.forReboot()
	freed := a.seen != 0 && a.freed != 0
	down = down && !a.gaveUp()
	switch {
	case note == policy.RequestEnds && (!reaches || cycles || w.noted(h) || down || !done && !freed):
		return forgotten
	case note == policy.RequestEnding && c.outcome != policy.Cycled && c.outcome != policy.Cancelled &&
		c.outcome != policy.HookFailed && c.outcome != policy.CommandFailed && c.outcome != policy.MemberLost:
		return forgotten
	case c.step == endCycle || c.step == endKeep: // with its operation
	case a.ask != nothing && a.ended == 0 && a.seen == 0 && reaches && cycles && note != policy.RequestSeen:
		return turnUnnoted
	}
	return fine
}

// judgeNoted checks that the disk records the start or end of a host operation before its record is written: otherwise,
// if the agent dies right then, the next one repeats the work.
func (w *world) judgeNoted(h int, step uint8) breach {
	a := &w.hosts[h]
	switch {
	case a.ask == nothing:
	case step == beginCycle && a.begun == 0,
		step == endCycle && (a.ended == 0 || a.seen != 0),
		step == endKeep && a.begun|a.seen != 0:
		return cycleUnnoted
	}
	return fine
}

// judgeSelf checks that a host that reaches etcd has recorded on disk which member it is.
func (w *world) judgeSelf(h int, note policy.SelfNote) breach {
	after := w.hosts[h]
	after.noteSelf(note)
	if after.bereft() {
		return fine // judgeEnd checks whether the disk records it
	}
	if w.reaches(h) && after.known != bit(after.list != unlisted && after.data == current) {
		return selfUnnoted
	}
	return fine
}

// anotherInOperation reports whether another host publishes that it is in its operation.
func (w *world) anotherInOperation(h int) bool {
	for i := range w.n {
		if i != h && w.noted(i) && w.present(i) {
			return true
		}
	}
	return false
}

// judgeFitness checks whether a host may take a step towards membership.
func (w *world) judgeFitness(h int) breach {
	switch w.hosts[h].fit {
	case slow:
		return unfitJoins
	case unknown:
		return unknownJoins
	case off:
		return clockOff
	}
	unhealthy := 0
	for i := range w.n {
		g := &w.hosts[i]
		member := g.list == voter || (g.list == learner && g.named != 0 && !w.joining(i))
		if member && g.fit == slow && w.present(i) {
			unhealthy++
		}
	}
	if unhealthy >= 2 {
		return commonCause
	}
	if w.ejected(h) {
		return ejectedJoins
	}
	return fine
}

func (w *world) judgeChange(h int) breach {
	switch {
	case !w.joining(h):
		return changeWithoutOp
	case !w.allServe() && !w.onlyTardyIsDown():
		return voterDown
	case w.stable == 0 && w.opReplace&w.opStandby == 0: // a standby is promoted at once
		return unsettled
	}
	return w.judgeFitness(h)
}

func (w *world) judgeAdd(h int) breach {
	if other := w.learnerAt(); other >= 0 && other != h {
		return secondLearner
	}
	return w.judgeChange(h)
}

func (w *world) judgePromote(h int) breach {
	a := &w.hosts[h]
	justCut := w.answers(h) && w.moved != 0 // no agent can have noticed yet
	if a.list != learner || a.prog != steady || (!w.serves(h) && !justCut) {
		return learnerUnready
	}
	voters, _ := w.votes()
	others := 0
	for i := range w.n {
		if i != h && w.hosts[i].list != voter && w.present(i) && w.ready(i) {
			others++
		}
	}
	beside := w.opReplace != 0 && w.rpGone == 0 && w.hosts[w.rpWho].list == voter
	switch {
	case beside && !w.isUnhealthy(int(w.rpWho)):
		return wellReplaced
	case voters%2 == 1 && others == 0 && w.opReplace == 0: // a replacement keeps the number of voters
		return evenVoters
	}
	return w.judgeChange(h)
}
