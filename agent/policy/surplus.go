// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// surplus reports whether all voters are live and there are more of them than the size of the cluster. Either the next
// voter is about to leave, because the cluster was resized or a host was retired, or a replaced voter became healthy
// again before it was removed. In the latter case no record shows which voter to remove, and only an operator removes a
// healthy voter. A voter that is down or unhealthy is reported instead.
func surplus(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	several := v.Cluster.Reachable && !v.foreign() && live == voters && voters > v.Target.Voters
	if !several || v.Op != nil || v.Cluster.StableFor < v.Limits.Settle ||
		v.Limits.UnhealthyGrace > 0 && v.hasSurplus() && len(UnhealthyVoters(v)) > 0 {
		return "", false
	}
	text := fmt.Sprintf("%d voters, %d configured", voters, v.Target.Voters)
	if v.retiring() > 0 {
		text = fmt.Sprintf("%d voters, and a host is retired: %s", voters, v.nextToLeave())
	} else if v.Target.Resized {
		text = fmt.Sprintf("%d voters, and an operator has resized the cluster to %d: %s", voters, v.Target.Voters,
			v.nextToLeave())
	}
	if voters%2 == 0 {
		text += "; while the count is even, no voter is taken down"
	}
	return text, true
}

// removeSurplus continues a removal that a voter's host has begun: it removes a dead or unhealthy surplus voter, and no
// host joins. The voter stays if it is back or healthy again.
func removeSurplus(v View, who Member, there bool) Decision {
	if !there {
		return do(Step{Kind: StepEndOp, Outcome: Removed})
	}
	code, text := surplusStays(v, who)
	switch {
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "": // the removal may have reached etcd
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	}
	return removeAsVoter(v, who)
}

// surplusStays returns why the surplus voter is not removed; an empty code if it is. It is checked in every round.
func surplusStays(v View, who Member) (ReasonCode, string) {
	if m, listed := v.member(); !listed || m.Learner {
		return OperationRejected, "this host is no longer a voter, so it removes no other voter"
	}
	if v.Limits.DeadGrace == 0 && v.Limits.UnhealthyGrace == 0 {
		return OperationRejected, "this host's configuration does not allow this removal"
	}
	if who.Learner || !v.hasSurplus() {
		return TargetMet, "there is no longer a surplus voter"
	}
	if v.Op.Elapsed > v.Limits.LearnerStall {
		return JoinTimedOut, fmt.Sprintf("the voter has still not been removed after %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(v, vetoReplacesLive, vetoReplacesEarly, vetoLastReplaced); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// surplusVetoes returns the vetoes against removing a dead or unhealthy surplus voter, in the order in which they are
// reported.
func surplusVetoes() []veto {
	return append(repairVetoes(),
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoLastReplaced(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoSettling(),
		vetoNotNext(),
	)
}

// hasSurplus reports whether there is a surplus voter. If so, a dead or unhealthy voter is removed without a
// replacement.
func (v View) hasSurplus() bool {
	voters, _ := v.Cluster.Counts()
	return isSurplus(voters, v.Target)
}

// removeAsVoter removes another voter, on a host that is a voter itself. If the other voter leads, its leadership is
// transferred first.
func removeAsVoter(v View, who Member) Decision {
	best, found := bestVoter(v, who.PeerURL)
	if found && who.Leader && v.Cluster.agrees() && who.Corrupt.Times > 0 { // vetoCorrupt applies while it leads
		return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()})
	}
	if r, holds := vetoed(v, vetoCorrupt, vetoSeveralDown, vetoReplaceAtRisk, vetoRepairsUnreadable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if found && who.Leader {
		return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()})
	}
	return removeOnceReported(v, who)
}
