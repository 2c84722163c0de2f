// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// RequestChange is a change of this host's request.
type RequestChange uint8

// The changes. The zero value leaves the request as it is.
const (
	RequestStays     RequestChange = iota
	RequestSeen                    // record on disk that the request's operation is in flight
	RequestEnds                    // delete the request
	RequestEnding                  // delete the request when the step ends its operation
	RequestRetried                 // keep the request although the step ends its operation
	RequestTurn                    // a rollout has reached this host: make a request
	RequestAgain                   // a rollout has reached this host a second time: stop the rollout
	RequestHeld                    // an upgrade has reached the last member: pause the rollout
	RequestTooNew                  // a rollout has reached this host, but this agent does not support its work
	RequestRecalled                // record on disk that the request's work is called off
	RequestDefrag                  // request the defragmentation of this host's own member
	RequestWithdrawn               // delete this agent's own request, whose trigger no longer applies
)

// RequestNote is a change of this host's request on its disk.
type RequestNote struct {
	Change RequestChange
	Code   ReasonCode // why the request ends, or why its work is called off
	Text   string
	Guard  StartGuard // how to change the start guard before the request ends
}

// noteRequest returns how the request changes. Once its operation has been observed in etcd, the disk records that: if
// the operation's record disappears later, an operator released the operation, or the record was deleted. A request
// ends when its work is over and its operation has ended, and for other reasons, for example if its rollout does not
// continue. A host without a request makes one when a rollout reaches it, or to defragment its own member. A step that
// ends the operation may end the request as well.
func noteRequest(v View, step Step) RequestNote {
	if step.Kind == StepEndOp && v.owns(KindCycle) {
		return RequestNote{Change: endsWith(v.Asked, step.Outcome)}
	}
	if why, off := callsOff(v); off {
		return RequestNote{Change: RequestRecalled, Code: Recalled, Text: why}
	}
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.cannotRead(RecordOp) { // the operation in flight is unknown
		return RequestNote{}
	}
	a := v.Asked
	if a == nil {
		if turn := rolloutTurn(v); turn.Change != RequestStays {
			return turn
		}
		return automaticDefrag(v)
	}
	own := v.Op != nil && v.Op.Host == v.Self.ID
	m, listed := v.member()
	removed := !v.foreign() && !listed && !v.listed(v.Self.MemberID)
	up := v.Unit.State == UnitActive
	why, held := upgradeHeld(v)
	_, sure := lastToUpgrade(v)
	switch {
	case v.owns(KindCycle) && !a.Seen && !a.Ended: // a request that has ended is about to be deleted
		return RequestNote{Change: RequestSeen}
	case own, a.RecordDeleted: // the operation is in flight, or its record was deleted
	case a.Done() && v.gaveUp(m):
		return ends(MemberLost, gaveUpText(m))
	case !a.Begun && !a.Stopped && againstLostMember(v, a.Work) != nil:
		return ends(MemberLost, againstLostMember(v, a.Work).Text)
	case a.Seen && !a.Ended && (!a.Stopped || up && !a.Work.info().operatorEnds):
		return ends(Cancelled, "its operation was released")
	case commandMayRun(v): // the request keeps etcd from starting, so it lasts as long as the program runs
	case a.Seen && removed && (!a.Work.info().operatorEnds || v.isRetired(v.Self.ID)): // etcd does not start again
		return ends(Cancelled, "its operation was released, and the member of this host was removed")
	case a.Done() && (up || !listed || !a.Stopped) && !v.Lock.Mine && !v.cannotRead(RecordLock):
		return doneEnds(a)
	case a.TooLate():
		return ends(Cancelled, "the machine was rebooted before the operation began")
	case held && sure:
		return RequestNote{Change: RequestHeld, Text: why}
	case halted(v) && !v.cannotRead(RecordRollout): // an unreadable rollout may continue later
		return ends(Cancelled, "the rollout that requested it does not continue")
	case withdrawn(v):
		return RequestNote{Change: RequestWithdrawn}
	}
	return RequestNote{}
}

// doneEnds ends a request whose work is done or was called off.
func doneEnds(a *Asked) RequestNote {
	if a.Recalled != "" {
		return ends(Recalled, a.Recalled)
	}
	return ends(Cycled, "its operation has ended")
}

func ends(code ReasonCode, text string) RequestNote {
	return RequestNote{Change: RequestEnds, Code: code, Text: text}
}

// halted reports whether a rollout requested this host's operation, the operation has not begun, and the rollout is
// paused or over. In that case the host is not taken down, even before its disk records the end of the request. The
// rollouts of another cluster do not count.
func halted(v View) bool {
	a := v.Asked
	return a != nil && a.Rollout != "" && !v.foreign() && notBegun(v) &&
		(v.Rollout == nil || v.Rollout.ID != a.Rollout || !v.Rollout.Runs)
}

// notBegun reports whether the requested operation has not begun. Even if the disk records that it is about to begin,
// it has not begun until its record was observed in etcd or etcd was stopped for it.
func notBegun(v View) bool {
	a := v.Asked
	return !a.Begun || !a.Seen && !a.Stopped && !v.owns(KindCycle)
}

// endsWith returns the change of the request when its operation ends. If nothing was done and nothing has failed, the
// request waits for a new operation. A reboot that was called off waits as well: it is due when the cluster allows it.
func endsWith(a *Asked, outcome ReasonCode) RequestChange {
	switch outcome {
	case Recalled:
		if a != nil && a.Work.info().rebootEnds && !a.Ended {
			return RequestRetried
		}
		return RequestEnding
	case Cycled, Cancelled, HookFailed, CommandFailed, DefragFailed, MemberLost, HealthBad:
		return RequestEnding
	}
	return RequestRetried
}

// rolloutTurn returns the change of the request if a running rollout has reached this host.
func rolloutTurn(v View) RequestNote {
	change := reachedBy(v)
	if change != RequestTurn {
		return RequestNote{Change: change}
	}
	if why, sure := lastToUpgrade(v); sure {
		return RequestNote{Change: RequestHeld, Text: why}
	}
	return RequestNote{Change: change}
}

// reachedBy returns the change of the request if a running rollout has reached this host. Afterwards, rolloutTurn
// checks whether an upgrade pauses here instead.
func reachedBy(v View) RequestChange {
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

// The transitions of a request, one method each. The request may have been cancelled after a step was decided, so those
// that stop etcd or start a program report whether the request is still valid.

// AgainstRequest returns why this host rejects a request, or nil. pending reports whether it has a request already, and
// canReboot whether its agent can reboot the machine.
func AgainstRequest(v View, pending bool, request Request, canReboot bool) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes",
			"set mode: manage and reload quorumd; until then, coordinate by hand")
	case request.Work == WorkReboot && !request.External && !canReboot:
		return conflicts("", "quorumd has no way to reboot this machine",
			"quorumctl maintenance on --reason '<why>', and reboot by hand")
	case request.KeepRunning && slices.Contains([]Work{WorkRestart, WorkReaddress, WorkDefrag}, request.Work):
		return &Refusal{
			Wrong, "", "a " + string(request.Work) + " cannot keep etcd running",
			"omit the option that keeps etcd running",
		}
	case request.Interruptible && (!request.Work.info().operatorEnds || request.KeepRunning):
		return &Refusal{Wrong, "", "only maintenance that stops etcd can be interruptible", "omit --interruptible"}
	case request.Interruptible && !v.Self.Drives:
		return conflicts(EtcdExternal,
			"this host's etcd is managed externally, and quorumd cannot start it again to interrupt the maintenance",
			"omit --interruptible")
	case !MayTakeDown(v, request.Work):
		return conflicts(EtcdExternal,
			"this host's etcd is managed externally, and quorumd cannot stop it for a "+string(request.Work),
			"quorumctl maintenance on reserves the time for the tool that manages etcd; "+EtcdExternal.Info().Remedy)
	case againstLostMember(v, request.Work) != nil:
		return againstLostMember(v, request.Work)
	case !pending && v.owns(KindCycle):
		return conflicts("", "the last operation is just ending", "try again in a few seconds")
	}
	return nil
}

// Renewed handles a new request while another is pending. A request for the same work renews the pending one, unless
// the pending one has ended, or its command has been started (a command runs only once), or only the new one is
// interruptible and the work has begun. Any other request is refused. If a request for different work reports that the
// machine goes down now, the pending one records that, provided that the machine may go down during its work.
func (s Request) Renewed(request Request) (Request, *Refusal) {
	same := s.Work == request.Work && s.Program == request.Program && s.KeepRunning == request.KeepRunning &&
		s.External == request.External
	if s.over() || !same {
		s.Hurried = s.Hurried || request.Hurried && s.OutlastsReboot()
	}
	switch {
	case s.over():
		return s, conflicts("", "the last request, by "+s.By+", is just ending",
			"wait for it: quorumctl maintenance status")
	case !same:
		return s, conflicts("", "this host already has a different request ("+string(s.Work)+"), by "+s.By+": "+
			s.Reason,
			"wait for it, or end it first: quorumctl maintenance off")
	case s.Ran != HooksNone:
		return s, conflicts("",
			"the "+s.Job()+", requested by "+s.By+", has already been started, and is not run again",
			"wait until the host is back, and try again: quorumctl maintenance status")
	case request.Interruptible && !s.Interruptible && !s.Untouched(): // the operator at work expects no interruption
		return s, conflicts("", "the maintenance, requested by "+s.By+", has begun without --interruptible",
			"try again without --interruptible, or end it first: quorumctl maintenance off")
	}
	s.Hurried, s.Reason = s.Hurried || request.Hurried, request.Reason
	s.Interruptible, s.Automatic = request.Interruptible, s.Automatic && request.Automatic
	return s, nil
}

// Finished handles an operator's end of a request. If nothing has been done for the request, it is cancelled; otherwise
// the host is brought back. waives reports that the hooks after the operation have failed and are ignored. rolls
// reports that the running rollout would make the request again at once and then stop.
func (s Request) Finished(waives, rolls bool) (next Request, cancelled bool, refused *Refusal) {
	switch {
	case !s.Untouched():
		s.Ended, s.Waived = true, s.Waived || waives
		return s, false, nil
	case rolls:
		return s, false, conflicts("", "it has not begun, and the running rollout would request it again",
			"quorumctl rollout pause, or quorumctl rollout abort")
	}
	return s, true, nil
}

// Waives reports whether an operator's end of the request also waives the hooks that run after etcd is back, because
// they have failed.
func (a *Asked) Waives() bool { return a != nil && a.After.State == HooksFailed }

// Unhurried records that the machine does not go down after all: the request is queued again.
func (s Request) Unhurried() Request {
	s.Hurried = false
	return s
}

// Begins records that the operation's record is about to be written to etcd, in this boot.
func (s Request) Begins() Request {
	s.Begun, s.OtherBoot = true, false
	return s
}

// Recorded records that the operation's record was observed in etcd. If the record disappears later, the operation was
// released or the record was deleted.
func (s Request) Recorded() Request {
	s.Seen = true
	return s
}

// StopsEtcd records that etcd is about to be stopped for the request; valid is false if the request has ended or its
// work was called off. A readdress in flight continues even after its request has ended, because it may have updated
// the member list. guardOf decides about the start guard.
func (s Request) StopsEtcd() (next Request, valid bool) {
	valid = !s.over() || s.Work == WorkReaddress && s.Seen
	s.Stopped = s.Stopped || valid
	return s, valid
}

// CalledOff records why the work is called off while etcd is stopped for it. It records nothing if the request has
// changed since the decision in such a way that its work must not be called off.
func (s Request) CalledOff(why string) Request {
	interruptible := s.Interruptible || s.Work.info().rebootEnds
	if s.Stopped && interruptible && !s.over() {
		s.Recalled = why
	}
	return s
}

// EtcdStarted records that etcd was started again.
func (s Request) EtcdStarted() Request {
	s.Stopped = false
	return s
}

// StartsProgram records that the command's program is about to be started, unless it was started before; valid is false
// if the request has ended.
func (s Request) StartsProgram() (next Request, valid bool) {
	if !s.Ended && s.Ran == HooksNone {
		s.Ran = HooksRunning
	}
	return s, !s.Ended
}

// ProgramEnded records that the program is done, or has failed.
func (s Request) ProgramEnded(how HookState) Request {
	s.Ran = how
	return s
}

// OperationEnds records that the operation is about to end, and the request with it. Without this, the operation would
// be repeated if the agent crashed before the end was recorded in etcd.
func (s Request) OperationEnds() Request {
	s.Seen, s.Ended = false, true
	return s
}

// GivenUp records that the operation is about to end, and that the request waits for a new operation. Without this, if
// the agent crashed after the operation's record was deleted, the missing record would look like a release.
func (s Request) GivenUp() Request {
	s.Seen, s.Begun, s.Recalled = false, false, ""
	return s
}

// Request is the part of a request to take a host down, and of its progress, on which decisions depend. The agent
// builds it from the host's disk, and the model checker (agent/policy/model) from its simulated state. Both use its
// methods to decide whether the request is over, and change it only by the transitions above. workDone decides whether
// the work of an operation in flight is done.
type Request struct {
	Work        Work   `json:"work"`
	Program     string `json:"program,omitempty"` // the program of a command
	Reason      string `json:"reason"`
	By          string `json:"by"`
	KeepRunning bool   `json:"keepRunning,omitempty"` // the operation is only a reservation: etcd keeps running
	External    bool   `json:"external,omitempty"`    // something other than the agent reboots the machine
	Hurried     bool   `json:"hurried,omitempty"`     // the machine goes down within seconds, whatever quorumd does
	// Interruptible lets the agent call the work off and start etcd again if the cluster needs this host's vote.
	Interruptible bool `json:"interruptible,omitempty"`

	Ended   bool `json:"ended,omitempty"`   // an operator has ended the request, or its operation is about to end
	Waived  bool `json:"waived,omitempty"`  // an operator has waived the failed hooks that run once etcd is back
	Seen    bool `json:"seen,omitempty"`    // its operation was observed in etcd, and this host has not ended it
	Stopped bool `json:"stopped,omitempty"` // this agent has stopped etcd for the request, and has not started it since
	// Recalled is why the agent has called the work off; empty if it has not.
	Recalled string `json:"recalled,omitempty"`
	// Ran is the recorded state of a command's program: running, done or failed; empty before it was started.
	Ran HookState `json:"ran,omitempty"`
	// Automatic reports that this agent requested a defragmentation by itself.
	Automatic bool `json:"automatic,omitempty"`
	// OldDeleted reports that the database from before a defragmentation was deleted.
	OldDeleted bool `json:"oldDeleted,omitempty"`

	// Begun and OtherBoot are derived from the time at which the operation began. Begun reports that it has begun.
	// OtherBoot reports that it began in an earlier boot of the machine or, if it has not begun, that it was requested
	// in an earlier boot.
	Begun     bool `json:"-"`
	OtherBoot bool `json:"-"`
}

// Rebooted reports whether the machine has rebooted since the operation began.
func (s Request) Rebooted() bool { return s.Begun && s.OtherBoot }

// TooLate reports whether the machine was rebooted externally before the operation began: it will not be rebooted
// again.
func (s Request) TooLate() bool { return s.External && !s.Begun && s.OtherBoot }

// Done reports whether the host need not be down for the work: it is done, was ended by an operator or was called off.
func (s Request) Done() bool { return s.Work.over(s.over(), s.Rebooted()) }

// over reports whether an operator has ended the request, its operation is about to end, or its work was called off.
func (s Request) over() bool { return s.Ended || s.Recalled != "" }

// Untouched reports whether nothing has been done for the request yet. If so, an operator cancels it at once.
func (s Request) Untouched() bool { return !s.Begun && !s.Stopped }

// OutlastsReboot reports whether the operation continues if the machine goes down meanwhile.
func (s Request) OutlastsReboot() bool { return !s.over() && s.Work.info().outlastsReboot }

// Gone reports what happened to an operation that was observed and is no longer recorded in etcd. The operation counts
// as released if an operator released it or it belonged to a different cluster. Otherwise its record was deleted, and
// the operation is noted: it is still in flight according to this host's disk.
func (s Request) Gone(recorded, otherCluster, releasedByOperator bool) (released, noted bool) {
	gone := s.Seen && !recorded
	return gone && (otherCluster || releasedByOperator), gone && !otherCluster && !releasedByOperator
}

// Asked returns the request as part of a View. The caller adds the other observations.
func (s Request) Asked() Asked {
	return Asked{Request: s, Over: s.Done() || s.TooLate()}
}

// RequestState is the state of a host's request, for operators and for programs that wait for it.
type RequestState string

// The states of a request, in order.
const (
	RequestWaiting   RequestState = "waiting"   // the request is in the queue
	RequestStopping  RequestState = "stopping"  // leadership is transferred, then etcd is stopped
	RequestSafe      RequestState = "safe"      // the machine is safe to touch
	RequestWorking   RequestState = "working"   // etcd is stopped, and the command runs
	RequestReturning RequestState = "returning" // etcd starts and catches up
)

// StateOf returns the state of this host's request. While no voter answers, or if the operation's record was deleted,
// this host's disk and etcd unit show whether etcd is down for it.
func StateOf(v View) RequestState {
	a := v.Asked
	if a == nil {
		return RequestWaiting
	}
	own := v.owns(KindCycle)
	stopped := a.Stopped && v.Unit.State != UnitActive && v.Unit.State != UnitDeactivating
	down := own && v.Op.Phase == PhaseDown || (!v.Cluster.Reachable || a.RecordDeleted) && stopped
	switch {
	case commandMayRun(v), a.Command.State == HooksDue && down && v.Cluster.Reachable && !a.Over:
		return RequestWorking
	case a.Over && (own || a.Stopped), own && v.Op.back(), down && a.Work.RunsJob():
		return RequestReturning
	case down:
		return RequestSafe
	case own:
		return RequestStopping
	}
	return RequestWaiting
}

// AgainstReboot returns why a machine may not be rebooted, or nil. cause is why the agent cannot reboot it, empty if it
// can; where is a prefix that names the host, if needed.
func AgainstReboot(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "quorumctl maintenance on --reason '<why>', and reboot by hand")
}

// AgainstProgram returns why a program may not run while etcd is down, or nil. cause is why it cannot run, empty if it
// can; where is a prefix that names the host, if needed.
func AgainstProgram(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "put the program into commands.d, next to the hooks, on every host, owned "+
		"by root and writable only by root")
}
