// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// replace begins this host's replacement of a dead or unhealthy voter, unless a veto applies. The replacing host
// performs the whole operation, so a voter that is not surplus is removed only if a replacement is ready.
func replace(v View) (Decision, bool) {
	role := roleOf(v)
	mayReplace := role == RoleSpare && !v.Self.Learner || role == RoleStandby || role == RoleVoter
	if v.Op != nil || !mayReplace {
		return Decision{}, false
	}
	who, found := v.outgoing()
	if !found {
		return Decision{}, false
	}
	vetoes := replaceVetoes()
	if role == RoleVoter {
		vetoes = surplusVetoes()
	}
	reasons := against(v, vetoes)
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		why := fmt.Sprintf("in place of %s, which has been %s", who.label(), who.why)
		step := Step{Kind: StepBeginReplace, Target: RoleVoter, MemberID: who.ID, Why: why}
		if role == RoleVoter {
			step.Target, step.Why = "", fmt.Sprintf("%s has been %s, and there is a surplus voter",
				who.label(), who.why)
		}
		return do(step), true
	case len(reasons) == 0:
		why := "to replace " + who.label() + ", which is " + who.is
		if role == RoleVoter {
			why = "to remove " + who.label() + ", which is " + who.is
		}
		return do(Step{Kind: StepTakeLock, Why: why}), true
	}
	// if the cluster lacks a member, joining comes first
	if d, decided := join(v); decided && d.Step.Kind != StepNone {
		d.Reasons = append(d.Reasons, reasons...)
		return d, true
	}
	if v.Lock.Mine {
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	return Decision{Reasons: reasons}, true
}

// RecordedURL returns the peer URL to write into the record of a replacement by a host that has this role when the
// operation begins. A host that ends the operation removes the learner with that URL. For a standby the URL is empty,
// so the standby is not removed if its promotion fails.
func (r Role) RecordedURL(own string) string {
	if r == RoleStandby {
		return ""
	}
	return own
}

// repairVetoes returns the vetoes against removing a voter, with or without a replacement.
func repairVetoes() []veto {
	return []veto{
		vetoIdentityConflict(), // a removal does not depend on this host's own URL
		vetoMaintenanceOverdue(),
		vetoInMaintenance(),
		vetoAwaitsTurn(),
		vetoCorrupt(),
		vetoNoSpace(),
		vetoSeveralDown(),
		vetoReplaceAtRisk(),
	}
}

// replaceVetoes returns the vetoes against replacing a voter, in the order in which they are reported.
func replaceVetoes() []veto {
	return slices.Concat([]veto{vetoHostConflict()}, repairVetoes(), hostVetoes(), []veto{
		vetoRetired(),
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoLastReplaced(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoLearnerPresent(),
		vetoLearnerLimit(),
		vetoStandbyBehind(),
		vetoSettling(),
		vetoNotNext(),
		vetoReplaceEven(),
	})
}

// CommonSpan is how long a voter counts as affected after it was WARM or worse, while another voter is unhealthy: hosts
// with a common cause exceed their limits at different times.
const CommonSpan = 30 * time.Minute

// severalDown reports whether several voters look unhealthy or dead, which suggests a common cause. It does not apply
// if all of them are in one failure domain that has no other voter. A voter that was WARM or worse recently but is not
// unhealthy now counts only if the voter to be replaced is unhealthy rather than dead, and both voters' states come
// from disk, CPU or network. Standbys and spares do not count, because they do not vote.
func severalDown(v View) (string, bool) {
	who, found := v.replaced()
	unhealthy := found && !v.isDead(who) && (who.Live || v.isUnhealthy(who)) // it answers, or is too slow to answer
	return v.severalImpaired(unhealthy && v.strained(who))
}

// replaced returns the voter that is being replaced, or would be by this host.
func (v View) replaced() (Member, bool) {
	if v.Op != nil && v.Op.Replaces != 0 {
		return v.memberByID(v.Op.Replaces)
	}
	who, found := v.outgoing()
	return who.Member, found
}

// strained reports whether a voter was recently WARM or worse because of its disk, CPU or network.
func (v View) strained(m Member) bool {
	h, present := v.hostOf(m)
	return present && h.Strained
}

// severalImpaired implements severalDown. countWarm selects whether voters that were WARM or worse recently count.
func (v View) severalImpaired(countWarm bool) (string, bool) {
	var impaired, healthy []Member
	var names []string
	for m := range v.Cluster.voters() {
		h, present := v.hostOf(m)
		switch {
		case !m.Live:
			names = append(names, m.label()+" does not answer")
		case present && Unhealthy(h.Health):
			names = append(names, m.label()+" is "+h.Health.String())
		case countWarm && v.strained(m):
			names = append(names, fmt.Sprintf("%s was WARM or worse in the last %s", m.label(),
				durationfmt.Text(CommonSpan)))
		default:
			healthy = append(healthy, m)
			continue
		}
		impaired = append(impaired, m)
	}
	if len(impaired) < 2 || v.areWholeDomain(impaired, healthy) {
		return "", false
	}
	return fmt.Sprintf("%d voters look unhealthy or dead together, and are not all the voters of one failure "+
		"domain: %s", len(impaired), strings.Join(names[:min(len(names), mostNamed)], ", ")), true
}

// replaceAtRisk reports whether the remaining voters are too few or not all known to be healthy. The replaced voter and
// voters that are down or unhealthy are not among the remaining ones. If there is a surplus voter, a voter that answers
// but has no agent does not block the removal: its host may be the one that has replaced the unhealthy voter.
func replaceAtRisk(v View) (string, bool) {
	voters, down, proven, unknown, why := 0, 0, 0, 0, ""
	outgoing := func(m Member) bool { return v.isUnhealthy(m) || v.Op.replacesMember(m) && v.Op.Host == v.Self.ID }
	for m := range v.Cluster.voters() {
		voters++
		_, present := v.hostOf(m)
		switch doubt := v.notProven(m, health.Maintenance); {
		case !m.Live, outgoing(m):
			down++
		case doubt != "":
			why = "voter " + m.label() + " " + doubt
			if !present && !m.Errors {
				unknown++
			}
		default:
			proven++
		}
	}
	switch {
	case mayReplaceDead(voters, down, proven), v.hasSurplus() && mayRemoveSurplus(voters, down, proven, unknown):
		return "", false
	case why == "":
		why = fmt.Sprintf("%d of %d voters are down or unhealthy", down, voters)
	}
	return fmt.Sprintf("no voter is replaced unless all others are healthy: %s", why), true
}

func repairsUnreadable(v View) (string, bool) {
	return "the number of voters replaced in the last 24 hours is unknown", v.cannotRead(RecordRepairs)
}

func repairsSpent(v View) (string, bool) {
	if v.Repairs < v.Limits.RepairsPerDay {
		return "", false
	}
	return fmt.Sprintf("%d voters were replaced in the last 24 hours (limit: %d)", v.Repairs,
		v.Limits.RepairsPerDay), true
}

// standbyBehind reports whether this host is a standby that could not be promoted at once.
func standbyBehind(v View) (string, bool) {
	m, listed := v.member()
	if !listed || v.caughtUp(m) {
		return "", false
	}
	return fmt.Sprintf("this host's learner must answer for %s and be within %d entries of the leader for %s; so far "+
		"%s and %s", durationfmt.Text(v.Limits.PromoteStable), v.Limits.PromoteLag,
		durationfmt.Text(v.Limits.SteadyLag), durationfmt.Seconds(m.LiveFor), durationfmt.Seconds(m.SteadyFor)), true
}

// caughtUp reports whether a learner has been level with the leader for long enough to be promoted at once.
func (v View) caughtUp(m Member) bool {
	return steady(v, m) && m.SteadyFor >= v.Limits.SteadyLag && m.LiveFor >= v.Limits.PromoteStable
}

// notNext reports whether another host comes first in replacing the voter.
func notNext(v View) (string, bool) {
	if v.Resting && !v.HostsFresh {
		return "other hosts go first", true
	}
	who, found := v.outgoing()
	if k, kept := v.keptVoter(who.Member, v.Self.ID); found && who.Live && kept { // no place of a dead voter is kept
		return v.keptText(k), true
	}
	list := candidates(v, RoleVoter, selfReady(v))
	position := slices.IndexFunc(list, func(h Host) bool { return h.ID == v.Self.ID })
	if !found || position <= 0 || min(who.over, v.IdleFor) >= patience(v, position) {
		return "", false
	}
	return list[0].Name + " goes first", true
}

// replaceEven reports whether the voter would be removed without a replacement, leaving an even number of voters.
func replaceEven(v View) (string, bool) {
	voters, _ := v.Cluster.Counts()
	if keepsOdd(voters, v.Target) {
		return "", false
	}
	return fmt.Sprintf("there are %d voters, and %d are configured: the removal would leave %d", voters,
		v.Target.Voters, voters-1), true
}

// awaitsRepair reports whether some voters do not answer and each of them may be replaced: it is reported dead, or it
// is unhealthy and too slow to answer.
func (v View) awaitsRepair() bool {
	down := false
	for m := range v.Cluster.voters() {
		if m.Live {
			continue
		}
		since, _ := v.reportedDead(m)
		_, healthy := v.reportedUnhealthy(m)
		dead, slow := v.Limits.DeadGrace > 0 && since > 0, v.Limits.UnhealthyGrace > 0 && healthy == "" && !v.silent(m)
		if !dead && !slow {
			return false
		}
		down = true
	}
	return down
}

// allDead reports whether every voter that does not answer is dead.
func (v View) allDead() bool {
	for m := range v.Cluster.voters() {
		if !m.Live && !v.isDead(m) {
			return false
		}
	}
	return true
}

// replaces declares the operation in which a host replaces a voter. The host removes a dead voter and then joins, or
// joins and then removes an unhealthy voter. If a voter's host begins the operation, the operation has no target role
// and removes a surplus voter. With target role spare, a host removes its own voter, whose data was lost. If the agent
// that began the operation is gone, a voter's agent ends it and removes the learner that was added for it. Later
// operations do the rest.
func replaces() operation {
	return operation{
		kind:          KindReplace,
		noun:          "replacement",
		byHost:        true,
		phases:        []OpPhase{PhaseBegun, PhaseRemoving, PhaseAdded, PhaseStarted, PhasePromoted, PhaseRollback},
		awaitsRecords: []OpPhase{PhaseBegun, PhaseRemoving},
		joins:         true,
		removes:       func(op *Op) uint64 { return op.Replaces },
		carry:         carryReplace,
		title:         replaceTitle,
		orphan: func(v View) Decision {
			if v.Op.Token != v.Lock.Token {
				return rollBackOrphan(v)
			}
			return endReplace(v)
		},
	}
}

func replaceTitle(t OperationTitle) string {
	switch t.Target {
	case "":
		return "removal of a surplus voter by " + t.HostName
	case string(RoleSpare):
		return "removal by " + t.HostName + " of its own member, whose data was lost"
	}
	return fmt.Sprintf("replacement by %s as %s", t.HostName, cmp.Or(t.Target, "member"))
}

// carryReplace continues this host's replacement from any point.
func carryReplace(v View) Decision {
	if d, decided := underLock(v, "to continue the replacement"); decided {
		return d
	}
	if v.Op.Phase == PhaseRollback {
		return endReplace(v)
	}
	m, listed := v.member()
	if listed && !m.Learner && m.ID == v.Op.Replaces {
		return removeLost(v, m)
	}
	who, there := v.memberByID(v.Op.Replaces)
	switch votes := listed && !m.Learner; {
	case v.Op.Target != RoleVoter: // this operation adds no member, even if this host is no longer a voter
		return removeSurplus(v, who, there)
	case votes && there:
		return completeReplace(v, m, who)
	}
	code, text := giveUp(v, m, listed)
	joinFirst := there && v.joinsFirst(who)
	if there && !joinFirst && code == "" {
		code, text = abortReason(v)
	}
	switch {
	case code != "" && v.Op.Phase == PhaseBegun && listed && m.Learner && !m.Standby: // this host's learner was added
		return do(Step{Kind: StepRollBack, MemberID: m.ID, Outcome: code, Why: text})
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "":
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	case joinFirst:
		return joinAsExtra(v, m, listed)
	case there:
		return removeDead(v, who)
	case !listed:
		return addLearner(v)
	case m.Learner:
		return followLearner(v, m)
	}
	return finishJoin(v, m)
}

// abortReason returns why the voter to be replaced is not removed, or empty strings. It is checked in every round until
// the voter is gone, unless this host joins first. Once the removal may have reached etcd, a condition that is probably
// temporary does not end the operation: [removeDead] waits instead.
func abortReason(v View) (ReasonCode, string) {
	if v.Limits.DeadGrace == 0 && v.Limits.UnhealthyGrace == 0 || v.Op.Target != RoleVoter {
		return OperationRejected, "this host's configuration does not allow this replacement"
	}
	limit := v.Limits.LearnerStall
	// this host's learner was added first, and then the voter stopped answering
	if v.Op.Phase == PhaseAdded || v.Op.Phase == PhaseStarted {
		limit = v.Limits.LearnerMax
	}
	if v.Op.Elapsed > limit {
		return JoinTimedOut, fmt.Sprintf("the voter has still not been removed after %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(limit))
	}
	list := []veto{vetoReplacesLive(), vetoReplacesEarly(), vetoSeveralDown(), vetoRepairsUnreadable()}
	if v.Op.Phase != PhaseRemoving {
		list = append(list, vetoReplaceAtRisk(), vetoStandbyBehind(), vetoLastReplaced())
	}
	if reasons := against(v, list); len(reasons) > 0 {
		return reasons[0].Code, reasons[0].Text
	}
	return "", ""
}

// replacesLive reports whether the member to be replaced is a learner, or is neither reported dead nor unhealthy.
func replacesLive(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || !m.Learner && (v.isDead(m) || v.isUnhealthy(m)) {
		return "", false
	}
	_, why := v.deadFor(m)
	if m.Learner {
		why = "it is not a voter"
	}
	if s, healthy := v.unhealthyFor(m); m.Live && v.Limits.UnhealthyGrace > 0 {
		if healthy == "" {
			healthy = fmt.Sprintf("its grace period has restarted and ends in %s", durationfmt.Seconds(s.GraceLeft))
		}
		return m.label() + " is not unhealthy: " + healthy, true
	}
	return m.label() + " is not dead: " + why, why != ""
}

// replacesEarly reports whether the voter to be replaced is dead, but not for long enough: its grace period has
// restarted.
func replacesEarly(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || v.isDead(m) || v.isUnhealthy(m) {
		return "", false
	}
	since, _ := v.deadFor(m)
	return fmt.Sprintf("%s has been dead for only %s; the grace period is %s", m.label(), durationfmt.Seconds(since),
		durationfmt.Text(v.Limits.DeadGrace)), true
}

// endReplace ends a replacement that is not completed. While the voter to be replaced is still listed, the
// operation does not end until its record has not changed for the lock's TTL: a removal sent to etcd takes effect
// within that time or never. If the learner of the replacing host is a standby, it stays.
func endReplace(v View) Decision {
	dead, there := v.memberByID(v.Op.Replaces)
	if left := v.Limits.LockTTL - v.Op.WrittenFor; there && left > 0 {
		return wait(Settling, "a removal of %s may be pending in etcd; it takes effect within %s or never",
			dead.label(),
			durationfmt.Tenths(left))
	}
	if v.Op.Target != RoleVoter { // no host was to join
		return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
	}
	for m := range v.Cluster.learners() {
		if v.Op.isAbout(v, m) && m.Standby {
			return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
		}
	}
	return rollBack(v)
}
