// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/agent/durationfmt"

// followLearner starts the learner's etcd and follows it until it may be promoted.
func followLearner(v View, m Member) Decision {
	if v.Op.MemberID != m.ID && !m.Standby {
		return do(Step{Kind: StepSetPhase, Phase: PhaseAdded, MemberID: m.ID})
	}
	stale := v.Data.State == DataRemains || (v.Data.State == DataMember && v.Data.MemberID != m.ID)
	if !unitRuns(v) {
		// An incompatible version could crash the leader.
		if r, holds := vetoed(v, vetoUnitUnusable, vetoVersionUnknown, vetoVersionIncompatible); holds {
			return Decision{Reasons: []Reason{r}}
		}
		switch {
		case v.Data.State == DataUnknown || v.Data.State == DataUnreadable:
			return blockedBy(v, vetoDataUnusable)
		case stale:
			return moveAside(v)
		case !v.Unit.EnvReady && v.Data.State == DataEmpty:
			return do(Step{Kind: StepWriteEnv})
		}
		return bringUp(v)
	}
	who, repairDue := v.outgoing()
	switch {
	case m.Name == "" || !m.Live:
		return wait(LearnerNotStarted, "etcd runs, but does not serve yet; %s without progress",
			durationfmt.Seconds(m.StalledFor))
	case v.Op.Phase != PhaseStarted:
		return do(Step{Kind: StepSetPhase, Phase: PhaseStarted, MemberID: m.ID})
	case v.Op.Target == RoleLearner && repairDue:
		return do(Step{
			Kind: StepEndOp, Outcome: Joined,
			Why: who.label() + " must be replaced first; the learner stays and continues to catch up",
		})
	case !steady(v, m):
		return wait(LearnerBehind, "%d entries behind the leader, limit %d", m.Lag, v.Limits.PromoteLag)
	case m.SteadyFor < v.Limits.SteadyLag || m.LiveFor < v.Limits.PromoteStable:
		return wait(LearnerNotSteady, "caught up for %s of %s, up for %s of %s",
			durationfmt.Seconds(m.SteadyFor), durationfmt.Text(v.Limits.SteadyLag), durationfmt.Seconds(m.LiveFor),
			durationfmt.Text(v.Limits.PromoteStable))
	case v.Op.Target != RoleVoter || !v.votersMissing():
		return confirmFollows(v, m, Step{
			Kind: StepEndOp, Outcome: Joined, Why: "the learner has caught up, and stays a learner",
		})
	}
	return promote(v, m)
}

// votersMissing reports whether there are fewer voters than the cluster's size, not counting those to be removed.
func (v View) votersMissing() bool {
	voters, _ := v.Cluster.Counts()
	return voters-v.leaving()-v.retiring() < v.Target.Voters
}

// promote makes the learner a voter unless a veto applies. etcd itself would promote a learner that is dead, or that is
// up to a tenth of the log behind.
func promote(v View, m Member) Decision {
	if r, holds := vetoed(v, vetoHostConflict, vetoCorrupt, vetoNoSpace, vetoHealthUnknown, vetoHealthBad,
		vetoVersionIncompatible, vetoClockSkew, vetoCommonCause, vetoVoterNotLive, vetoEvenVoters); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if m.Errors {
		return wait(LearnerNotSteady, "the learner reports errors")
	}
	// a standby does not wait: it may replace a voter that was just removed
	if v.Cluster.StableFor < v.Limits.Settle && !m.Standby {
		return wait(Settling, "the membership changed %s ago",
			durationfmt.Tenths(v.Cluster.StableFor))
	}
	if v.Self.MemberID != m.ID { // during a loss of quorum, this host starts only a member that its disk records
		return wait(LearnerNotSteady, "this host has not recorded on its disk yet that it is member %x", m.ID)
	}
	return confirmFollows(v, m, Step{Kind: StepPromote, MemberID: m.ID})
}

// steady reports whether a member answers and has caught up with the leader. In an idle cluster, the index of a steady
// member does not move.
func steady(v View, m Member) bool {
	return m.Live && m.LagKnown && m.Lag <= v.Limits.PromoteLag
}

// missedWrite reports whether a learner has not applied the last write of the operation record, although it has had
// enough time.
func missedWrite(v View, m Member) bool {
	return v.Op.WrittenFor > v.Limits.Settle && v.Op.WrittenFor < m.StillFor
}

// confirmFollows returns the given step if the learner has applied a write in this round. In an idle cluster, a learner
// that is cut off looks caught up: neither its index nor the leader's moves, and the learner answers clients without
// noticing that its leader is gone. Therefore confirmFollows first rewrites the operation record, which the learner
// must apply.
func confirmFollows(v View, m Member, then Step) Decision {
	switch {
	case m.StillFor == 0:
		return do(then)
	case v.Op.WrittenFor < m.StillFor:
		return wait(LearnerNotSteady, "it has not applied a write from %s ago",
			durationfmt.Tenths(v.Op.WrittenFor))
	}
	return do(Step{Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: m.ID, Why: "to check whether the learner follows"})
}
