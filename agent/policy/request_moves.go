// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// The transitions of a request, one method each. The request may have been cancelled after a step was decided, so
// transitions that begin something report whether the request is still valid.

// AgainstRequest returns why this host rejects a request, or nil. pending reports whether it has a request already, and
// canReboot whether its agent can reboot the machine.
func AgainstRequest(v View, pending bool, request Request, canReboot bool) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes",
			"set mode: manage and restart quorumd; until then, coordinate by hand")
	case request.Work == WorkReboot && !request.External && !canReboot:
		return conflicts("", "quorumd has no way to reboot this machine",
			"quorumctl maintenance on, and reboot by hand")
	case request.Work == WorkRestart && request.KeepRunning:
		return &Refusal{Wrong, "", "a restart cannot keep etcd running", "omit one of the two options"}
	case !MayTakeDown(v, request.Work):
		return conflicts(EtcdExternal,
			"this host's etcd is managed externally, and quorumd cannot stop it for a "+string(request.Work),
			"quorumctl maintenance on reserves the time for the tool that manages it; "+EtcdExternal.Info().Remedy)
	case againstLostMember(v, request.Work) != nil:
		return againstLostMember(v, request.Work)
	case !pending && v.owns(KindCycle):
		return conflicts("", "the last operation is just ending", "try again in a few seconds")
	}
	return nil
}

// Renewed handles a new request while another is pending. A request for the same work renews the pending one, unless
// that has ended or its command has been started, since a command runs once. Any other request is refused. If the
// refused request reports that the machine goes down now, that is recorded anyway, if the pending one allows for it.
func (s Request) Renewed(request Request) (Request, *Refusal) {
	same := s.Work == request.Work && s.Program == request.Program && s.KeepRunning == request.KeepRunning &&
		s.External == request.External
	if s.Ended || !same {
		s.Hurried = s.Hurried || request.Hurried && s.OutlastsReboot()
	}
	switch {
	case s.Ended:
		return s, conflicts("", "the last request, by "+s.By+", is just ending",
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

// Finished handles an operator's end of a request. If nothing has been done for it, the request is cancelled; otherwise
// the host is brought back. waives reports that the hooks after it have failed and are ignored, and rolls that the
// running rollout would request it again at once and then stop.
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

// Waives reports whether an operator's end of the request also waives the hooks after it, because they have failed.
func (a *Asked) Waives() bool { return a != nil && a.After.State == HooksFailed }

// Unhurried records that the machine does not go down after all: the request waits for its turn again.
func (s Request) Unhurried() Request {
	s.Hurried = false
	return s
}

// Begins records that the operation is about to be written to etcd, in this boot.
func (s Request) Begins() Request {
	s.Begun, s.OtherBoot = true, false
	return s
}

// Recorded records that the operation is in etcd. If its record disappears later, it was released or deleted.
func (s Request) Recorded() Request {
	s.Seen = true
	return s
}

// StopsEtcd records that etcd is about to be stopped for the request; valid is false if that has ended. guardOf decides
// about the start guard.
func (s Request) StopsEtcd() (next Request, valid bool) {
	s.Stopped = s.Stopped || !s.Ended
	return s, !s.Ended
}

// EtcdStarted records that etcd was started again.
func (s Request) EtcdStarted() Request {
	s.Stopped = false
	return s
}

// StartsProgram records that the command's program is about to be started, unless it was before; valid is false if the
// request has ended.
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

// OperationEnds records that the operation is about to end, and the request with it. After a crash in between the
// operation must not be repeated.
func (s Request) OperationEnds() Request {
	s.Seen, s.Ended = false, true
	return s
}

// GivenUp records that the operation is about to end, and that the request waits for another one. After a crash in
// between the missing record must not look like a release.
func (s Request) GivenUp() Request {
	s.Seen, s.Begun = false, false
	return s
}
