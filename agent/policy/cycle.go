// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// cycles declares the operation that takes a host down and brings it back. Only that host's agent or an operator ends
// it: no other agent can observe whether work is in progress there.
func cycles() operation {
	return operation{
		kind:          KindCycle,
		noun:          "cycle",
		phases:        []OpPhase{PhaseBegun, PhaseReady, PhaseDown, PhaseBack, PhaseVerify},
		awaitsRecords: []OpPhase{PhaseReady, PhaseVerify},
		down:          true,
		carry:         ownCycle,
		title: func(t OperationTitle) string {
			return fmt.Sprintf("%s of %s for %s", t.Kind, t.HostName, t.Work)
		},
	}
}

// ownCycle continues the operation that takes this host down and brings it back, from any phase. Taking etcd down needs
// the lock; starting it again does not.
func ownCycle(v View) Decision {
	m, listed := v.member()
	// a learner that never started is removed by another operation
	listed = listed && !neverStarted(m)
	if why, off := callsOff(v); off {
		return wait(Recalled, "%s", why)
	}
	// a returning member is not taken down again, whatever its etcd does
	d := bringBack
	if v.Asked != nil && (!v.Asked.Over || urlUpdated(v)) && !v.Op.back() && !workDone(v) {
		d = takeDown
	}
	return afterUpdates(v, d(v, m, listed))
}

// workDone reports whether the work that the host was taken down for is done. It is false for maintenance, because the
// agent cannot observe whether that work is done.
func workDone(v View) bool {
	switch v.Asked.Work {
	case WorkRestart:
		return v.Op.Restarted
	case WorkReboot:
		return !v.Op.SameBoot
	case WorkCommand, WorkDefrag:
		return v.Asked.Command.Ended()
	case WorkReaddress:
		return (v.Op.Phase == PhaseDown || v.Op.Restarted) && !mustUpdate(v) && v.Unit.EnvReady
	}
	return false
}

// takeDown stops this host's member cleanly.
func takeDown(v View, m Member, listed bool) Decision {
	if d, decided := underLock(v, "to continue the "+string(v.Asked.Work)); decided {
		return d
	}
	if why, other := recordsOtherWork(v); other {
		return do(Step{Kind: StepEndOp, Outcome: OperationInFlight, Why: why})
	}
	if !listed || v.Asked.KeepRunning { // there is nothing to stop
		return safeToTouch(v)
	}
	switch v.Unit.State {
	case UnitUnknown, UnitMissing:
		return blockedBy(v, vetoUnitUnusable)
	case UnitDeactivating:
		return wait(Stopping, "etcd is stopping")
	case UnitActivating:
		return wait(Starting, "etcd is starting")
	case UnitActive:
		return stopMember(v, m)
	}
	stoppedText, leave := restartOfStopped(v)
	switch {
	// The operation ends here only from its first phase. From a later one, an end whose answer is lost could take
	// effect after a later round has stopped etcd.
	case leave && v.Op.Phase == PhaseBegun && !urlUpdated(v):
		return do(Step{Kind: StepEndOp, Outcome: UnitStopped, Why: stoppedText})
	case v.Asked.Work == WorkRestart:
		return startMember(v, m)
	case !v.Self.Drives: // etcd is stopped and started externally
	case v.Asked.Work == WorkReboot: // etcd starts with the machine, if its unit is enabled
	case !v.Asked.Stopped && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "etcd is already down"})
	case !v.Asked.Stopped: // this sets the start guard, and records that this operation starts etcd again at its end
		return do(Step{Kind: StepTakeDown, Why: "it is already down; work: " + string(v.Asked.Work)})
	}
	return safeToTouch(v)
}

// safeToTouch continues the operation of a host whose etcd is in the state that the work requires: the host is safe to
// touch, and the work can be done.
func safeToTouch(v View) Decision {
	a := v.Asked
	stranger, busy := nonMemberEtcdRuns(v)
	switch {
	case busy && a.Command.State == HooksDue:
		return do(Step{Kind: StepEndOp, Outcome: UnitBusy, Why: stranger})
	// Other hosts determine from the record whether the work is overdue.
	case v.Op.Phase != PhaseDown || a.RecordDiffers:
		return do(Step{Kind: StepSetPhase, Phase: PhaseDown, MemberID: v.Op.MemberID})
	case a.Work == WorkReboot && !a.External && a.RebootFor > v.Limits.TransferTimeout:
		return do(Step{Kind: StepReboot, Why: a.Reason})
	case a.Work == WorkReboot:
		return wait(RebootAwaited, "the machine is ready to reboot: %s", a.Reason)
	case a.Command.State == HooksRunning || busy:
		return wait(a.Work.running(), "%s", a.Command.Text)
	case a.Work.RunsProgram():
		return launchPrograms(a.Command, CommandRunning, Step{Kind: StepRunCommand, Why: a.Program + ": " + a.Reason})
	case a.Work == WorkDefrag:
		return defragment(v)
	case a.Work == WorkReaddress:
		return readdress(v)
	case a.Work == WorkRestart: // the host has no member
		return do(Step{Kind: StepEndOp, Outcome: Cycled, Why: "there was nothing to restart"})
	case a.Overdue:
		return wait(MaintenanceOverdue, "%s", stayText(v))
	}
	return wait(InMaintenance, "%s", stayText(v))
}

// launchPrograms launches programs, and waits if they have just been launched: a launched program is not observed until
// it begins.
func launchPrograms(h Hooks, code ReasonCode, s Step) Decision {
	if !h.Launched {
		return do(s)
	}
	d := wait(code, "%s", h.Text)
	d.Again = lookSoon
	return d
}

// commandMayRun reports whether the program of a command, or a defragmentation, runs or may begin at any moment. Until
// it has ended, etcd is not started, even if an operator ends the request.
func commandMayRun(v View) bool {
	return v.Asked != nil && (v.Asked.Command.State == HooksStarting || v.Asked.Command.State == HooksRunning)
}

// nothingToDo ends an operation whose work needs a stopped member, if the host has no member or its etcd is managed
// externally.
func nothingToDo(v View) (d Decision, ends bool) {
	m, listed := v.member()
	switch {
	case !listed || neverStarted(m):
		return do(Step{Kind: StepEndOp, Outcome: Cycled, Why: "this host has no member"}), true
	case !v.Self.Drives:
		return do(Step{Kind: StepEndOp, Outcome: EtcdExternal, Why: v.externalReason().Text}), true
	}
	return Decision{}, false
}

// bringBack starts the member again, and ends the operation once the member is known to be healthy.
func bringBack(v View, m Member, listed bool) Decision {
	untouched := untouched(v)
	keeps := v.Asked != nil && v.Asked.KeepRunning
	switch {
	case commandMayRun(v):
		return wait(v.Asked.Work.running(), "%s", v.Asked.Command.Text)
	case !listed || keeps || untouched:
	case diskGivenUp(v):
		return endDiskFailed(v)
	case !v.Self.Drives && !unitRuns(v):
		return awaitExternalStart(v)
	case !v.Self.Drives:
	case v.Unit.State == UnitDeactivating:
		return wait(Stopping, "etcd is stopping")
	case v.Unit.State == UnitInactive && stoppedByOperator(v):
		return stopped(v)
	case !unitRuns(v):
		return startMember(v, m)
	case v.Unit.State == UnitActive && v.Asked != nil && v.Asked.Stopped: // the start removes the start guard
		return do(Step{Kind: StepStartUnit, Why: "etcd is already running but still recorded as stopped"})
	}
	if d, decided := underLock(v, "to end this host's operation"); decided {
		return d
	}
	switch {
	case untouched:
		return end(v, Cancelled)
	case !listed, keeps:
		return end(v, Cycled)
	case !v.Op.back():
		return do(Step{Kind: StepSetPhase, Phase: PhaseBack, MemberID: m.ID})
	}
	return awaitReturn(v, m)
}

// diskGivenUp reports whether the disk of a returning member has been FAILED for too long since the work ended. The
// operation can do nothing more, because it has started etcd.
func diskGivenUp(v View) bool {
	since := min(v.Health.For, v.Op.WrittenFor)
	if v.Asked != nil && v.Asked.Over {
		since = min(since, v.Asked.OverFor)
	}
	started := v.Unit.State == UnitFailed || v.Unit.State == UnitActive
	return v.Limits.ReturnGiveUp > 0 && v.Health.State == health.Failed && started && since > v.Limits.ReturnGiveUp
}

// endDiskFailed ends the operation of a host whose disk stays FAILED. While the disk is FAILED, no other voter is taken
// down.
func endDiskFailed(v View) Decision {
	if d, decided := underLock(v, "to end this host's operation"); decided {
		return d
	}
	why := fmt.Sprintf("its disk has been FAILED for %s (limit: %s): %s", durationfmt.Seconds(v.Health.For),
		durationfmt.Text(v.Limits.ReturnGiveUp), v.Health.Text)
	return do(Step{Kind: StepEndOp, Outcome: HealthBad, Why: why})
}

// untouched reports whether the operation has done nothing to this host's etcd yet. It reports false for an etcd that
// is starting or has failed, because the operation may have just restarted it.
func untouched(v View) bool {
	early := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseReady
	still := v.Unit.State == UnitActive || v.Unit.State == UnitInactive
	return early && still && v.Op.SameBoot && !v.Op.Restarted && (v.Asked == nil || !v.Asked.Stopped) &&
		!urlUpdated(v)
}

// stoppedByOperator reports whether an operator has stopped this host's etcd, given that etcd was stopped cleanly. It
// assumes so if etcd has run again since this operation stopped it, or if this operation has not stopped it.
func stoppedByOperator(v View) bool {
	switch a := v.Asked; {
	case a == nil || a.Work == WorkRestart: // without a request, the cause is unknown; a restart leaves no etcd stopped
		return true
	case a.Work.info().operatorEnds:
		return !a.Stopped
	default: // after a reboot, etcd has started with the machine while the disk still records it as stopped
		return !a.Stopped || v.Op.back() || stoppedAfterReboot(v)
	}
}

// stoppedAfterReboot reports whether an operator has stopped an etcd that this agent had stopped for a reboot: etcd has
// started with the machine since, and was stopped again. If the agent was not running while etcd ran, the host's disk
// still records etcd as stopped.
func stoppedAfterReboot(v View) bool {
	return v.Asked.Work == WorkReboot && v.Asked.Rebooted() && v.Unit.State == UnitInactive && v.Unit.Ran
}

// awaitReturn ends the operation once the member has been healthy again for long enough.
func awaitReturn(v View, m Member) Decision {
	if d, decided := changeAgain(v, m); decided {
		return d
	}
	var why string
	switch {
	case !m.Live:
		why = "the member does not serve yet"
	case m.Errors:
		why = "the member reports errors"
	case !steady(v, m):
		why = fmt.Sprintf("the member is %d entries behind the leader, limit %d", m.Lag, v.Limits.PromoteLag)
	case m.SteadyFor < v.Limits.ReturnStable || m.LiveFor < v.Limits.ReturnStable:
		why = fmt.Sprintf("the member has served for %s of %s", durationfmt.Seconds(min(m.LiveFor, m.SteadyFor)),
			durationfmt.Text(v.Limits.ReturnStable))
	case Unhealthy(v.Health.State) && v.Health.blocks(health.Maintenance):
		why = v.Health.Text
	case v.Op.Work == WorkReaddress && v.Op.Phase != PhaseVerify:
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseVerify, MemberID: m.ID,
			Why: "the other members' hosts are asked whether they reach " + v.Self.PeerURL,
		})
	default:
		if why = urlUnverified(v); why == "" {
			return endHealthy(v)
		}
		why += restartMissing(v)
	}
	if v.Op.WrittenFor > v.Limits.ReturnMax {
		return wait(NotBack, "for %s: %s", durationfmt.Seconds(v.Op.WrittenFor), why)
	}
	return wait(Returning, "%s", why)
}

// endHealthy runs the hooks that run after etcd is back, and ends the operation. If they fail, the operation stays in
// flight until an operator ends it anyway, so that no other host is taken down.
func endHealthy(v View) Decision {
	if v.Asked != nil && !v.Asked.Waived {
		switch h := v.Asked.After; h.State {
		case HooksDue:
			return launchPrograms(h, HookRunning, Step{Kind: StepRunHooks, Why: "after etcd is back"})
		case HooksRunning:
			return wait(HookRunning, "%s", h.Text)
		case HooksFailed:
			return wait(HookFailed, "%s", h.Text)
		}
	}
	if d, decided := deleteOld(v); decided {
		return d
	}
	return end(v, Cycled)
}

// end ends the operation of a host whose etcd is in the required state. Instead of Cycled, the outcome is CommandFailed
// or DefragFailed if the command or the defragmentation failed or did not run, Cancelled if an operator ended a reboot
// before the machine rebooted, and Recalled if the work was called off. A reboot by this agent counts as called off if
// the machine has not rebooted: after a crash of the agent at the end of the operation, the request no longer shows
// whether it was called off.
func end(v View, outcome ReasonCode) Decision {
	switch a := v.Asked; {
	case a != nil && a.Work.info().rebootEnds && outcome == Cycled:
		switch {
		case !v.Op.SameBoot:
		case a.Ended:
			return do(Step{Kind: StepEndOp, Outcome: Cancelled, Why: "before the machine was rebooted"})
		case !a.External: // the reboot was called off, or was requested while an earlier one ended, so it is still due
			why := cmp.Or(a.Recalled, "before the machine was rebooted")
			return do(Step{Kind: StepEndOp, Outcome: Recalled, Why: why})
		}
	case a != nil && a.Recalled != "" && outcome == Cycled:
		return do(Step{Kind: StepEndOp, Outcome: Recalled, Why: a.Recalled})
	case a == nil || !a.Work.RunsJob():
	case a.Command.State == HooksFailed:
		return do(Step{Kind: StepEndOp, Outcome: a.Work.failed(), Why: a.Command.Text})
	case a.Command.State != HooksDone && outcome == Cycled:
		return do(Step{Kind: StepEndOp, Outcome: a.Work.failed(), Why: a.Job() + ": it was cancelled before it ran"})
	case a.Work == WorkDefrag && outcome == Cycled:
		return do(Step{Kind: StepEndOp, Outcome: outcome, Why: a.Command.Text})
	}
	return do(Step{Kind: StepEndOp, Outcome: outcome})
}

// startMember starts a member's etcd, provided that the data directory holds that member's data.
func startMember(v View, m Member) Decision {
	if v.gaveUp(m) || v.givesUp(m) {
		return endLost(v, m)
	}
	// a voter on an empty disk no longer has the entries that it acknowledged
	if v.Data.State != DataMember || v.Data.MemberID != m.ID {
		if v.Data.State == DataUnknown && v.Data.Detail != "" { // such as a file system that is not mounted
			return wait(DataNotKnown, "the state of the data of member %s is unknown: %s", m.label(), v.Data.Detail)
		}
		return wait(DataUnusable, "the data directory does not hold the data of this host's member %s (state: %s)",
			m.label(), orUnknown(v.Data.State))
	}
	if dataMayBeSwapped(v) {
		return awaitDataRead()
	}
	if r, holds := vetoed(v, vetoUnitUnusable, vetoVersionUnknown, vetoVersionIncompatible); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return bringUp(v)
}

// dataMayBeSwapped reports whether the data directory was last read before an operator ended the work on this machine.
// The operator may have replaced the disk after that read, and a voter must not start on an empty one.
func dataMayBeSwapped(v View) bool {
	a := v.Asked
	return a != nil && a.Work.info().operatorEnds && a.Stopped && a.Over && v.Data.Age > a.OverFor
}

func awaitDataRead() Decision {
	d := wait(DataNotKnown, "the data directory has not been read since the work ended")
	d.Again = lookSoon
	return d
}

// stoppedWithoutOperation decides about an etcd that this agent has stopped, on a host that observes no operation of
// its own: no voter answers, or an operator has released the operation. A release ends a reboot, because quorumd would
// no longer request it. A release does not end maintenance, because an operator may be working on the machine.
//
// If no voter answers, another voter may have died just after this one was stopped, and this one's vote would restore
// the quorum. Therefore, if quorumd has not requested the reboot yet, it starts etcd, and reboots in a later operation.
// An external system that reboots the machine already has the permission, so etcd stays down.
func stoppedWithoutOperation(v View) Decision {
	a := v.Asked
	over := a.Over || a.Work.info().automatic || a.Work.over(a.Ended, a.Rebooted() || a.Released)
	lost := !v.Cluster.Reachable && !v.Cluster.Denied
	notRequested := lost && a.Work == WorkReboot && !a.External && a.RebootFor > v.Limits.TransferTimeout
	switch {
	case commandMayRun(v):
		return wait(a.Work.running(), "%s", a.Command.Text)
	case stoppedAfterReboot(v):
		return stopped(v)
	case over && dataMayBeSwapped(v):
		return awaitDataRead()
	case over, notRequested:
		return bringUp(v)
	case a.Work == WorkReboot:
		return wait(RebootAwaited, "etcd is stopped: %s", a.Reason)
	}
	if why, off := callsOff(v); off {
		return wait(Recalled, "%s", why)
	}
	if a.Overdue {
		return wait(MaintenanceOverdue, "%s", stayText(v))
	}
	return wait(InMaintenance, "%s", stayText(v))
}

// stopMember stops the member's etcd, after the operator's hooks and a leadership transfer.
func stopMember(v View, m Member) Decision {
	if d, decided := restoreURL(v, m); decided {
		return d
	}
	if r, holds := vetoed(v, vetoOperationInFlight, vetoCommonCause, vetoQuorumAtRisk, vetoLearnerUnsettled,
		vetoPeerTLSMissing, vetoLowersLimit, vetoDowngradeAwaited); holds {
		// etcd is untouched, so other hosts may go first
		if v.Op.Phase == PhaseBegun && v.Asked.Before.State != HooksRunning && !v.Asked.Stopped && !urlUpdated(v) {
			return do(Step{Kind: StepEndOp, Outcome: r.Code, Why: r.Text})
		}
		// This operation makes way in two cases: another host's operation needs the lock to end, or a lasting condition
		// has blocked this operation for longer than TransferTimeout, so that a different operation, such as a join or
		// a replacement, may be needed first. Ending the operation from a later phase is not safe, because an end whose
		// answer is lost could take effect after etcd is stopped. So the operation first returns to its first phase,
		// which invalidates the late call.
		lasting := r.Code == QuorumAtRisk || r.Code == PeerTLSMissing || r.Code == LearnerLimit ||
			r.Code == DowngradeAwaited
		inTheWay := r.Code == OperationInFlight || lasting && v.Op.WrittenFor > v.Limits.TransferTimeout
		switch {
		case v.Op.Phase == PhaseBegun || !inTheWay || commandMayRun(v):
		case !v.Asked.Stopped:
			return do(Step{Kind: StepSetPhase, Phase: PhaseBegun, MemberID: m.ID, Why: r.Text})
		case v.Self.Drives && v.Unit.State == UnitActive && !v.Asked.Work.info().operatorEnds && !v.Asked.External:
			return do(Step{Kind: StepStartUnit, Why: "etcd is already running but still recorded as stopped"})
		}
		if d, decided := withdrawSafe(v, m, r); decided {
			return d
		}
		return Decision{Reasons: []Reason{r}}
	}
	if v.Op.Phase == PhaseBegun {
		switch h := v.Asked.Before; {
		case urlUpdated(v): // the hooks have run already
		case h.State == HooksDue:
			return launchPrograms(h, HookRunning, Step{Kind: StepRunHooks, Why: "before etcd is stopped"})
		case h.State == HooksRunning:
			return wait(HookRunning, "%s", h.Text)
		case h.State == HooksFailed:
			return do(Step{Kind: StepEndOp, Outcome: HookFailed, Why: h.Text})
		}
		return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID})
	}
	if (v.Asked.Work == WorkRestart || v.Asked.Work == WorkReaddress) && !v.Asked.Seen {
		// Only the operation shows that etcd was restarted. If its record were deleted before this host's disk records
		// the operation, etcd would be restarted once more. A readdress that has updated the member list continues
		// after the request has ended only if the disk records the operation.
		return wait(StepFailed, "the operation is not recorded on this host's disk yet. The write is being retried, "+
			"and etcd is restarted once it succeeds; journalctl -u quorumd shows disk errors")
	}
	if d, decided := awaitReports(v, m); decided {
		return d
	}
	if m.Leader {
		if d, decided := transferLeadership(v); decided {
			return d
		}
	}
	if !v.Self.Drives {
		return awaitExternalStop(v)
	}
	if v.Asked.Work == WorkRestart {
		return do(Step{Kind: StepRestartUnit})
	}
	if v.Asked.Work == WorkReaddress && v.Self.NewPeerURL != "" {
		return updateMember(v, m)
	}
	return do(Step{Kind: StepTakeDown, WriteEnv: v.Asked.Work == WorkReaddress, Why: string(v.Asked.Work)})
}

// awaitReports waits until every other voter's host has published its health state since this host became ready. Stale
// reports, such as those from before a pause, are requested again. That also restarts the time limit of the leadership
// transfer, so that waiting does not count towards it. If the agent has started etcd in the next phase because no voter
// answered, reports may be older than that start, so they are requested again as well. They are not requested again if
// etcd may have been started by an operator during maintenance, or by the program that manages etcd or reboots the
// machine. With a hurried request, the host waits for no reports, because the machine goes down within seconds anyway.
func awaitReports(v View, m Member) (Decision, bool) {
	if m.Learner || v.Asked.Hurried {
		return Decision{}, false
	}
	own := v.Self.Drives && !v.Asked.External && !v.Asked.Work.info().operatorEnds
	if v.Op.Phase == PhaseDown && own && !commandMayRun(v) { // if the program may run, etcd is stopped again at once
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "etcd runs again, so the other voters " +
				"are asked again for fresh health states",
		}), true
	}
	if v.Op.Phase != PhaseReady {
		return Decision{}, false
	}
	if !connectedBefore(v, m) {
		d := wait(HealthAwaited, "%s waits until its etcd is connected to every other voter%s", v.Self.Name,
			unreachedBy(v, []string{v.Self.ID}))
		d.Again = lookSoon
		return d, true
	}
	if ids, names := notReported(v, v.Self.PeerURL); len(ids) > 0 {
		what, why := "fresh health states from "+joinNames(names), ""
		if v.Asked.Work == WorkReaddress {
			what, why = joinNames(names)+" to report that etcd is connected to every other voter", unreachedBy(v, ids)
		}
		d := wait(HealthAwaited, "%s waits for %s%s", v.Self.Name, what, why)
		d.Again, d.Behind = lookSoon, ids
		return d, true
	}
	stale := v.Op.WrittenFor > v.Limits.TransferTimeout && v.Failed.Kind != StepTransferLeadership ||
		v.Op.WrittenFor > 2*v.Limits.TransferTimeout
	if !stale {
		return Decision{}, false
	}
	return do(Step{
		Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID,
		Why: "the other voters are asked for fresh health states",
	}), true
}

// notReported returns the hosts of voters that have not published their health state since the operation's record last
// changed. Until a host publishes it again, its health state may be outdated, because its agent may hang. notReported
// skips this host's member, and the member whose peer URL is except.
func notReported(v View, except string) (ids, names []string) {
	for m := range v.Cluster.voters() {
		asked := m.PeerURL != except && m.PeerURL != v.Self.PeerURL
		if h, present := v.hostOf(m); asked && present && !h.Answered {
			ids, names = append(ids, h.ID), append(names, h.Name)
		}
	}
	return ids, names
}

// unreachedBy returns, as text, what one of these hosts reports about the voters that it does not reach.
func unreachedBy(v View, ids []string) string {
	for _, h := range v.Hosts {
		if slices.Contains(ids, h.ID) && h.Unreached != "" {
			return unreachedText(h)
		}
	}
	return ""
}

// joinNames returns the names as text, such as "a, b and c".
func joinNames(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// transferLeadership transfers leadership to the best voter. If that keeps failing, maintenance proceeds without a
// transfer, and any other work waits and retries.
func transferLeadership(v View) (Decision, bool) {
	best, found := bestVoter(v, v.Self.PeerURL)
	failing := v.Failed.Kind == StepTransferLeadership && v.Op.WrittenFor > v.Limits.TransferTimeout
	switch {
	case failing && v.Asked.Work.info().operatorEnds:
		return Decision{}, false
	case failing:
		d := wait(LeadershipNotTransferred, "for %s: %s", durationfmt.Seconds(v.Op.WrittenFor), v.Failed.Text)
		if v.Op.WrittenFor > 2*v.Limits.TransferTimeout { // this write restarts WrittenFor
			d = do(Step{
				Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID,
				Why: "the leadership transfer is retried",
			})
		}
		return d, true
	case !found:
		return Decision{}, false // vetoQuorumAtRisk allows a stop without a better leader
	}
	return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()}), true
}

// bestVoter returns the best voter to transfer leadership to before the voter with that peer URL is stopped or removed.
// betterLeader defines the order.
func bestVoter(v View, leaving string) (Member, bool) {
	return bestVoterOf(v, func(m Member) bool {
		return m.PeerURL != leaving && v.notProven(m, health.Leadership) == ""
	})
}

// bestVoterOf returns the best of the voters whose agents are present and that the function may accepts.
func bestVoterOf(v View, may func(Member) bool) (Member, bool) {
	var best Member
	var bestHost Host
	found := false
	for m := range v.Cluster.voters() {
		h, present := v.hostOf(m)
		if !present || !may(m) {
			continue
		}
		if !found || betterLeader(m, h, best, bestHost) {
			best, bestHost, found = m, h, true
		}
	}
	return best, found
}
