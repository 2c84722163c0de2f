// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RequestChange is a change of this host's request.
type RequestChange uint8

// The changes. The zero value leaves the request as it is.
const (
	RequestStays   RequestChange = iota
	RequestSeen                  // record on disk that its operation is in flight
	RequestEnds                  // delete the request
	RequestEnding                // delete the request with the step, which ends its operation
	RequestRetried               // keep the request, although the step ends its operation
	RequestTurn                  // a rollout has reached this host: make a request
	RequestAgain                 // a rollout has reached this host a second time: stop the rollout
	RequestTooNew                // a rollout has reached this host, but this agent does not know its work
)

// RequestNote is what this host's disk records about its request.
type RequestNote struct {
	Change RequestChange
	Code   ReasonCode // why the request ends
	Text   string
	Guard  StartGuard // how to change the start guard before the request ends
}

// workOver reports whether the host no longer needs to be taken down for its request.
func (a *Asked) workOver() bool { return a.Work.over(a.Ended, a.Rebooted) }

// noteRequest returns how the request changes. Once its operation has been observed in etcd, the disk records that: if
// the operation's record disappears later, it was released or deleted. A request ends when its work is over and its
// operation has ended, or when its rollout does not continue. When a rollout reaches this host, a request is made. A
// step that ends the operation may end the request as well.
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
	case v.owns(KindCycle) && !a.Seen && !a.Ended: // a request that has ended is about to be deleted
		return RequestNote{Change: RequestSeen}
	case own, a.RecordDeleted: // in flight; with Noted, its record was deleted
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
	case halted(v) && !v.cannotRead(RecordRollout): // an unreadable rollout may continue later
		return ends(Cancelled, "the rollout that requested it does not continue")
	}
	return RequestNote{}
}

func ends(code ReasonCode, text string) RequestNote {
	return RequestNote{Change: RequestEnds, Code: code, Text: text}
}

// halted reports whether a rollout requested this host's operation, the operation has not begun, and the rollout is
// paused or over. Then the host is not taken down, even before its disk records the end of the request. An operation
// has not begun as long as etcd has no record of it, even if the disk records that it begins. The rollouts of another
// cluster do not count.
func halted(v View) bool {
	a := v.Asked
	return a != nil && a.Rollout != "" && !v.foreign() &&
		(a.NotBegun || !a.Seen && !a.Stopped && !v.owns(KindCycle)) &&
		(v.Rollout == nil || v.Rollout.ID != a.Rollout || !v.Rollout.Runs)
}

// endsWith returns what happens to the request when its operation ends. If nothing was done and nothing has failed, the
// request waits for another operation.
func endsWith(outcome ReasonCode) RequestChange {
	switch outcome {
	case Cycled, Cancelled, HookFailed, CommandFailed, MemberLost, HealthBad:
		return RequestEnding
	}
	return RequestRetried
}

// rolloutTurn returns the change of the request if a running rollout has reached this host.
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
