// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// stopMember stops the member's etcd, after the operator's hooks and a leadership transfer.
func stopMember(v View, m Member) Decision {
	if r, holds := vetoed(v, vetoOperationInFlight, vetoCommonCause, vetoQuorumAtRisk, vetoLearnerUnsettled); holds {
		// etcd is untouched, so other hosts may go first
		if v.Op.Phase == PhaseBegun && v.Asked.Before.State != HooksRunning && !v.Asked.Stopped {
			return do(Step{Kind: StepEndOp, Outcome: r.Code, Why: r.Text})
		}
		// Another host's operation needs the lock to end. Or the others have not tolerated this host's loss for so long
		// that their reports are stale: then a join or replacement may be needed, which waits for this operation.
		// Ending the operation in a later phase is not safe: a call without an answer could take effect after etcd is
		// stopped. So the operation returns to its first phase, which invalidates such a call.
		inTheWay := r.Code == OperationInFlight || r.Code == QuorumAtRisk && v.Op.WrittenFor > v.Limits.TransferTimeout
		switch {
		case v.Op.Phase == PhaseBegun || !inTheWay || commandMayRun(v):
		case !v.Asked.Stopped:
			return do(Step{Kind: StepSetPhase, Phase: PhaseBegun, MemberID: m.ID, Why: r.Text})
		case v.Self.Drives && v.Unit.State == UnitActive && !v.Asked.Work.info().operatorEnds && !v.Asked.External:
			return do(Step{Kind: StepStartUnit, Why: "it runs already but is still recorded as stopped"})
		}
		if d, decided := withdrawSafe(v, m, r); decided {
			return d
		}
		return Decision{Reasons: []Reason{r}}
	}
	if v.Op.Phase == PhaseBegun {
		switch h := v.Asked.Before; h.State {
		case HooksDue:
			return launchPrograms(h, HookRunning, Step{Kind: StepRunHooks, Why: "before etcd is stopped"})
		case HooksRunning:
			return wait(HookRunning, "%s", h.Text)
		case HooksFailed:
			return do(Step{Kind: StepEndOp, Outcome: HookFailed, Why: h.Text})
		}
		return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID})
	}
	if v.Asked.Work == WorkRestart && !v.Asked.Seen {
		// Only the operation shows that etcd was restarted. If its record were deleted before this host's disk records
		// the operation, etcd would be restarted once more.
		return wait(StepFailed, "this host's disk does not record the operation yet, and the write is retried: "+
			"etcd is restarted after that; journalctl -u quorumd shows disk errors")
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
	return do(Step{Kind: StepTakeDown, Why: string(v.Asked.Work)})
}

// awaitReports waits until every other voter's host has published its health state since this host became ready. Stale
// reports, as after a pause, are requested again. That also restarts the time limit of the leadership transfer, so that
// waiting does not count towards it. Reports are also requested again if the agent has started etcd in the next phase
// because no voter answered, since they may be older than that. They are not if an operator has started etcd during
// maintenance, when it was to stay down, or if the machine goes down within seconds in any case.
func awaitReports(v View, m Member) (Decision, bool) {
	if m.Learner || v.Asked.Hurried {
		return Decision{}, false
	}
	own := v.Self.Drives && !v.Asked.External && !v.Asked.Work.info().operatorEnds
	if v.Op.Phase == PhaseDown && own && !commandMayRun(v) { // if a program runs, etcd is stopped again at once
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "etcd runs again: the other voters are " +
				"asked again",
		}), true
	}
	if v.Op.Phase != PhaseReady {
		return Decision{}, false
	}
	if ids, names := notReported(v, v.Self.PeerURL); len(ids) > 0 {
		d := wait(HealthAwaited, "%s waits for fresh health states from %s", v.Self.Name, joinNames(names))
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
// changed. Until then their health states may be as old as the record of a hanging agent. It skips this host, and the
// member with the peer URL except.
func notReported(v View, except string) (ids, names []string) {
	for m := range v.Cluster.voters() {
		asked := m.PeerURL != except && m.PeerURL != v.Self.PeerURL
		if h, present := v.hostOf(m); asked && present && !h.Answered {
			ids, names = append(ids, h.ID), append(names, h.Name)
		}
	}
	return ids, names
}

// joinNames joins names for a text.
func joinNames(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// transferLeadership transfers leadership to the best voter. If that keeps failing, work that an operator ends proceeds
// without a transfer, while any other work waits and retries.
func transferLeadership(v View) (Decision, bool) {
	best, found := bestVoter(v, v.Self.PeerURL)
	failing := v.Failed.Kind == StepTransferLeadership && v.Op.WrittenFor > v.Limits.TransferTimeout
	switch {
	case failing && v.Asked.Work.info().operatorEnds:
		return Decision{}, false
	case failing:
		d := wait(LeadershipNotTransferred, "for %s: %s", durationfmt.Seconds(v.Op.WrittenFor), v.Failed.Text)
		if v.Op.WrittenFor > 2*v.Limits.TransferTimeout { // the next write restarts the time
			d = do(Step{
				Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID,
				Why: "the leadership transfer is retried",
			})
		}
		return d, true
	case !found:
		return Decision{}, false // vetoQuorumAtRisk has allowed to stop without a better leader
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

// bestVoterOf returns the best of the allowed voters whose agents are present.
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
