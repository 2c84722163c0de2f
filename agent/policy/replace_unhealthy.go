// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// An unhealthy voter that answers still counts towards the quorum, so its replacement becomes a voter before the
// unhealthy one is removed. A voter whose disk hangs and that answers no linearizable read is removed first, like a
// dead one.

// outgoing is a voter that another host may replace now.
type outgoing struct {
	Member
	over    time.Duration // for how long it may have been replaced
	is, why string        // its state, without and with the evidence, for texts
}

// outgoing returns the first voter that this host may replace now: dead ones before unhealthy ones, each by member ID.
// On a host that is a voter already, it returns the voter that is removed without a replacement, if there is a surplus
// voter.
func (v View) outgoing() (outgoing, bool) {
	role := roleOf(v)
	if m, found := v.dead(); found && (role != RoleVoter || v.hasSurplus() && m.PeerURL != v.Self.PeerURL) {
		since, _ := v.deadFor(m)
		return outgoing{m, since - v.Limits.DeadGrace, "dead", "dead for " + durationfmt.Seconds(since)}, true
	}
	voters, _ := v.Cluster.Counts()
	if role == RoleVoter && !v.hasSurplus() || role != RoleVoter && !mayJoinAsExtra(voters, v.Target.Voters) {
		return outgoing{}, false
	}
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); present && m.PeerURL != v.Self.PeerURL && v.isUnhealthy(m) {
			s, _ := v.unhealthyFor(m)
			why := fmt.Sprintf("%s for %s, and %s", s.State, durationfmt.Seconds(s.For), s.Evidence)
			return outgoing{m, -v.graceLeft(h), "unhealthy", why}, true
		}
	}
	return outgoing{}, false
}

// hasSurplus reports whether there is a surplus voter: then a dead or unhealthy voter is removed without a replacement.
func (v View) hasSurplus() bool {
	voters, _ := v.Cluster.Counts()
	return isSurplus(voters, v.Target.Voters)
}

// leaving returns 1 while the voter that this host is replacing is still listed, and 0 otherwise.
func (v View) leaving() int {
	if !v.owns(KindReplace) {
		return 0
	}
	if m, there := v.memberByID(v.Op.Replaces); !there || m.Learner {
		return 0
	}
	return 1
}

// surplusVetoes returns the vetoes against removing a dead or unhealthy surplus voter, in the order in which they are
// reported.
func surplusVetoes() []veto {
	return append(repairVetoes(),
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoSettling(),
		vetoNotNext(),
	)
}

// joinsFirst reports whether this host joins before the voter it replaces is removed: that voter still counts towards
// the quorum, and is unhealthy or, once this host was added, has not recovered. A voter that this host cannot reach may
// still serve others, so it counts unless its disk hangs.
func (v View) joinsFirst(who Member) bool {
	begun := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseRemoving
	counts := !v.silent(who) || who.DownFor < v.Limits.LockTTL
	return counts && (v.isUnhealthy(who) || !begun && v.recovered(who) == "" && !v.isDead(who))
}

// onlySlowIsDown reports whether the only voter that does not answer is the slow one that this host replaces. A slow
// disk delays the voter's answers, but its vote still counts. If it were dead, one more voter would leave the others
// without fault tolerance. So some host must reach it, after a time in which a dead voter would have been noticed.
func (v View) onlySlowIsDown() bool {
	who, there := v.memberByID(v.Op.Replaces)
	return there && !who.Live && who.DownFor >= silenceWindow && v.reached(who) && v.isUnhealthy(who) &&
		!v.silent(who) && mayJoinWithSlow(v.Cluster.Counts())
}

// reached reports whether this host or another member's host reaches a member.
func (v View) reached(m Member) bool {
	for _, h := range v.Hosts {
		s, reports := h.reportOn(m.ID)
		if reports && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL && !s.Lost && !s.Unsure {
			return true
		}
	}
	return false
}

// recovered returns a text if a voter is healthy again by its own report; empty if it is not, or if that is unknown.
func (v View) recovered(m Member) string {
	h, present := v.hostOf(m)
	if !present || Unhealthy(h.Health) || h.Health == health.Unknown {
		return ""
	}
	return m.label() + " is " + h.Health.String() + " by its own report"
}

// joinAsExtra continues a replacement in which this host joins first. Its learner does not affect the quorum, and is
// promoted only while the voter to be replaced is known to be unhealthy and the others are known to be healthy.
func joinAsExtra(v View, m Member, listed bool) Decision {
	if !listed {
		return addLearner(v)
	}
	d := followLearner(v, m)
	if d.Step.Kind != StepPromote {
		return d
	}
	if r, holds := vetoed(v, vetoReplacesLive, vetoReplacesEarly, vetoSeveralDown, vetoReplaceAtRisk); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return d
}

// completeReplace removes the voter that this host has replaced, after transferring its leadership. This host votes by
// then, so the other voter is removed even if it has recovered, provided that there is a surplus voter. It stays if it
// has recovered and another voter is dead or unhealthy: then that one is removed instead.
func completeReplace(v View, m, who Member) Decision {
	if v.Op.Phase != PhaseRemoving {
		if d := finishJoin(v, m); d.Step.Kind != StepEndOp || m.DownFor > v.Limits.LearnerStall {
			return d
		}
	}
	why := "it votes, and " + who.label() + " still does"
	other, worse := v.worseVoter(who)
	if worse {
		why = who.label() + " is healthy again and " + other.label() + " is not, so " + other.label() + " is removed"
	}
	stays := worse || who.Learner || !v.hasSurplus() ||
		v.Limits.UnhealthyGrace == 0 || v.Op.Elapsed > v.Limits.LearnerMax
	switch {
	case stays && v.Op.Phase == PhaseRemoving: // the removal may have reached etcd
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: Joined, Why: why})
	case stays:
		return do(Step{Kind: StepEndOp, Outcome: Joined, Why: why})
	}
	if text, holds := v.lossAtRisk(who.ID, false); holds && who.Live && !v.isUnhealthy(who) {
		return wait(QuorumAtRisk, "%s", text)
	}
	return removeAsVoter(v, who)
}

// worseVoter returns another voter that is dead or unhealthy, if this one is neither.
func (v View) worseVoter(than Member) (Member, bool) {
	if !than.Live || v.isUnhealthy(than) {
		return Member{}, false
	}
	for m := range v.Cluster.voters() {
		if m.ID != than.ID && (v.isDead(m) || v.isUnhealthy(m)) {
			return m, true
		}
	}
	return Member{}, false
}

// removeAsVoter removes another voter, after transferring its leadership. This host is a voter.
func removeAsVoter(v View, who Member) Decision {
	if r, holds := vetoed(v, vetoCorrupt, vetoSeveralDown, vetoReplaceAtRisk, vetoRepairsUnreadable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if best, found := bestVoter(v, who.PeerURL); found && who.Leader {
		return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()})
	}
	return removeOnceReported(v, who)
}
