// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// surplus reports whether there are more voters than configured and none is removed automatically: a replaced voter
// became healthy again before it was removed. No record shows which voter to remove, and only an operator removes a
// healthy voter. A voter that is down or unhealthy is reported instead.
func surplus(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	several := v.Cluster.Reachable && !v.foreign() && live == voters && voters > v.Target.Voters
	if !several || v.Op != nil || v.Cluster.StableFor < v.Limits.Settle ||
		v.Limits.UnhealthyGrace > 0 && v.hasSurplus() && len(UnhealthyVoters(v)) > 0 {
		return "", false
	}
	text := fmt.Sprintf("%d voters, %d configured", voters, v.Target.Voters)
	if isSurplus(voters, v.Target.Voters) {
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
		return Disowned, "this host is no longer a voter and removes no other"
	}
	if v.Limits.DeadGrace == 0 && v.Limits.UnhealthyGrace == 0 {
		return Disowned, "this host's configuration does not allow this removal"
	}
	if who.Learner || !v.hasSurplus() {
		return TargetMet, "there is no longer a surplus voter"
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

// probedAgain reports whether this host has probed the voter to be removed since the operation's record was last
// written. It is also true if this host's report does not count: it is not a voter, or the other voter is not removed
// as dead.
func (v View) probedAgain() bool {
	who, there := v.memberByID(v.Op.Replaces)
	if roleOf(v) != RoleVoter || !there || !v.isDead(who) || v.isUnhealthy(who) {
		return true
	}
	m, _ := v.member()
	h, present := v.hostOf(m)
	return present && h.Answered
}
