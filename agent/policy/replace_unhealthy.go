// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A sick voter that answers counts towards the quorum still: whoever takes its place votes before it is removed. One
// whose disk hangs and that answers no linearizable read counts for nothing, and is removed first, as a dead one is.

// outgoing is a voter whose place another host may take now.
type outgoing struct {
	Member
	over    time.Duration // since when it may
	is, why string        // for people: in a word, and since when
}

// outgoing gives the first voter, dead ones before sick ones and then by member ID, whose place this host may take now;
// for one that votes already, who is one too many.
func (v View) outgoing() (outgoing, bool) {
	role := roleOf(v)
	if m, found := v.dead(); found && (role != RoleVoter || v.oneTooMany() && m.PeerURL != v.Self.PeerURL) {
		since, _ := v.deadFor(m)
		return outgoing{m, since - v.Limits.DeadGrace, "dead", "dead for " + durationfmt.Seconds(since)}, true
	}
	voters, _ := v.Cluster.Counts()
	if role == RoleVoter && !v.oneTooMany() || role != RoleVoter && !mayJoinBeside(voters, v.Target.Voters) {
		return outgoing{}, false
	}
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); present && m.PeerURL != v.Self.PeerURL && v.isSick(m) {
			s, _ := v.sickFor(m)
			why := fmt.Sprintf("%s for %s, and %s", s.Verdict, durationfmt.Seconds(s.For), s.Witness)
			return outgoing{m, -v.verdictAwaits(h), "unhealthy", why}, true
		}
	}
	return outgoing{}, false
}

// oneTooMany tells whether one voter more than wanted makes their number even: a dead or sick one is taken out, and
// nobody needs to come in its place.
func (v View) oneTooMany() bool {
	voters, _ := v.Cluster.Counts()
	return isOneTooMany(voters, v.Target.Voters)
}

// leaving counts the voter whose place this host takes, while it is there.
func (v View) leaving() int {
	if !v.owns(KindReplace) {
		return 0
	}
	if m, there := v.memberByID(v.Op.Replaces); !there || m.Learner {
		return 0
	}
	return 1
}

// completesVetoes declares what keeps a voter from having a dead or sick one removed that is one too many, in the order
// in which they are named.
func completesVetoes() []veto {
	return append(repairVetoes(),
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoSettling(),
		vetoNotNext(),
	)
}

// joinsFirst tells whether this host joins while the one whose place it takes is there: that one counts still, and is
// sick, or has been since this host was added. Whom this host does not reach while it does not hang may serve others,
// and counts, too.
func (v View) joinsFirst(who Member) bool {
	begun := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseRemoving
	counts := !v.silent(who) || who.DownFor < v.Limits.LockTTL
	return counts && (v.isSick(who) || !begun && v.recovered(who) == "" && !v.isDead(who))
}

// besideSlow tells whether the only voter that does not answer is the one that is slow whose place this host takes. A
// slow disk keeps etcd from answering in time what has to pass through its log, and its vote counts still. Were it
// dead, a vote beside it would take from the others the failure that they can bear: so somebody must reach it, at a
// time when whoever had lost it would know that.
func (v View) besideSlow() bool {
	who, there := v.memberByID(v.Op.Replaces)
	return there && !who.Live && who.DownFor >= fallsSilent && v.reached(who) && v.isSick(who) && !v.silent(who) &&
		mayJoinBesideSlow(v.Cluster.Counts())
}

// reached tells whether the host of a member, or this one, says that it reaches another member.
func (v View) reached(m Member) bool {
	for _, h := range v.Hosts {
		s, says := h.sight(m.ID)
		if says && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL && !s.Lost && !s.Unsure {
			return true
		}
	}
	return false
}

// recovered says that a voter is not sick any more by its own host's word; empty while it is, or that is not known.
func (v View) recovered(m Member) string {
	h, present := v.hostOf(m)
	if !present || sick(h.Health) || h.Health == health.Unknown {
		return ""
	}
	return m.label() + " is " + h.Health.String() + " by its own report"
}

// joinBeside goes on with a join in the place of a voter that answers. A learner costs nothing: it is promoted only
// while that voter is known to be sick, and the others to be well.
func joinBeside(v View, m Member, listed bool) Decision {
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

// complete has the voter removed whose place this host has taken, after its leadership. It votes by then, so that one
// is too many, whatever the other says of itself meanwhile; where that is not so nobody is removed. Nor is one that is
// well again while another is not, which is the one too many then.
func complete(v View, m, who Member) Decision {
	if v.Op.Phase != PhaseRemoving {
		if d := finishJoin(v, m); d.Step.Kind != StepEndOp || m.DownFor > v.Limits.LearnerStall {
			return d
		}
	}
	why := "it votes, and " + who.label() + " still does"
	other, worse := v.worse(who)
	if worse {
		why = who.label() + " is healthy again and " + other.label() + " is not, so " + other.label() + " goes"
	}
	stays := worse || who.Learner || !v.oneTooMany() || v.Limits.SickGrace == 0 || v.Op.Elapsed > v.Limits.LearnerMax
	switch {
	case stays && v.Op.Phase == PhaseRemoving: // etcd may have been told
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: Joined, Why: why})
	case stays:
		return do(Step{Kind: StepEndOp, Outcome: Joined, Why: why})
	}
	if text, holds := v.lossAtRisk(who.ID, false); holds && who.Live && !v.isSick(who) {
		return wait(QuorumAtRisk, "%s", text)
	}
	return removeBeside(v, who)
}

// worse gives another voter that is dead or sick, while this one is neither.
func (v View) worse(than Member) (Member, bool) {
	if !than.Live || v.isSick(than) {
		return Member{}, false
	}
	for m := range v.Cluster.voters() {
		if m.ID != than.ID && (v.isDead(m) || v.isSick(m)) {
			return m, true
		}
	}
	return Member{}, false
}

// removeBeside has a voter removed by a host that votes, after its leadership.
func removeBeside(v View, who Member) Decision {
	if r, holds := vetoed(v, vetoCorrupt, vetoSeveralDown, vetoReplaceAtRisk, vetoRepairsUnreadable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if best, found := bestVoter(v, who.PeerURL); found && who.Leader {
		return do(Step{Kind: StepMoveLeader, MemberID: best.ID, Why: "to " + best.label()})
	}
	return removeTold(v, who)
}
