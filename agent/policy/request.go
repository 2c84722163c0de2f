// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RequestChange says what becomes of what was asked of this host.
type RequestChange uint8

// What becomes of a request. The zero value leaves it as it is.
const (
	RequestStays   RequestChange = iota
	RequestSeen                  // its operation is in flight, and stands by this host's disk from now on
	RequestEnds                  // it is over
	RequestEnding                // it is over with the step, which ends its operation
	RequestRetried               // it is asked for still, though the step ends its operation
	RequestTurn                  // there is none, and a rollout has come to this host: it is asked for that
	RequestAgain                 // it would be, but has had its turn: the rollout is to stop
	RequestTooNew                // it would be, but this agent does not know that work
)

// RequestNote is what this host's disk is to say of what was asked of it.
type RequestNote struct {
	Change RequestChange
	Code   ReasonCode // with which it ends
	Text   string
	Guard  StartGuard // what the start guard is to be before it ends
}

// workOver tells whether the host need not be taken down any more for what was asked.
func (a *Asked) workOver() bool { return a.Work.over(a.Ended, a.Rebooted) }

// noteRequest brings what was asked in line with what was seen. It notes that the operation has been seen, so that one
// that is gone later is known to be released; it ends what is over and has no operation any more, and what a rollout
// asked that has ended; and it takes this host's turn in a rollout. A step that ends the operation may end the request,
// too.
func noteRequest(v View, step Step) RequestNote {
	if step.Kind == StepEndOp && v.owns(KindCycle) {
		return RequestNote{Change: endsWith(step.Outcome)}
	}
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.cannotRead(RecordOp) { // then whose operation is in flight
		return RequestNote{}
	}
	a := v.Asked
	if a == nil {
		return RequestNote{Change: turnIn(v)}
	}
	own := v.Op != nil && v.Op.Host == v.Self.ID
	m, listed := v.member()
	up := v.Unit.State == UnitActive
	switch {
	case v.owns(KindCycle) && !a.Seen && !a.Ended: // of one that is over, the end is on its way
		return RequestNote{Change: RequestSeen}
	case own, a.Noted: // its record is gone, and it is not
	case a.workOver() && v.gaveUp(m):
		return ends(MemberLost, gaveUpText(m))
	case a.Unbegun && !a.Stopped && againstLost(v, a.Work) != nil:
		return ends(MemberLost, againstLost(v, a.Work).Text)
	case a.Seen && !a.Ended && (!a.Stopped || up && !a.Work.info().byWord):
		return ends(Withdrawn, "its operation was released")
	case a.workOver() && (up || !listed || !a.Stopped) && !v.Lock.Mine && !v.cannotRead(RecordLock):
		return ends(Cycled, "its operation has ended")
	case a.TooLate:
		return ends(Withdrawn, "the machine was rebooted before the operation began")
	case halted(v) && !v.cannotRead(RecordRollout): // one that cannot be read now may go on
		return ends(Withdrawn, "the rollout that requested it does not continue")
	}
	return RequestNote{}
}

func ends(code ReasonCode, text string) RequestNote {
	return RequestNote{Change: RequestEnds, Code: code, Text: text}
}

// halted tells whether the rollout that asked for this host's turn, which has not come, does not go on: it is paused,
// or over. The host is not taken down then, also while the end of what was asked is not on its disk yet. Its disk may
// say that its operation begins, and etcd have no record of it: that turn has not come either. Another cluster has
// other rollouts, and says nothing about it.
func halted(v View) bool {
	a := v.Asked
	return a != nil && a.Rollout != "" && !v.foreign() &&
		(a.Unbegun || !a.Seen && !a.Stopped && !v.owns(KindCycle)) &&
		(v.Rollout == nil || v.Rollout.ID != a.Rollout || !v.Rollout.Runs)
}

// endsWith tells what becomes of what was asked with the end of its operation. Where nothing was done, and nothing has
// failed, it waits for another turn.
func endsWith(outcome ReasonCode) RequestChange {
	switch outcome {
	case Cycled, Withdrawn, HookFailed, CommandFailed, MemberLost, HealthBad:
		return RequestEnding
	}
	return RequestRetried
}

// turnIn tells whether a rollout that runs has come to this host.
func turnIn(v View) RequestChange {
	r := v.Rollout
	switch {
	case r == nil || !r.Runs || !v.Looked || v.Op != nil || v.Pause != nil || v.cannotRead(RecordPause),
		v.Self.Mode != Manage || v.Self.Conflict != "" || v.foreign() || r.Work != "" && againstLost(v, r.Work) != nil,
		RolloutNext(v, r.Waiting) != v.Self.ID:
		return RequestStays
	case waitsForSnapshot(v):
		return RequestStays
	case !r.Due:
		return RequestAgain
	case !r.Work.info().rolls:
		return RequestTooNew
	}
	return RequestTurn
}
