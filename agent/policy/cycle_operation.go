// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// cycles is the operation that takes a host down and brings it back. Only that host or an operator ends it: only they
// know whether work is in progress there.
func cycles() operation {
	return operation{
		kind:   KindCycle,
		noun:   "cycle",
		phases: []OpPhase{PhaseBegun, PhaseReady, PhaseDown, PhaseBack},
		awaitsRecords:   []OpPhase{PhaseReady},
		down:   true,
		carry:  ownCycle,
		title: func(t OperationTitle) string {
			return fmt.Sprintf("%s of %s for %s", t.Kind, t.HostName, t.Work)
		},
	}
}

// ownCycle continues the operation that takes this host down and brings it back, from any point. Steps down happen
// under the lock; starting etcd again needs none.
func ownCycle(v View) Decision {
	m, listed := v.member()
	// a different operation removes it
	listed = listed && !neverStarted(m)
	// a returning member is not taken down once more, whatever its etcd does
	if v.Asked != nil && !v.Asked.Done && v.Op.Phase != PhaseBack && !workDone(v) {
		return takeDown(v, m, listed)
	}
	return bringBack(v, m, listed)
}

// worked reports whether the work that the host was taken down for is done. Maintenance is done when an operator ends
// it.
func workDone(v View) bool {
	switch v.Asked.Work {
	case WorkRestart:
		return v.Op.Restarted
	case WorkReboot:
		return !v.Op.SameBoot
	case WorkCommand:
		return v.Asked.Command.Ended()
	}
	return false
}

// takeDown stops this host's member cleanly.
func takeDown(v View, m Member, listed bool) Decision {
	if d, decided := underLock(v, "to continue the "+string(v.Asked.Work)); decided {
		return d
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
	// later, an unanswered end could take effect after the stop that is decided next
	case leave && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: UnitStopped, Why: stoppedText})
	case v.Asked.Work == WorkRestart:
		return startMember(v, m)
	case !v.Self.Drives: // it is stopped and started externally
	case v.Asked.Work == WorkReboot: // it starts with the machine, if it is enabled
	case !v.Asked.Stopped && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "it is down already"})
	case !v.Asked.Stopped: // from now on this operation owns it: guarded now, started again at the end
		return do(Step{Kind: StepTakeDown, Why: "it is down already: " + string(v.Asked.Work)})
	}
	return safeToTouch(v)
}

// touchable is a host in its operation whose etcd is in the required state: now the work is done.
func safeToTouch(v View) Decision {
	a := v.Asked
	stranger, busy := nonMemberEtcdRuns(v)
	switch {
	case busy && a.Command.State == HooksDue:
		return do(Step{Kind: StepEndOp, Outcome: UnitBusy, Why: stranger})
	case v.Op.Phase != PhaseDown || a.EndChanged: // the other hosts see by the record that it is overdue
		return do(Step{Kind: StepSetPhase, Phase: PhaseDown, MemberID: v.Op.MemberID})
	case a.Work == WorkReboot && !a.External && a.RebootFor > v.Limits.TransferTimeout:
		return do(Step{Kind: StepReboot, Why: a.Reason})
	case a.Work == WorkReboot:
		return wait(RebootAwaited, "the machine is ready to reboot: %s", a.Reason)
	case a.Command.State == HooksRunning || busy:
		return wait(CommandRunning, "%s", a.Command.Text)
	case a.Work.RunsProgram():
		return launchPrograms(a.Command, CommandRunning, Step{Kind: StepRunCommand, Why: a.Program + ": " + a.Reason})
	case a.Work == WorkRestart: // of a host without a member
		return do(Step{Kind: StepEndOp, Outcome: Cycled, Why: "there was nothing to restart"})
	case a.Overdue:
		return wait(MaintenanceOverdue, "by %s: %s", a.By, a.Reason)
	}
	return wait(InMaintenance, "by %s: %s", a.By, a.Reason)
}

// start launches programs. They show only once they have begun: until then it waits, and does not launch them again.
func launchPrograms(h Hooks, code ReasonCode, s Step) Decision {
	if !h.Launched {
		return do(s)
	}
	d := wait(code, "%s", h.Text)
	d.Again = lookSoon
	return d
}

// mayRun reports whether the program of a command runs, or may begin at any moment. Until that is over etcd is not
// started, even if an operator ends the request.
func commandMayRun(v View) bool {
	return v.Asked != nil && (v.Asked.Command.State == HooksStarting || v.Asked.Command.State == HooksRunning)
}

// bringBack starts the member again, and ends the operation once the member is known to be healthy.
func bringBack(v View, m Member, listed bool) Decision {
	untouched := untouched(v)
	keeps := v.Asked != nil && v.Asked.KeepRunning
	switch {
	case commandMayRun(v):
		return wait(CommandRunning, "%s", v.Asked.Command.Text)
	case !listed || keeps || untouched:
	case diskGivenUp(v):
		return endDiskFailed(v)
	case !v.Self.Drives && !unitRuns(v):
		return awaitExternalStart(v)
	case !v.Self.Drives:
	case v.Unit.State == UnitDeactivating: // it does not run again yet
		return wait(Stopping, "etcd is stopping")
	case v.Unit.State == UnitInactive && stoppedByOperator(v):
		return stopped(v)
	case !unitRuns(v):
		return startMember(v, m)
	case v.Unit.State == UnitActive && v.Asked != nil && v.Asked.Stopped: // the start guard must not stay behind
		return do(Step{Kind: StepStartUnit, Why: "it runs already but is still recorded as stopped"})
	}
	if d, decided := underLock(v, "to end this host's operation"); decided {
		return d
	}
	switch {
	case untouched:
		return end(v, Cancelled)
	case !listed, keeps:
		return end(v, Cycled)
	case v.Op.Phase != PhaseBack:
		return do(Step{Kind: StepSetPhase, Phase: PhaseBack, MemberID: m.ID})
	}
	return awaitReturn(v, m)
}

// diskGivenUp reports whether the disk of a returning member has been FAILED for too long since the work ended. Its
// etcd was started: its future needs no operation.
func diskGivenUp(v View) bool {
	since := min(v.Health.For, v.Op.WrittenFor)
	if v.Asked != nil && v.Asked.Done {
		since = min(since, v.Asked.DoneFor)
	}
	started := v.Unit.State == UnitFailed || v.Unit.State == UnitActive
	return v.Limits.ReturnGiveUp > 0 && v.Health.State == health.Failed && started && since > v.Limits.ReturnGiveUp
}

// endUnfit ends the operation of a host whose disk stays FAILED. No other voter goes down while it is.
func endDiskFailed(v View) Decision {
	if d, decided := underLock(v, "to end this host's operation"); decided {
		return d
	}
	why := fmt.Sprintf("its disk has been FAILED for %s, the limit is %s: %s", durationfmt.Seconds(v.Health.For),
		durationfmt.Text(v.Limits.ReturnGiveUp), v.Health.Text)
	return do(Step{Kind: StepEndOp, Outcome: HealthBad, Why: why})
}

// untouched reports whether nothing has been done to this host's etcd yet. One that is starting or has failed may have
// been restarted just now: it is brought back first, for any reason.
func untouched(v View) bool {
	early := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseReady
	still := v.Unit.State == UnitActive || v.Unit.State == UnitInactive
	return early && still && v.Op.SameBoot && !v.Op.Restarted && (v.Asked == nil || !v.Asked.Stopped)
}

// stoppedSince reports whether an operator stopped an etcd that was stopped cleanly: either it had run again since this
// operation stopped it, or this operation never did.
func stoppedByOperator(v View) bool {
	switch a := v.Asked; {
	case a == nil || a.Work == WorkRestart: // unknown; or a restarted etcd is not left stopped
		return true
	case a.Work.info().operatorEnds:
		return !a.Stopped
	default: // after a reboot it has started by itself, while still recorded as stopped
		return !a.Stopped || v.Op.Phase == PhaseBack || stoppedAfterReboot(v)
	}
}

// stoppedAfterReboot reports whether an operator stopped an etcd that this agent had stopped for a reboot: it has
// started with the machine since, and was stopped again. If the agent did not run meanwhile, it still has it recorded
// as stopped.
func stoppedAfterReboot(v View) bool {
	return v.Asked.Work == WorkReboot && v.Asked.Rebooted && v.Unit.State == UnitInactive && v.Unit.Ran
}

// returned ends the operation of a member that has been healthy again for long enough.
func awaitReturn(v View, m Member) Decision {
	var why string
	switch {
	case !m.Live:
		why = "it does not serve yet"
	case m.Errors:
		why = "it reports errors"
	case !steady(v, m):
		why = fmt.Sprintf("it is %d entries behind the leader, limit %d", m.Lag, v.Limits.PromoteLag)
	case m.SteadyFor < v.Limits.ReturnStable || m.LiveFor < v.Limits.ReturnStable:
		why = fmt.Sprintf("it has served for %s of %s", durationfmt.Seconds(min(m.LiveFor, m.SteadyFor)),
			durationfmt.Text(v.Limits.ReturnStable))
	case Unhealthy(v.Health.State) && v.Health.blocks(health.Maintenance):
		why = v.Health.Text
	default:
		return endHealthy(v)
	}
	if v.Op.WrittenFor > v.Limits.ReturnMax {
		return wait(NotBack, "for %s: %s", durationfmt.Seconds(v.Op.WrittenFor), why)
	}
	return wait(Returning, "%s", why)
}

// wellAgain runs the hooks that come after, and ends the operation. Failed hooks keep the operation, so that no other
// host is taken down, until an operator ends it anyway.
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
	return end(v, Cycled)
}

// end ends the operation of a host whose etcd is in the required state. A command that did not do its work is reported
// even if all else succeeded; so is a reboot that an operator cancelled.
func end(v View, outcome ReasonCode) Decision {
	switch a := v.Asked; {
	case a != nil && a.Ended && a.Work.info().rebootEnds && v.Op.SameBoot && outcome == Cycled:
		return do(Step{Kind: StepEndOp, Outcome: Cancelled, Why: "before the machine was rebooted"})
	case a == nil || !a.Work.RunsProgram():
	case a.Command.State == HooksFailed:
		return do(Step{Kind: StepEndOp, Outcome: CommandFailed, Why: a.Command.Text})
	case a.Command.State != HooksDone && outcome == Cycled:
		return do(Step{Kind: StepEndOp, Outcome: CommandFailed, Why: a.Program + ": it was cancelled before it ran"})
	}
	return do(Step{Kind: StepEndOp, Outcome: outcome})
}

// startMember starts the etcd of a member whose data is there.
func startMember(v View, m Member) Decision {
	if v.gaveUp(m) || v.givesUp(m) {
		return endLost(v, m)
	}
	// a voter on an empty disk has forgotten what it acknowledged
	if v.Data.State != DataMember || v.Data.MemberID != m.ID {
		if v.Data.State == DataUnknown && v.Data.Detail != "" { // such as a file system that is not mounted
			return wait(DataNotKnown, "the state of the data of member %s is unknown: %s", m.label(), v.Data.Detail)
		}
		return wait(DataUnusable, "member %s is this host's, but the data directory is %s", m.label(),
			orUnknown(v.Data.State))
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
// The disk may have been replaced since: an etcd that starts on an empty one has forgotten what it acknowledged.
func dataMayBeSwapped(v View) bool {
	a := v.Asked
	return a != nil && a.Work.info().operatorEnds && a.Stopped && a.Done && v.Data.Age > a.DoneFor
}

func awaitDataRead() Decision {
	d := wait(DataNotKnown, "the data directory has not been read since the work ended")
	d.Again = lookSoon
	return d
}

// taken decides about an etcd that this agent has stopped, on a host that does not see its operation: no voter answers,
// or an operator has released it. A release ends a reboot, which quorumd would no longer request, but not a
// maintenance, during which an operator may be working on the machine. If no voter answers, another voter may have died
// just after this one was stopped, and this one's vote restores the quorum: a machine that has not been rebooted yet
// starts etcd, and is rebooted in a later operation. Where something else reboots the machine, it was already allowed
// to.
func stoppedWithoutOperation(v View) Decision {
	a := v.Asked
	over := a.Done || a.Work.info().automatic || a.Work.over(a.Ended, a.Rebooted || a.Released)
	lost := !v.Cluster.Reachable && !v.Cluster.Denied
	unasked := lost && a.Work == WorkReboot && !a.External && a.RebootFor > v.Limits.TransferTimeout
	switch {
	case commandMayRun(v):
		return wait(CommandRunning, "%s", a.Command.Text)
	case stoppedAfterReboot(v):
		return stopped(v)
	case over && dataMayBeSwapped(v):
		return awaitDataRead()
	case over, unasked:
		return bringUp(v)
	case a.Work == WorkReboot:
		return wait(RebootAwaited, "etcd is stopped: %s", a.Reason)
	case a.Overdue:
		return wait(MaintenanceOverdue, "by %s: %s", a.By, a.Reason)
	}
	return wait(InMaintenance, "by %s: %s", a.By, a.Reason)
}
