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
	unhealthyJoins
	clockOffJoins
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
	begunInVain
	quietTooEarly
	readyDiffers
	steppedDownDuringOperation
	steppedDownToDead
	steppedDownToWorse
	steppedDownToSlower
	steppedDownInHabit
	steppedDownToTaken
	cycleTouched
	stoppedWithoutOp
	twoDown
	secondOperation
	endedEarly
	calledWithoutLock
	stopAtRisk
	leaderStopped
	rebootedAgain
	startedEarly
	startedDuringCommand
	startedEmpty
	ranWhileEtcdRuns
	externalEtcdDriven
	joinsUnstartable
	ranTwice
	notRun
	oldDeletedEarly
	limitsDiffer
	noPlaceForLearner
	permanentVotes
	permanentFirst
	permanentRemoved
	startsNoMore
	liveRemoved
	removedAtRisk
	removedWithoutOperation
	removalForgotten
	removalDropped
	removedAgain
	liveReplaced
	replacedOnOldReports
	replacedInCommon
	removedWithoutReplacement
	ejectedJoins
	ejectionForgotten
	usefulStandbyRemoved
	standbyWithoutReplacement
	healthyReplaced
	healthyRemoved
	removedBeforeJoin
	leaderRemoved
	leftUnasked
	retiredJoins
	successorIgnored
	upgradeUndecided
	twoUnverified
	endedUnverified
	updatedUnasked
	transferredUnasked
	transferredDuringOperation
	transferredToDead
	transferredToWorse
	transferredToTaken
	transferDropped
	startGuardStays
	startGuardMissing
	opSeenUnrecorded
	requestUnrecorded
	joinMiscounted
	memberUnrecorded
	requestDropped
	begunInAlarm
	corruptDataCopied
	recalledUnasked
	recalledBlindly
	recalledNeedlessly
	recallMisreported
	recallRepeated
	targetMissed // this and the following are breaches in liveness runs
	neverRecalled
	hostNotBack
	operationStuck
	neverQuiescent
	removalNeverEnds
	transferNeverEnds
	notReplaced
	urlStays
)

// promise names the promise of the design that a breach breaks, and describes how.
type promise struct{ name, text string }

func promises() map[breach]promise {
	all := repairPromises()
	maps.Copy(all, unhealthyPromises())
	maps.Copy(all, resizePromises())
	maps.Copy(all, transferPromises())
	maps.Copy(all, learnerPromises())
	maps.Copy(all, upgradePromises())
	maps.Copy(all, readdressPromises())
	maps.Copy(all, generalPromises)
	return all
}

// generalPromises are the promises that no other file of this package declares.
var generalPromises = map[breach]promise{
	twoHolders:        {"P1", "two agents believe that they hold the lock"},
	twoChanges:        {"P1", "two membership changes are in flight at once"},
	recordOverwritten: {"P1", "an operation record is overwritten without comparing its revision"},
	recordReleased:    {"P1", "an operation record is deleted without the lock"},
	adoptedEarly: {
		"P1",
		"an operation is adopted before its host has been without the lock for the grace period",
	},
	changeWithoutOp:    {"P1", "the membership is changed without an operation of this host"},
	holderWithoutLock:  {"P5", "an agent has a valid token, but does not hold the lock"},
	changeWithoutLock:  {"P5", "a membership change is in flight without the lock"},
	sentWithoutLock:    {"P5", "an agent without the lock sends a membership change"},
	writeWithoutLock:   {"P5", "an agent without the lock writes an operation record"},
	voterDown:          {"P2", "a voter is added or promoted although not every other voter is live"},
	unsettled:          {"P2", "the membership is changed before the last change has settled"},
	learnerUnready:     {"P2", "a learner is promoted although it does not serve or has not kept up for long enough"},
	secondLearner:      {"P2", "a second learner is added"},
	evenVoters:         {"P2", "the voter count becomes even although no other host is ready to join"},
	quorumLost:         {"P2", "a membership change by quorumd causes a loss of quorum"},
	voterRemoved:       {"P2", "a voter is removed by the rollback of a learner"},
	standbyRemoved:     {"P2", "a standby is removed for a join that its host has not begun"},
	unhealthyJoins:     {"P2", "a host joins in a health state that forbids it"},
	clockOffJoins:      {"P2", "a host joins with a wrong clock"},
	voterStopped:       {"P2", "the etcd of a voter is stopped"},
	secondCluster:      {"P2", "a second cluster is created"},
	memberDataMoved:    {"P3", "the data of a listed member is moved aside"},
	dataMovedUnderEtcd: {"P3", "data is moved aside while etcd runs on it"},
	stoppedStarted:     {"P4", "a cleanly stopped etcd is started"},
	stepWhilePaused:    {"P4", "a step is decided while the cluster is paused"},
	unknownJoins:       {"P6", "a host with unknown health joins"},
	unknownEvicts:      {"P6", "a join is aborted because the health of its host is unknown"},
	commonCause:        {"P7", "a member is added while several hosts are unhealthy"},
	noReason:           {"P8", "a decision has neither a step nor a reason"},
	begunInVain:        {"P8", "a host begins an operation that it rolls back at once"},
	quietTooEarly:      {"P6", "a host polls less often although work is pending"},
	readyDiffers:       {"P8", "the model and the policy differ on whether a host is ready"},
	steppedDownDuringOperation: {
		"P1",
		"a host transfers leadership during or right before its own operation",
	},
	steppedDownToDead:   {"P2", "leadership is transferred to a voter that does not serve"},
	steppedDownToWorse:  {"P6", "leadership is transferred to a host that is not reported healthy"},
	steppedDownToSlower: {"P6", "a leader with slow writes transfers leadership to a voter not reported as faster"},
	steppedDownInHabit: {
		"P6",
		"a leader transfers leadership because of slow writes that are usual at this hour",
	},
	steppedDownToTaken: {
		"P1",
		"leadership is transferred to a host with an operation or removal, pending or running",
	},
	cycleTouched:     {"P1", "a host writes the operation record of another host's cycle"},
	stoppedWithoutOp: {"P1", "a voter's etcd is stopped without an operation of its host"},
	twoDown: {
		"P1",
		"a voter's etcd is stopped while another voter is down for its own operation",
	},
	secondOperation: {
		"P1",
		"an operation begins during another host's operation whose record was deleted",
	},
	endedEarly:           {"P1", "the operation ends before its host is back"},
	calledWithoutLock:    {"P5", "an agent without the lock stops etcd or transfers its leadership"},
	stopAtRisk:           {"P2", "a voter's etcd is stopped although that puts quorum at risk"},
	leaderStopped:        {"P2", "the leader's etcd is stopped without a leadership transfer"},
	rebootedAgain:        {"P2", "a machine is rebooted twice for one request"},
	startedEarly:         {"P4", "an etcd that was stopped for maintenance runs before the maintenance ends"},
	startedDuringCommand: {"P4", "an etcd is started while the command for which it was stopped is running"},
	startedEmpty:         {"P2", "a voter's etcd starts, or may start at boot, without its data"},
	ranWhileEtcdRuns:     {"P2", "a command runs while the etcd of its host is running"},
	externalEtcdDriven:   {"P4", "a step starts or stops an external etcd"},
	joinsUnstartable:     {"P2", "a join begins on a host whose etcd cannot be started"},
	ranTwice:             {"P8", "a command is run twice"},
	notRun:               {"P8", "an operation is reported as successful although its command has not succeeded"},
	oldDeletedEarly: {
		"P2", "the database from before a defragmentation is deleted before the member is healthy",
	},
	liveRemoved: {"P2", "the removal of a live voter begins without permission"},
	removedAtRisk: {
		"P2",
		"a voter is removed although the others lack quorum without it or one of them is down",
	},
	removedWithoutOperation: {"P1", "a member is removed without an operation for it"},
	removalForgotten:        {"P5", "the operation of a removal ends while the removal may still be applied"},
	removalDropped: {
		"P1",
		"a removal request is dropped before it is done, expired or released, or while its operation runs",
	},
	removedAgain:      {"P4", "a released removal begins again"},
	startGuardStays:   {"P4", "etcd does not start after a boot although there is no maintenance"},
	startGuardMissing: {"P2", "the etcd of a host without a member may start by itself at boot"},
	memberUnrecorded:  {"P2", "a host does not record its member ID, or that it is no longer a member"},
	joinMiscounted:    {"P8", "the outcome of a join is counted wrongly"},
	requestUnrecorded: {"P1", "an operation record is written without a record on the host's disk"},
	opSeenUnrecorded:  {"P1", "a host does not record that its requested operation is in flight"},
	requestDropped: {
		"P1",
		"a request is dropped before it is finished or released, or while etcd is down for it",
	},
	recalledUnasked: {
		"P4",
		"work that is not interruptible, or a reboot that may take effect at any moment, is called off",
	},
	recalledBlindly: {"P6", "a host that reaches no other member calls its work off"},
	recalledNeedlessly: {
		"P4",
		"work is called off although the fault tolerance is above 0 or only the host taken down is missing",
	},
	recallMisreported: {"P8", "the end of an operation does not report that its work was called off"},
	recallRepeated:    {"P4", "maintenance that was called off begins again without a request"},
	neverRecalled: {
		"liveness",
		"the cluster needs the vote of a host in interruptible maintenance, but that host does not return",
	},
	targetMissed: {"liveness", "all faults are healed and time passes, but the target is not reached"},
	hostNotBack:  {"liveness", "all faults are healed and the request is finished, but a host is not back"},
	begunInAlarm: {
		"P2",
		"a host joins during an etcd alarm, or a voter is taken down or removed during a CORRUPT alarm",
	},
	corruptDataCopied: {"P2", "a host joins and receives its data from a leader whose data is corrupt"},
	operationStuck:    {"liveness", "time passes and voters are live, but the operation never ends"},
	neverQuiescent:    {"liveness", "all faults have stopped, but the agents do not become idle"},
	removalNeverEnds:  {"liveness", "all faults are healed, but an expired removal request remains"},
}

// judgeState checks the promises that every world must keep, whatever the last event was.
func (w *world) judgeState() breach {
	holders, changes := 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		if h.hasToken != 0 && h.valid != 0 {
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
	if found := w.judgeURLs(); found != fine {
		return found
	}
	for i := range w.n {
		h := &w.hosts[i]
		switch {
		case h.phase == sent && changesMembership(h.step) && !w.owns(i):
			return changeWithoutLock
		case h.hasToken != 0 && h.valid != 0 && !w.owns(i):
			return holderWithoutLock
		}
	}
	return fine
}

// judgeDecision checks a decision against the world at the time of the view.
func (w *world) judgeDecision(h int, c choice, leads bool, size policy.Target) breach {
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
		return secondOperation
	}
	switch c.step {
	case beginVoter, beginStandby:
		return w.judgeHealth(h)
	case addLearner:
		return w.judgeAdd(h)
	case promote:
		return w.judgePromote(h)
	case removeLearner:
		if w.opForged != 0 && c.target == w.opHost {
			return standbyRemoved
		}
		return w.judgeStandbyRemoval(h, c)
	case rollBackLeft:
		return w.judgeStandbyRemoval(h, c)
	case runCommand:
		if a.program != 0 {
			return ranTwice
		}
		if a.unit != stoppedForRequest && a.unit != failed && a.unit != inactive {
			return ranWhileEtcdRuns
		}
	case updateMember, restoreMember:
		return w.judgeUpdate(h, c.step)
	case deleteOld:
		if !w.serves(h) || w.servedLong == 0 || a.program == programRuns {
			return oldDeletedEarly
		}
	case startUnit, startAsIs:
		if a.program == programRuns {
			return startedDuringCommand
		}
		if a.dataLost() {
			return startedEmpty
		}
		// If the disk records that the agent stopped etcd, a later stop by an operator cannot be detected, except after
		// a boot.
		noted := a.stopped != 0 && !a.ranAfterReboot()
		if a.unit == inactive && a.data == current && (!w.joining(h) || a.list == voter) && a.request == 0 && !noted {
			return stoppedStarted
		}
		if a.stopped != 0 && w.keptDown(h) && !w.workDone(h) {
			return startedEarly
		}
	case takeDown, takeDownHeld, takeDownURL, restartUnit:
		return w.judgeStop(h, leads)
	case reboot:
		if a.begun == begunBefore {
			return rebootedAgain
		}
		return w.judgeStop(h, leads)
	case transferLeadership:
		if !w.ownsOperation(h) {
			return w.judgeTransfer(h, int(c.target))
		}
	case stepDown:
		return w.judgeStepDown(h, int(c.target))
	case endCycle, endKeep:
		return w.judgeEnd(h, c)
	case beginReplace, beginRemoveLost:
		if w.ejected(h) {
			return ejectedJoins
		}
		return w.judgeReplacement(h, c, leads, size)
	case beginLeave, beginRemoval, setRemoving, removeMember, endRemoval:
		if w.opLeave != 0 || c.step == beginLeave {
			return w.judgeLeave(h, c, leads)
		}
		if w.opReplace != 0 {
			if c.step == setRemoving && w.rpGone == 0 && !c.repairs && !w.replacesItself() {
				return ejectionForgotten
			}
			return w.judgeReplacement(h, c, leads, size)
		}
		return w.judgeRemoval(h, c)
	case endJoined, endFailed:
		if found := w.judgeReplacementEnd(); found != fine || !w.joining(h) || w.countedRight(c) {
			return found
		}
		return joinMiscounted
	case rollBackKeep, rollBackOwn:
		if c.outcome == policy.HealthLost && a.health == unknown {
			return unknownEvicts
		}
	}
	return fine
}

// countedRight reports whether the end of a host's own join is counted according to its outcome. A replacement that
// fails before the host has sent anything to etcd may be counted as failed or not at all.
func (w *world) countedRight(c choice) bool {
	switch {
	case w.opVotes != 0:
		return c.join == policy.JoinUncounted
	case c.step == endJoined:
		return c.join == policy.JoinSucceeded
	case c.outcome == policy.OperationRejected:
		return c.join == policy.JoinUncounted
	}
	nothingSent := w.opReplace != 0 && w.opPhase == phaseBegun
	return c.join == policy.JoinFailed || c.join == policy.JoinUncounted && nothingSent
}

// judgeStartGuard checks whether a decision's change of the start guard fits the host.
func (w *world) judgeStartGuard(h int, c choice) breach {
	a, hold := &w.hosts[h], c.startGuard
	// An etcd that keeps restarting, such as a removed member's, gets the start guard like one that is down.
	idle := a.unit == inactive || a.unit == failed || a.unit == stoppedForRequest || a.unit == starting
	switch {
	case a.list != unlisted && a.data == current && hold == policy.GuardSet:
		return startGuardStays
	case a.list != unlisted && a.data == current && c.request == policy.RequestEnds && !c.removesGuard:
		return startGuardStays // without the request, nothing shows why the guard was set
	case a.list == unlisted && a.request == 0 && hold == policy.GuardCleared,
		a.list == unlisted && a.request|a.stopped == 0 && idle && w.reaches(h) && !w.ownsOperation(h) &&
			hold != policy.GuardSet:
		return startGuardMissing
	}
	return fine
}

// judgeRequest checks whether a decision's change of the request fits the outcome of its operation.
func (w *world) judgeRequest(h int, c choice) breach {
	note := c.request
	a := &w.hosts[h]
	cycles, reaches := w.cycles(h), w.reaches(h)
	down := a.stopped != 0 && a.list != unlisted && a.unit != active
	done := a.ended|a.recalled != 0 || a.begun == tooLate || a.begun == begunBefore && a.isReboot()
	freed := a.opSeen != 0 && a.released != 0
	down = down && !a.lossRecorded()
	switch {
	case note == policy.RequestEnds && (!reaches || cycles || w.recordDeleted(h) || down || !done && !freed):
		return requestDropped
	case note == policy.RequestEnding && c.outcome != policy.Cycled && c.outcome != policy.Cancelled &&
		c.outcome != policy.HookFailed && c.outcome != policy.CommandFailed && c.outcome != policy.DefragFailed &&
		c.outcome != policy.MemberLost &&
		c.outcome != policy.Recalled:
		return requestDropped
	case c.outcome == policy.Recalled && a.isMaintenance() != (note == policy.RequestEnding) && a.ended == 0:
		return recallRepeated
	case c.step == endCycle || c.step == endKeep: // the end of the operation also changes the request
	case a.work != noWork && a.ended == 0 && a.opSeen == 0 && reaches && cycles && note != policy.RequestSeen:
		return opSeenUnrecorded
	}
	return fine
}

// judgeRecordedFirst checks that the disk records the start or end of a host operation before etcd does. Otherwise, if
// the agent died in between, its next process would repeat the work.
func (w *world) judgeRecordedFirst(h int, step uint8) breach {
	a := &w.hosts[h]
	switch {
	case a.work == noWork:
	case (step == beginCycle || step == beginReaddress) && a.begun == 0,
		step == endCycle && (a.ended == 0 || a.opSeen != 0),
		step == endKeep && a.begun|a.opSeen != 0:
		return requestUnrecorded
	}
	return fine
}

// judgeSelf checks that a host that reaches etcd records on disk whether it is a member.
func (w *world) judgeSelf(h int, note policy.SelfNote) breach {
	after := w.hosts[h]
	after.noteSelf(note)
	if after.dataLost() {
		return fine // judgeEnd checks whether the disk records the loss
	}
	if w.reaches(h) && after.recorded != bit(after.list != unlisted && after.data == current) {
		return memberUnrecorded
	}
	return fine
}

// anotherInOperation reports whether another host publishes that it is in an operation whose record was deleted.
func (w *world) anotherInOperation(h int) bool {
	for i := range w.n {
		if i != h && w.recordDeleted(i) && w.present(i) {
			return true
		}
	}
	return false
}

// judgeHealth checks whether the health of a host and of the members allows it to join.
func (w *world) judgeHealth(h int) breach {
	switch w.hosts[h].health {
	case slow:
		return unhealthyJoins
	case unknown:
		return unknownJoins
	case clockWrong:
		return clockOffJoins
	}
	unhealthy := 0
	for i := range w.n {
		g := &w.hosts[i]
		member := g.list == voter || (g.list == learner && g.named != 0 && !w.joining(i) && !w.isPermanent(i))
		if member && g.health == slow && w.present(i) {
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
	case w.stable == 0 && w.opReplace&w.opStandby == 0: // a standby that replaces a voter is promoted at once
		return unsettled
	}
	return w.judgeHealth(h)
}

func (w *world) judgeAdd(h int) breach {
	other := w.learnerAt()
	if standby := other >= 0 && w.isPermanent(h) && w.hosts[other].named != 0; other >= 0 && other != h && !standby {
		return secondLearner
	}
	if found := w.judgeLearnerAdd(h); found != fine {
		return found
	}
	return w.judgeChange(h)
}

func (w *world) judgePromote(h int) breach {
	a := &w.hosts[h]
	if w.isPermanent(h) {
		return permanentVotes
	}
	justCut := w.answers(h) && w.learnerMoved != 0 // no agent can have observed the cut yet
	if a.list != learner || a.progress != steady || (!w.serves(h) && !justCut) {
		return learnerUnready
	}
	voters, _ := w.votes()
	others := 0
	for i := range w.n {
		if i != h && w.hosts[i].list != voter && w.present(i) && w.ready(i) && !w.isPermanent(i) {
			others++
		}
	}
	replacedStillVotes := w.opReplace != 0 && w.rpGone == 0 && w.hosts[w.rpTarget].list == voter
	switch {
	case replacedStillVotes && !w.isUnhealthy(int(w.rpTarget)):
		return healthyReplaced
	case voters%2 == 1 && others == 0 && w.opReplace == 0 &&
		w.retiring() == 0: // a replacement keeps the number of voters
		return evenVoters
	}
	return w.judgeChange(h)
}
