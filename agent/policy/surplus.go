// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// surplus tells people that more hosts vote than are wanted, and that nobody goes by itself: the voter in whose place
// another one votes by now is well again, and that one's agent has not had it removed. Which of them is to go no record
// says any more, and a voter that is well is removed by nobody but a person. What else is wrong with one of them is
// told first, with what becomes of it.
func surplus(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	several := v.Cluster.Reachable && !v.foreign() && live == voters && voters > v.Target.Voters
	if !several || v.Op != nil || v.Cluster.StableFor < v.Limits.Settle ||
		v.Limits.SickGrace > 0 && v.oneTooMany() && len(UnhealthyVoters(v)) > 0 {
		return "", false
	}
	text := fmt.Sprintf("%d voters, %d wanted", voters, v.Target.Voters)
	if isOneTooMany(voters, v.Target.Voters) {
		text += "; while the count is even, no voter is taken down"
	}
	return text, true
}

// removeSurplus carries on what a host that votes has begun: a voter that is dead or sick, and one too many, is
// removed, and nobody joins. Nobody has voted beside it for that, so that one which is back, or well again, stays.
func removeSurplus(v View, who Member, there bool) Decision {
	if !there {
		return do(Step{Kind: StepEndOp, Outcome: Removed})
	}
	code, text := surplusStays(v, who)
	switch {
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "": // etcd may have been told
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	}
	return removeBeside(v, who)
}

// surplusStays tells why that voter is not removed, if there is a reason. It is looked for anew in every round.
func surplusStays(v View, who Member) (ReasonCode, string) {
	if m, listed := v.member(); !listed || m.Learner {
		return Disowned, "this host is no longer a voter and removes no other"
	}
	if v.Limits.DeadGrace == 0 && v.Limits.SickGrace == 0 {
		return Disowned, "this host's configuration does not allow this removal"
	}
	if who.Learner || !v.oneTooMany() {
		return TargetMet, "there is no surplus voter any more"
	}
	if v.Op.Elapsed > v.Limits.LearnerStall {
		return JoinTooLong, fmt.Sprintf("the voter could not be removed for %s, the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(v, vetoReplacesLive, vetoReplacesEarly); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// looksAnew tells whether this host has looked at the voter that is to go since the record of that stands as it does,
// where its word counts: it votes itself, and the other is dead and not sick.
func (v View) looksAnew() bool {
	who, there := v.memberByID(v.Op.Replaces)
	if roleOf(v) != RoleVoter || !there || !v.isDead(who) || v.isSick(who) {
		return true
	}
	m, _ := v.member()
	h, present := v.hostOf(m)
	return present && h.Answered
}
