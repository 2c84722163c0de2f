// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// surplus reports that there are more voters than wanted, and that none is removed automatically: a replaced voter is
// healthy again, and was not removed by the host that replaced it. No record shows which of them is to go, and only an
// operator removes a healthy voter. Any other fault of one of them is reported first, with its consequences.
func surplus(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	several := v.Cluster.Reachable && !v.foreign() && live == voters && voters > v.Target.Voters
	if !several || v.Op != nil || v.Cluster.StableFor < v.Limits.Settle ||
		v.Limits.UnhealthyGrace > 0 && v.hasSurplus() && len(UnhealthyVoters(v)) > 0 {
		return "", false
	}
	text := fmt.Sprintf("%d voters, %d wanted", voters, v.Target.Voters)
	if isSurplus(voters, v.Target.Voters) {
		text += "; while the count is even, no voter is taken down"
	}
	return text, true
}

// removeSurplus continues what a voter's host has begun: a dead or unhealthy surplus voter is removed, and no host
// joins. No replacement was added for that, so one that is back, or healthy again, stays.
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

// surplusStays returns why that voter is not removed, if there is a reason. It is checked in every round.
func surplusStays(v View, who Member) (ReasonCode, string) {
	if m, listed := v.member(); !listed || m.Learner {
		return Disowned, "this host is no longer a voter and removes no other"
	}
	if v.Limits.DeadGrace == 0 && v.Limits.UnhealthyGrace == 0 {
		return Disowned, "this host's configuration does not allow this removal"
	}
	if who.Learner || !v.hasSurplus() {
		return TargetMet, "there is no surplus voter any more"
	}
	if v.Op.Elapsed > v.Limits.LearnerStall {
		return JoinTimedOut, fmt.Sprintf("the voter could not be removed for %s, the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(v, vetoReplacesLive, vetoReplacesEarly); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// probedAgain reports whether this host has probed the voter to be removed since its record was last written, if its
// report counts: it votes itself, and the other is dead and not unhealthy.
func (v View) probedAgain() bool {
	who, there := v.memberByID(v.Op.Replaces)
	if roleOf(v) != RoleVoter || !there || !v.isDead(who) || v.isUnhealthy(who) {
		return true
	}
	m, _ := v.member()
	h, present := v.hostOf(m)
	return present && h.Answered
}
