// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// removeDead removes the dead voter. Every other voter's host must have reported on the dead voter after the operation
// was recorded, and again before the removal is sent to etcd.
func removeDead(v View, dead Member) Decision {
	// These conditions may be temporary: the other voters do not tolerate a removal now, or this host is not allowed to
	// replace the voter. abortReason limits the wait.
	if r, holds := vetoed(v, vetoCorrupt, vetoNoSpace, vetoReplaceAtRisk, vetoStandbyBehind,
		vetoHealthUnknown, vetoNotQualified, vetoHealthBad, vetoVersionUnknown, vetoVersionIncompatible,
		vetoClockUnknown, vetoClockSkew, vetoUnitUnusable, vetoDataUnusable, vetoLearnerPresent,
		vetoLearnerLimit); holds {
		return Decision{Reasons: []Reason{r}, Again: lookSoon}
	}
	return removeOnceReported(v, dead)
}

// removeOnceReported removes a voter after the hosts of all other voters have reported again.
func removeOnceReported(v View, who Member) Decision {
	asked := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseRemoving
	switch ids, names := notReported(v, who.PeerURL); {
	case asked && len(ids) > 0:
		d := wait(HealthAwaited, "%s waits for %s to report again whether %s is reachable", v.Self.Name,
			joinNames(names), who.label())
		d.Again, d.Behind = lookSoon, ids
		return d
	case asked && !v.probedAgain():
		d := wait(HealthAwaited, "this host checks %s again", who.label())
		d.Again = lookSoon
		return d
	}
	if v.Op.Phase != PhaseRemoving {
		return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: v.Op.MemberID})
	}
	return do(Step{Kind: StepRemoveMember, MemberID: who.ID, Why: v.Op.Reason})
}

// probedAgain reports whether this host has probed the voter to be removed since the operation's record was last
// written. It also returns true if this host's report does not count, because this host is not a voter, or because the
// voter to be removed is not dead.
func (v View) probedAgain() bool {
	who, there := v.memberByID(v.Op.Replaces)
	if roleOf(v) != RoleVoter || !there || !v.isDead(who) || v.isUnhealthy(who) {
		return true
	}
	m, _ := v.member()
	h, present := v.hostOf(m)
	return present && h.Answered
}
