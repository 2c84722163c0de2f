// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RequestChange is what happens to this host's request.
type RequestChange uint8

// The changes of a request. The zero value leaves it as it is.
const (
	RequestStays   RequestChange = iota
	RequestSeen                  // its operation is in flight; the disk records that
	RequestEnds                  // it is over
	RequestEnding                // it is over with the step, which ends its operation
	RequestRetried               // it stays, although the step ends its operation
	RequestTurn                  // there is none, and a rollout has reached this host: one is made
	RequestAgain                 // a rollout has reached this host, which has already had its turn: the rollout stops
	RequestTooNew                // a rollout has reached this host, but this agent does not know that work
)

// RequestNote is what this host's disk records about its request.
type RequestNote struct {
	Change RequestChange
	Code   ReasonCode // the code with which it ends
	Text   string
	Guard  StartGuard // how to set the start guard before it ends
}

// workOver reports whether the host no longer needs to be taken down for its request.
func (a *Asked) workOver() bool { return a.Work.over(a.Ended, a.Rebooted) }

// noteRequest updates the request from what was observed. It records that the operation was seen, so that one that is
// gone later is known to be released; it ends a request that is over and has no operation any more, or whose rollout
// has ended; and it takes this host's turn in a rollout. A step that ends the operation may end the request as well.
func noteRequest(v View, step Step) RequestNote {
	if step.Kind == StepEndOp && v.owns(KindCycle) {
		return RequestNote{Change: endsWith(step.Outcome)}
	}
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.cannotRead(RecordOp) { // the operation in flight is unknown
		return RequestNote{}
	}
	a := v.Asked
	if a == nil {
		return RequestNote{Change: rolloutTurn(v)}
	}
	own := v.Op != nil && v.Op.Host == v.Self.ID
	m, listed := v.member()
	up := v.Unit.State == UnitActive
	switch {
	case v.owns(KindCycle) && !a.Seen && !a.Ended: // the end of one that is over is on its way
		return RequestNote{Change: RequestSeen}
	case own, a.RecordDeleted: // its record is gone, but the request is not over
	case a.workOver() && v.gaveUp(m):
		return ends(MemberLost, gaveUpText(m))
	case a.NotBegun && !a.Stopped && againstLostMember(v, a.Work) != nil:
		return ends(MemberLost, againstLostMember(v, a.Work).Text)
	case a.Seen && !a.Ended && (!a.Stopped || up && !a.Work.info().operatorEnds):
		return ends(Cancelled, "its operation was released")
	case a.workOver() && (up || !listed || !a.Stopped) && !v.Lock.Mine && !v.cannotRead(RecordLock):
		return ends(Cycled, "its operation has ended")
	case a.TooLate:
		return ends(Cancelled, "the machine was rebooted before the operation began")
	case halted(v) && !v.cannotRead(RecordRollout): // a rollout that cannot be read now may continue
		return ends(Cancelled, "the rollout that requested it does not continue")
	}
	return RequestNote{}
}

func ends(code ReasonCode, text string) RequestNote {
	return RequestNote{Change: RequestEnds, Code: code, Text: text}
}

// halted reports whether the rollout that requested this host's operation does not continue, and the operation has not
// begun: it is paused or over. Then the host is not taken down, even while its disk does not record the end of the
// request yet. If the disk records that the operation begins and etcd has no record of it, it has not begun either.
// Another cluster has other rollouts.
func halted(v View) bool {
	a := v.Asked
	return a != nil && a.Rollout != "" && !v.foreign() &&
		(a.NotBegun || !a.Seen && !a.Stopped && !v.owns(KindCycle)) &&
		(v.Rollout == nil || v.Rollout.ID != a.Rollout || !v.Rollout.Runs)
}

// endsWith returns what happens to the request when its operation ends. If nothing was done and nothing has failed, it
// waits for another operation.
func endsWith(outcome ReasonCode) RequestChange {
	switch outcome {
	case Cycled, Cancelled, HookFailed, CommandFailed, MemberLost, HealthBad:
		return RequestEnding
	}
	return RequestRetried
}

// turnIn reports whether a running rollout has reached this host.
func rolloutTurn(v View) RequestChange {
	r := v.Rollout
	switch {
	case r == nil || !r.Runs || !v.HostsFresh || v.Op != nil || v.Pause != nil || v.cannotRead(RecordPause),
		v.Self.Mode != Manage || v.Self.Conflict != "" || v.foreign(),
		r.Work != "" && againstLostMember(v, r.Work) != nil,
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
