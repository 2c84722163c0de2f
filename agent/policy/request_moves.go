// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// The transitions of a request, one method each. A step was decided on a request that may have been cancelled since:
// transitions that begin something report whether it still holds.

// AgainstAsking returns why this host rejects a request, or nil. reboots reports whether its agent can reboot the
// machine.
func AgainstRequest(v View, asked bool, request Request, reboots bool) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes",
			"set mode: manage and restart quorumd; until then, coordinate by hand")
	case request.Work == WorkReboot && !request.External && !reboots:
		return conflicts("", "quorumd has no way to reboot this machine",
			"quorumctl maintenance on, and reboot by hand")
	case request.Work == WorkRestart && request.KeepRunning:
		return &Refusal{Wrong, "", "a restart cannot keep etcd running", "leave one of the two out"}
	case !MayTakeDown(v, request.Work):
		return conflicts(EtcdExternal,
			"this host's etcd is managed externally, and quorumd cannot stop it for a "+string(request.Work),
			"quorumctl maintenance on reserves the time for the tool that manages it; "+EtcdExternal.Info().Remedy)
	case againstLostMember(v, request.Work) != nil:
		return againstLostMember(v, request.Work)
	case !asked && v.owns(KindCycle):
		return conflicts("", "the last one is just ending", "try again in a few seconds")
	}
	return nil
}

// Renewed handles a new request next to a pending one. One for the same work renews it. Any other is refused, and so is
// one for work that is over, or for a command that has been started: it runs once. That the machine goes down now is
// recorded anyway if the request allows for that.
func (s Request) Renewed(request Request) (Request, *Refusal) {
	same := s.Work == request.Work && s.Program == request.Program && s.KeepRunning == request.KeepRunning &&
		s.External == request.External
	if s.Ended || !same {
		s.Hurried = s.Hurried || request.Hurried && s.OutlastsReboot()
	}
	switch {
	case s.Ended:
		return s, conflicts("", "the last one, of "+s.By+", is just ending",
			"wait for it: quorumctl maintenance status")
	case !same:
		return s, conflicts("", "another "+string(s.Work)+" was already requested, by "+s.By+": "+s.Reason,
			"wait for it, or end it first: quorumctl maintenance off")
	case s.Ran != HooksNone:
		return s, conflicts("",
			"the command "+s.Program+", requested by "+s.By+", was started already, and is not run again",
			"wait until the host is back, and ask again: quorumctl maintenance status")
	}
	s.Hurried, s.Reason = s.Hurried || request.Hurried, request.Reason
	return s, nil
}

// Finished handles an operator's end of a request: if nothing was done for it, it is cancelled; a host that is down is
// brought back. waives: the programs that run after it have failed, and are not waited for. rolls: the running rollout
// would request it again at once, and stop.
func (s Request) Finished(waives, rolls bool) (next Request, withdrawn bool, refused *Refusal) {
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

// Waives reports whether the operator's end also waives the programs that run after it: they have failed.
func (a *Asked) Waives() bool { return a != nil && a.After.State == HooksFailed }

// Unhurried records that the machine does not go down after all, and it waits for its turn as any other.
func (s Request) Unhurried() Request {
	s.Hurried = false
	return s
}

// Begins records that its operation is about to be recorded, in this boot.
func (s Request) Begins() Request {
	s.Begun, s.OtherBoot = true, false
	return s
}

// Recorded records that its operation is in etcd. One that is gone later was released.
func (s Request) Recorded() Request {
	s.Seen = true
	return s
}

// StopsEtcd records that etcd is about to be stopped for it. guardOf decides about the start guard.
func (s Request) StopsEtcd() (next Request, stands bool) {
	s.Stopped = s.Stopped || !s.Ended
	return s, !s.Ended
}

// EtcdStarted records that etcd was started again.
func (s Request) EtcdStarted() Request {
	s.Stopped = false
	return s
}

// StartsProgram records that its program is about to be started, if it was not before.
func (s Request) StartsProgram() (next Request, stands bool) {
	if !s.Ended && s.Ran == HooksNone {
		s.Ran = HooksRunning
	}
	return s, !s.Ended
}

// ProgramEnded records that its program is done, or has failed.
func (s Request) ProgramEnded(how HookState) Request {
	s.Ran = how
	return s
}

// OperationEnds records that its operation is about to end, and the request with it. A crash in between must not repeat
// it.
func (s Request) OperationEnds() Request {
	s.Seen, s.Ended = false, true
	return s
}

// GivenUp records that its operation is about to end, and that it waits for another. A crash in between must not look
// like a release.
func (s Request) GivenUp() Request {
	s.Seen, s.Begun = false, false
	return s
}
