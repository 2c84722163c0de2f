// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// join begins a join of this host, unless a veto applies.
func join(v View) (Decision, bool) {
	role := roleOf(v)
	if role == RoleVoter {
		return Decision{}, false
	}
	target, place := joinTarget(v)
	if (role == RoleStandby || role == RoleLearner) && !place {
		return Decision{}, false
	}
	if reasons := preflight(v); len(reasons) > 0 {
		if v.Lock.Mine {
			return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
		}
		return Decision{Reasons: reasons}, true
	}
	if !v.Lock.Mine {
		return do(Step{Kind: StepTakeLock, Why: "to join as " + string(target)}), true
	}
	return do(Step{Kind: StepBeginJoin, Target: target}), true
}

// joins declares the operation in which a host becomes a voter, a standby or a permanent learner. The joining host
// carries it out. If that host's agent is gone, a voter's agent rolls the join back. That is safe: the removal of a
// learner never costs quorum.
func joins() operation {
	return operation{
		kind:   KindJoin,
		noun:   "join",
		phases: []OpPhase{PhaseBegun, PhaseAdded, PhaseStarted, PhasePromoted, PhaseRollback},
		joins:  true,
		carry:  carryJoin,
		orphan: rollBackOrphan,
		title:  joinTitle,
	}
}

// joinTitle returns the name of a join in the history.
func joinTitle(t OperationTitle) string {
	return fmt.Sprintf("%s of %s as %s", t.Kind, t.HostName, cmp.Or(t.Target, "member"))
}

// carryJoin continues this host's join from any phase.
func carryJoin(v View) Decision {
	if d, decided := underLock(v, "to continue the join"); decided {
		return d
	}
	m, listed := v.member()
	if listed && m.Standby {
		return abandonForeignOp(m)
	}
	if v.Op.Phase == PhaseRollback {
		return rollBack(v)
	}
	if code, text := giveUp(v, m, listed); code != "" {
		return do(Step{Kind: StepRollBack, MemberID: m.ID, Outcome: code, Why: text})
	}
	switch {
	case !listed:
		return addLearner(v)
	case m.Learner:
		return followLearner(v, m)
	}
	return finishJoin(v, m)
}

// rollBackOrphan rolls back the join of another host whose agent is gone. It keeps an outcome that the other host has
// recorded.
func rollBackOrphan(v View) Decision {
	switch {
	case v.Op.Token == v.Lock.Token:
		return rollBack(v)
	case v.Op.Phase != PhaseRollback:
		return do(Step{
			Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: Orphaned,
			Why: "the agent of " + v.Op.HostName + " is gone",
		})
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseRollback, MemberID: v.Op.MemberID, Why: "under a new lock"})
}

// giveUp returns why a join must be rolled back; empty if it need not be. A voter is never rolled back.
func giveUp(v View, m Member, listed bool) (ReasonCode, string) {
	if listed && !m.Learner {
		return "", ""
	}
	if v.PromotionPending {
		return "", "" // the learner may become a voter at any moment
	}
	_, common := vetoCommonCause().reason(v)
	place, kept := v.keptFrom(v.Self.ID)
	who, repairDue := v.outgoing()
	switch {
	case !v.Op.SameBoot:
		return HostRebooted, "the host has rebooted since the join began"
	case v.Op.MemberID != 0 && !listed:
		return Orphaned, "the learner was removed by something other than quorumd"
	// during a common cause, the membership does not change
	case !Permits(v.Health.State).Hold && v.Health.blocks(health.Joins) && !common:
		return HealthLost, v.Health.Text
	case !listed && v.Op.Elapsed > v.Limits.LearnerStall:
		return JoinTimedOut, fmt.Sprintf("adding this host has not succeeded for %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	case v.Op.Elapsed > v.Limits.LearnerMax:
		return JoinTimedOut, fmt.Sprintf("the operation has lasted %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerMax))
	case v.isRetired(v.Self.ID):
		text, _ := retired(v)
		return HostRetired, text
	// as a standby, this host would block the join of the host that an operator has named
	case kept && v.Op.Kind == KindJoin:
		return LowerRanked, v.keptText(place)
	case v.Op.Target == RoleLearner && (!listed || neverStarted(m)) && repairDue:
		return VoterNotLive, who.label() + " must be replaced first: it is " + who.is
	case v.Self.Learner && v.Op.Target != RoleLearner:
		return LearnerOnly, "host.role is learner, and the operation would make this host a " + string(v.Op.Target)
	case listed && m.StalledFor > v.Limits.LearnerStall && (!steady(v, m) || missedWrite(v, m)):
		return LearnerStalled, fmt.Sprintf("no progress for %s; the limit is %s", durationfmt.Seconds(m.StalledFor),
			durationfmt.Text(v.Limits.LearnerStall))
	}
	return "", ""
}

// addLearner adds this host to the member list.
func addLearner(v View) Decision {
	if r, holds := vetoed(v, vetoUnitUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if unitRuns(v) {
		return wait(UnitBusy, "the unit is %s", v.Unit.State)
	}
	if v.Op.Target == RoleVoter && !v.votersMissing() {
		return do(Step{Kind: StepEndOp, Outcome: TargetMet, Why: "other hosts became voters meanwhile"})
	}
	if v.Data.State == DataMember || v.Data.State == DataRemains {
		return moveAside(v)
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoCorrupt, vetoNoSpace, vetoHealthUnknown, vetoNotQualified,
		vetoHealthBad, vetoCommonCause, vetoVersionIncompatible, vetoClockSkew, vetoDataUnusable, vetoVoterNotLive,
		vetoLearnerPresent, vetoLearnerVersion, vetoLearnerLimit); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if left := v.Limits.Settle - v.Cluster.StableFor; left > 0 {
		d := wait(Settling, "the membership changed %s ago", durationfmt.Tenths(v.Cluster.StableFor))
		d.Again = left // do not wait for the next round
		return d
	}
	return do(Step{Kind: StepAddLearner})
}

// moveAside moves old data aside, because a new member must not start with that data. It deletes nothing.
func moveAside(v View) Decision {
	if r, holds := vetoed(v, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	why := fmt.Sprintf("it belongs to member %x, which is gone", v.Data.MemberID)
	if v.Data.State == DataRemains {
		why = "it belongs to an etcd that exited before it was a member"
	}
	return do(Step{Kind: StepMoveDataAside, Why: why})
}

// finishJoin ends the join once the new voter serves and reports itself as a voter, or has not responded for too long.
func finishJoin(v View, m Member) Decision {
	if !unitRuns(v) {
		// A voter that starts on an empty disk no longer has the entries that it acknowledged.
		if v.Data.State != DataMember || v.Data.MemberID != m.ID {
			return wait(DataUnusable, "member %x votes, but the data directory does not hold its data (state: %s)",
				m.ID, orUnknown(v.Data.State))
		}
		if v.Unit.State == UnitInactive { // an operator stopped etcd: it ran when the learner was promoted
			return leaveStopped(v, m)
		}
		if r, holds := vetoed(v, vetoUnitUnusable, vetoVersionUnknown, vetoVersionIncompatible); holds {
			return Decision{Reasons: []Reason{r}}
		}
		return bringUp(v)
	}
	switch {
	case m.DownFor > v.Limits.LearnerStall:
		return do(Step{Kind: StepEndOp, Outcome: Joined, Why: "it is a voter, but has not responded for too long"})
	case v.Op.Phase != PhasePromoted:
		return do(Step{Kind: StepSetPhase, Phase: PhasePromoted, MemberID: m.ID})
	case !m.Live || m.ThinksLearner:
		return wait(Starting, "this host is listed as a voter, but does not serve as one yet")
	}
	return do(Step{Kind: StepEndOp, Outcome: Joined})
}

// leaveStopped does not start a new voter that was stopped on purpose. It ends the operation after LearnerStall.
func leaveStopped(v View, m Member) Decision {
	if m.DownFor > v.Limits.LearnerStall {
		return do(Step{Kind: StepEndOp, Outcome: Joined, Why: "it votes, and its etcd was stopped on purpose"})
	}
	return stopped(v)
}

func orUnknown(s DataState) string {
	if s == DataUnknown {
		return "unknown"
	}
	return string(s)
}

// abandonForeignOp ends a join that the learner's own host has not begun. Otherwise any client that can write the
// operation record could cause the removal or restart of a standby.
func abandonForeignOp(m Member) Decision {
	why := fmt.Sprintf("the learner %s is a standby according to its own host, and is not joining", m.label())
	return do(Step{Kind: StepEndOp, Outcome: OperationRejected, Why: why})
}

// isAbout reports whether the operation concerns a member. On the operation's own host, it always concerns the host's
// own member, whichever member the record names.
func (op *Op) isAbout(v View, m Member) bool {
	own := op.Host == v.Self.ID && m.PeerURL == v.Self.PeerURL
	return own || m.ID == op.MemberID || op.PeerURL != "" && m.PeerURL == op.PeerURL
}

// rollBack rolls a join back: it removes the learner from the member list, stops the learner's etcd if that runs on
// this host, and ends the operation.
func rollBack(v View) Decision {
	for _, m := range v.Cluster.Members {
		switch {
		case !v.Op.isAbout(v, m) || v.Op.removesMember(m):
			continue
		case !m.Learner: // a promotion that had timed out took effect
			return do(Step{Kind: StepEndOp, Outcome: Joined, Why: "it is already a voter"})
		case v.Op.Outcome == StandbyLost && !v.isStandbyRemovable(m):
			return do(Step{Kind: StepEndOp, Outcome: Cancelled, Why: v.whyStandbyStays(m)})
		case m.Standby && v.Op.Outcome != StandbyLost:
			return abandonForeignOp(m)
		}
		return do(Step{Kind: StepRemoveLearner, MemberID: m.ID, Why: v.Op.Reason})
	}
	if r, holds := vetoed(v, vetoUnitUnusable); holds && v.Op.Host == v.Self.ID && (v.Self.Drives || unitRuns(v)) {
		return Decision{Reasons: []Reason{r}}
	}
	if v.Op.Host == v.Self.ID && unitRuns(v) {
		if v.Unit.State == UnitDeactivating {
			return wait(UnitBusy, "etcd is stopping")
		}
		return do(Step{Kind: StepStopUnit, Why: v.Op.Reason})
	}
	return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
}

// rolledBack returns the code with which the rollback began; Orphaned if the record has an unknown code or none.
func (op *Op) rolledBack() ReasonCode {
	if op.Outcome.Info().Meaning == "" {
		return Orphaned
	}
	return op.Outcome
}

// leftover lets a voter's agent remove a learner that has never started and belongs to no operation, for example
// because it was added after its join was rolled back. Such a learner would block every other join.
func leftover(v View) (Decision, bool) {
	return removeLostLearner(v, LearnerStalled, func(m Member) (since time.Duration, why, lockWhy string) {
		if m.Name != "" {
			return 0, "", ""
		}
		return m.DownFor, "it has never started and belongs to no join", "to remove a learner that has never started"
	})
}

// removeLostLearner lets a voter's agent begin the removal of a learner that has been lost for LearnerStall. The first
// live voter's agent begins; if it does not, the next voter's agent does one lock TTL later. The function lost returns
// for how long a learner has been lost, why it is removed, and why the agent takes the lock.
func removeLostLearner(
	v View, outcome ReasonCode, lost func(Member) (since time.Duration, why, lockWhy string),
) (Decision, bool) {
	if _, wrong := corrupt(v); wrong || v.Op != nil || !v.Cluster.Reachable || v.foreign() || v.Self.Conflict != "" {
		return Decision{}, false
	}
	position := voterPosition(v)
	if _, other := unrecordedOperation(v); other || position < 0 {
		return Decision{}, false
	}
	for m := range v.Cluster.learners() {
		since, why, lockWhy := lost(m)
		if _, last := lastOfUpgrade(v, m, Version{}); last {
			continue
		}
		if since < v.Limits.LearnerStall+time.Duration(position)*v.Limits.LockTTL {
			continue
		}
		switch {
		case v.Lock.Mine:
			return do(Step{Kind: StepRollBack, MemberID: m.ID, Outcome: outcome, Why: why}), true
		case v.Lock.Known && !v.Lock.Held:
			return do(Step{Kind: StepTakeLock, Why: lockWhy}), true
		}
	}
	return Decision{}, false
}

// JoinNote is the result of this host's attempt to join, recorded with the step that ends the attempt.
type JoinNote uint8

// The results of an attempt. The zero value records none.
const (
	JoinUncounted JoinNote = iota
	JoinFailed             // the next attempt waits, longer after each failure in a row
	JoinSucceeded          // the count of failures is reset
)

// noteJoin returns the result of this host's attempt to join if the step ends it. A replacement that ended before
// anything was sent to etcd does not count as failed, unless it timed out: a replacement that timed out would otherwise
// begin again at once.
func noteJoin(v View, s Step) JoinNote {
	op := v.Op
	switch {
	case s.Kind != StepEndOp || !op.joins() || op.Host != v.Self.ID || s.Outcome == OperationRejected,
		op.Kind == KindReplace && op.Target != RoleVoter, // this host does not become a voter
		op.Replaces != 0 && op.Phase == PhaseBegun && s.Outcome != JoinTimedOut:
		return JoinUncounted
	case s.Outcome == Joined:
		return JoinSucceeded
	}
	return JoinFailed
}

// maxBackoff is the longest time between two attempts to join.
const maxBackoff = time.Hour

// JoinBackoff returns how long to wait after a number of failed joins in a row: base after the first failure, and twice
// as long after each further one, up to an hour.
func JoinBackoff(failed int, base time.Duration) time.Duration {
	if failed == 0 {
		return 0
	}
	wait := base
	for range failed - 1 {
		wait = min(2*wait, maxBackoff)
	}
	return wait
}

// countsRepair reports whether the replacement is counted with this step, which records that the removal may be sent to
// etcd. Counting later would be unsafe, because the agent may die right after it has sent the removal. Each replacement
// is counted once.
func countsRepair(v View, s Step) bool {
	m, _ := v.member()
	return s.Kind == StepSetPhase && s.Phase == PhaseRemoving && v.Op.Replaces != 0 && v.Op.Phase != PhaseRemoving &&
		m.ID != v.Op.Replaces // a host that replaces its own member was not ejected by another
}
