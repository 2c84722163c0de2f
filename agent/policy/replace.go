// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/health"
)

// replace begins the operation that puts this host in the place of a voter that is dead, if nothing is against it. The
// host that benefits does all of it: nobody is removed unless one stands ready.
func replace(v View) (Decision, bool) {
	if role := roleOf(v); v.Op != nil || role != RoleSpare && role != RoleStandby {
		return Decision{}, false
	}
	dead, found := v.dead()
	if !found {
		return Decision{}, false
	}
	reasons := against(v, replaceVetoes())
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		since, _ := v.deadFor(dead)
		why := fmt.Sprintf("in place of %s, which has been dead for %s", dead.label(), since.Round(time.Second))
		return do(Step{Kind: StepBeginReplace, Target: RoleVoter, MemberID: dead.ID, Why: why}), true
	case len(reasons) == 0:
		return do(Step{Kind: StepTakeLock, Why: "to take the place of " + dead.label() + ", which is dead"}), true
	case v.Lock.Mine:
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	return Decision{Reasons: reasons}, true
}

// dead gives the first voter, by member ID, that has been dead for the whole grace; none where dead voters are not
// replaced.
func (v View) dead() (Member, bool) {
	for m := range v.Cluster.voters() {
		if v.Cluster.Reachable && !v.foreign() && v.isDead(m) {
			return m, true
		}
	}
	return Member{}, false
}

func (v View) isDead(m Member) bool {
	since, _ := v.deadFor(m)
	return v.Limits.DeadGrace > 0 && !m.Live && since >= v.Limits.DeadGrace
}

// replaceVetoes declares what keeps a host from taking the place of a dead voter, in the order in which they are named.
func replaceVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoMaintenanceOverdue(),
		vetoInMaintenance(),
		vetoAwaitsTurn(),
		vetoSeveralDown(),
		vetoReplaceAtRisk(),
		vetoVersionUnknown(),
		vetoVersionUnsafe(),
		vetoVersionIncompatible(),
		vetoHealthUnknown(),
		vetoNotQualified(),
		vetoHealthBad(),
		vetoClockUnknown(),
		vetoClockSkew(),
		vetoSpaceLow(),
		vetoUnitUnusable(),
		vetoUnitBusy(),
		vetoDataUnusable(),
		vetoBackingOff(),
		vetoStepStuck(),
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoLearnerPresent(),
		vetoStandbyBehind(),
		vetoSettling(),
		vetoNotNext(),
		vetoReplaceEven(),
	}
}

// severalDown tells whether several members look sick or dead, whose cause is probably not theirs; but for those of one
// failure domain in which nobody else votes.
func severalDown(v View) (string, bool) {
	down, well := []Member{}, []Member{}
	for _, m := range v.Cluster.Members {
		i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.PeerURL == m.PeerURL })
		since, _ := v.deadFor(m)
		switch {
		case i >= 0 && sick(v.Hosts[i].Health), !m.Learner && (!m.Live || since > 0):
			down = append(down, m)
		case !m.Learner:
			well = append(well, m)
		}
	}
	if len(down) < 2 {
		return "", false
	}
	domain := down[0].Domain
	elsewhere := func(m Member) bool { return m.Domain != domain }
	spread := slices.ContainsFunc(down, elsewhere)
	shared := slices.ContainsFunc(well, func(m Member) bool { return m.Domain == domain || m.Domain == "" })
	if domain != "" && !spread && !shared {
		return "", false
	}
	return fmt.Sprintf("%d members look sick or dead at the same time, and not all that stands in one failure domain",
		len(down)), true
}

// replaceAtRisk tells whether the voters that are left are not all known to be well, or too few.
func replaceAtRisk(v View) (string, bool) {
	voters, down, proven, why := 0, 0, 0, ""
	for m := range v.Cluster.voters() {
		voters++
		switch doubt := v.doubt(m, health.Maintenance); {
		case !m.Live:
			down++
		case doubt != "":
			why = "voter " + m.label() + " " + doubt
		default:
			proven++
		}
	}
	switch {
	case mayReplaceDead(voters, down, proven):
		return "", false
	case why == "":
		why = fmt.Sprintf("of %d voters %d are down", voters, down)
	}
	return fmt.Sprintf("no voter is replaced unless all others are well: %s", why), true
}

func repairsUnreadable(v View) (string, bool) {
	return "it is not known how many voters were replaced today", v.cannotRead(RecordRepairs)
}

func repairsSpent(v View) (string, bool) {
	if v.Repairs < v.Limits.RepairsPerDay {
		return "", false
	}
	return fmt.Sprintf("%d voters were replaced in the last 24 hours, the limit is %d", v.Repairs,
		v.Limits.RepairsPerDay), true
}

// standbyBehind tells whether this host is a standby that could not be promoted at once.
func standbyBehind(v View) (string, bool) {
	m, listed := v.member()
	if !listed || steady(v, m) && m.SteadyFor >= v.Limits.SteadyLag && m.LiveFor >= v.Limits.PromoteStable {
		return "", false
	}
	return fmt.Sprintf("this host's learner has been within %d entries of the leader for %s, which must be %s",
		v.Limits.PromoteLag, m.SteadyFor.Round(time.Second), v.Limits.SteadyLag), true
}

// notNext tells whether another host is the better one to take the place of a dead voter.
func notNext(v View) (string, bool) {
	if v.Resting && !v.Looked {
		return "others are called first", true
	}
	dead, found := v.dead()
	list := candidates(v, RoleVoter, selfReady(v))
	position := slices.IndexFunc(list, func(h Host) bool { return h.ID == v.Self.ID })
	since, _ := v.deadFor(dead)
	if !found || position <= 0 || min(since-v.Limits.DeadGrace, v.IdleFor) >= patience(v, position) {
		return "", false
	}
	return list[0].Name + " goes first", true
}

// replaceEven tells whether the voters would be even in number once one is replaced, and nobody follows.
func replaceEven(v View) (string, bool) {
	voters, _ := v.Cluster.Counts()
	if mayGrow(voters-1, v.Target.Voters, len(candidates(v, RoleVoter, selfReady(v)))) {
		return "", false
	}
	return fmt.Sprintf("there are %d voters, and %d are wanted", voters, v.Target.Voters), true
}

// awaitsRepair tells whether voters do not answer, and every one of them is called dead: a host is ready to take its
// place.
func (v View) awaitsRepair() bool {
	down := false
	for m := range v.Cluster.voters() {
		if since, _ := v.calledDead(m); !m.Live && (v.Limits.DeadGrace == 0 || since == 0) {
			return false
		}
		down = down || !m.Live
	}
	return down
}

// allDead tells whether every voter that does not answer is dead.
func (v View) allDead() bool {
	for m := range v.Cluster.voters() {
		if !m.Live && !v.isDead(m) {
			return false
		}
	}
	return true
}

// replaces is the operation that puts a host in the place of a dead voter: it removes that one, and joins. When its
// agent is gone, a voter's agent ends it, and takes back the learner that was added for it; ordinary joins do the rest.
func replaces() operation {
	return operation{
		kind:   KindReplace,
		noun:   "replacement",
		phases: []OpPhase{PhaseBegun, PhaseRemoving, PhaseAdded, PhaseStarted, PhasePromoted, PhaseRollback},
		asks:   []OpPhase{PhaseBegun, PhaseRemoving},
		joins:  true,
		carry:  carryReplace,
		orphan: func(v View) Decision {
			if v.Op.Token != v.Lock.Token {
				return takeBack(v)
			}
			return giveBack(v)
		},
	}
}

// carryReplace carries this host's replacement on, from whatever point it is seen at.
func carryReplace(v View) Decision {
	if d, decided := underLock(v, "to go on with the replacement"); decided {
		return d
	}
	if v.Op.Phase == PhaseRollback {
		return giveBack(v)
	}
	m, listed := v.member()
	dead, there := v.memberByID(v.Op.Replaces)
	code, text := giveUp(v, m, listed)
	if there && code == "" {
		code, text = spared(v)
	}
	switch {
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "":
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	case there:
		return removeDead(v, dead)
	case !listed:
		return addLearner(v)
	case m.Learner:
		return followLearner(v, m)
	}
	return finishJoin(v, m)
}

// spared tells why the voter that is to be replaced is not removed, if there is a reason: it is looked at anew in every
// turn until it is gone. Once etcd may be told, what is likely to pass does not end it, and [removeDead] waits.
func spared(v View) (ReasonCode, string) {
	if v.Limits.DeadGrace == 0 || v.Op.Target != RoleVoter {
		return Disowned, "by its own configuration this host replaces nobody"
	}
	if v.Op.Elapsed > v.Limits.LearnerStall {
		return JoinTooLong, fmt.Sprintf("the dead voter could not be removed for %s, the limit is %s",
			v.Op.Elapsed.Round(time.Second), v.Limits.LearnerStall)
	}
	list := []veto{vetoReplacesLive(), vetoReplacesEarly(), vetoSeveralDown(), vetoRepairsUnreadable()}
	if v.Op.Phase != PhaseRemoving {
		list = append(list, vetoReplaceAtRisk(), vetoStandbyBehind())
	}
	if reasons := against(v, list); len(reasons) > 0 {
		return reasons[0].Code, reasons[0].Text
	}
	return "", ""
}

// replacesLive tells whether the voter that is to be replaced is not dead, or not any more.
func replacesLive(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || !m.Learner && v.isDead(m) {
		return "", false
	}
	_, why := v.deadFor(m)
	if m.Learner {
		why = "it is no voter"
	}
	return m.label() + " is not dead: " + why, why != ""
}

// replacesEarly tells whether the voter that is to be replaced is dead, and not for long enough: its time has begun
// anew.
func replacesEarly(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || v.isDead(m) {
		return "", false
	}
	since, _ := v.deadFor(m)
	return fmt.Sprintf("%s has been dead for %s of %s", m.label(), since.Round(time.Second), v.Limits.DeadGrace), true
}

// removeDead takes the dead voter out, once every live voter's host has told anew what it sees: since the operation was
// recorded, and since etcd may be told.
func removeDead(v View, dead Member) Decision {
	// the others could not spare it now, or this host not take the place: that is waited for, not for long
	if r, holds := vetoed(v, vetoReplaceAtRisk, vetoStandbyBehind, vetoHealthUnknown, vetoNotQualified, vetoHealthBad,
		vetoVersionUnknown, vetoVersionIncompatible, vetoClockUnknown, vetoClockSkew, vetoUnitUnusable,
		vetoDataUnusable, vetoLearnerPresent); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if ids, names := unheard(v, dead.PeerURL); len(ids) > 0 {
		d := wait(VerdictAwaited, "waiting for what %s see of %s", strings.Join(names, ", "), dead.label())
		d.Again, d.Behind = lookSoon, ids
		return d
	}
	if v.Op.Phase != PhaseRemoving {
		return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: v.Op.MemberID})
	}
	return do(Step{Kind: StepRemoveMember, MemberID: dead.ID, Why: v.Op.Reason})
}

// giveBack ends a replacement. What etcd was told of a removal lands within the lock's time to live or never: nothing
// else begins before. A standby stays what it was.
func giveBack(v View) Decision {
	dead, there := v.memberByID(v.Op.Replaces)
	if left := v.Limits.LockTTL - v.Op.WrittenFor; there && left > 0 {
		return wait(Settling, "etcd may have been told to remove %s, and does it within %s or not at all", dead.label(),
			left.Round(100*time.Millisecond))
	}
	for m := range v.Cluster.learners() {
		if v.Op.concerns(v, m) && m.Standby {
			return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
		}
	}
	return rollBack(v)
}
