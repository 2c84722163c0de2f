// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// replace begins the operation that puts this host in the place of a voter that is dead or sick, if nothing is against
// it. The host that benefits does all of it: nobody is removed unless one stands ready.
func replace(v View) (Decision, bool) {
	role := roleOf(v)
	if v.Op != nil || role != RoleSpare && role != RoleStandby && role != RoleVoter {
		return Decision{}, false
	}
	who, found := v.outgoing()
	if !found {
		return Decision{}, false
	}
	vetoes := replaceVetoes()
	if role == RoleVoter {
		vetoes = completesVetoes()
	}
	reasons := against(v, vetoes)
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		why := fmt.Sprintf("in place of %s, which has been %s", who.label(), who.why)
		step := Step{Kind: StepBeginReplace, Target: RoleVoter, MemberID: who.ID, Why: why}
		if role == RoleVoter {
			step.Target, step.Why = "", fmt.Sprintf("%s has been %s, and there is one voter too many", who.label(), who.why)
		}
		return do(step), true
	case len(reasons) == 0:
		why := "to replace " + who.label() + ", which is " + who.is
		if role == RoleVoter {
			why = "to remove " + who.label() + ", which is " + who.is
		}
		return do(Step{Kind: StepTakeLock, Why: why}), true
	}
	if d, decided := join(v); decided && d.Step.Kind != StepNone { // a sick one keeps nobody from a place that is free
		d.Reasons = append(d.Reasons, reasons...)
		return d, true
	}
	if v.Lock.Mine {
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	return Decision{Reasons: reasons}, true
}

// RecordedURL gives the peer URL that the record of a replacement names, of a host that had this role when it began:
// whoever ends it takes back what was added for it. A standby stays one on its disk until it votes: none is named.
func (r Role) RecordedURL(own string) string {
	if r == RoleStandby {
		return ""
	}
	return own
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

// repairVetoes declares what keeps a host from removing a voter, whoever comes in its place and is fit for it.
func repairVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoMaintenanceOverdue(),
		vetoInMaintenance(),
		vetoAwaitsTurn(),
		vetoCorrupt(),
		vetoNoSpace(),
		vetoSeveralDown(),
		vetoReplaceAtRisk(),
	}
}

// replaceVetoes declares what keeps a host from taking the place of a dead voter, in the order in which they are named.
func replaceVetoes() []veto {
	return slices.Concat(repairVetoes(), unfit(), []veto{
		vetoRepairsUnreadable(),
		vetoRepairsSpent(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoLearnerPresent(),
		vetoStandbyBehind(),
		vetoSettling(),
		vetoNotNext(),
		vetoReplaceEven(),
	})
}

// CommonSpan is for how long it counts that a voter's health state was WARM or worse when another one is unhealthy: the
// hosts of a common cause cross their limits at different moments.
const CommonSpan = 30 * time.Minute

// severalDown tells whether several voters look unhealthy or dead, whose cause is probably not theirs; but for those of
// one failure domain in which no other host votes. Beside one that is unhealthy it counts as well that another has been
// WARM lately, if both states come from disk, processor or network; beside one that is dead it does not. How standbys
// and spares are decides nothing: they do not vote.
func severalDown(v View) (string, bool) {
	who, found := v.replaced()
	alive := found && !v.isDead(who) && (who.Live || v.isSick(who)) // neither dead nor lost with its data
	return v.severalUnfit(alive && v.strained(who))
}

// replaced gives the voter that is being replaced, or would be by this host.
func (v View) replaced() (Member, bool) {
	if v.Op != nil && v.Op.Replaces != 0 {
		return v.memberByID(v.Op.Replaces)
	}
	who, found := v.outgoing()
	return who.Member, found
}

// strained tells whether a voter has been WARM or worse lately because of its disk, processor or network.
func (v View) strained(m Member) bool {
	h, present := v.hostOf(m)
	return present && h.Strained
}

// severalUnfit is severalDown, in which those count that were WARM lately, or do not.
func (v View) severalUnfit(lately bool) (string, bool) {
	var unfit, well []Member
	var names []string
	for m := range v.Cluster.voters() {
		h, present := v.hostOf(m)
		switch {
		case !m.Live:
			names = append(names, m.label()+" does not answer")
		case present && sick(h.Health):
			names = append(names, m.label()+" is "+h.Health.String())
		case lately && v.strained(m):
			names = append(names, fmt.Sprintf("%s was WARM within %s", m.label(), durationfmt.Text(CommonSpan)))
		default:
			well = append(well, m)
			continue
		}
		unfit = append(unfit, m)
	}
	if len(unfit) < 2 {
		return "", false
	}
	domain := v.stoodIn(unfit[0])
	elsewhere := func(m Member) bool { return v.stoodIn(m) != domain }
	spread := slices.ContainsFunc(unfit, elsewhere)
	shared := slices.ContainsFunc(well, func(m Member) bool { return m.Domain == domain || m.Domain == "" })
	if domain != "" && !spread && !shared {
		return "", false
	}
	return fmt.Sprintf("%d voters look unhealthy or dead together, in more than one failure domain: %s", len(unfit),
		strings.Join(names[:min(len(names), mostNamed)], ", ")), true
}

// replaceAtRisk tells whether the voters that are left are not all known to be well, or too few. Those that are to go
// count for nothing: the one that is replaced, and those that are sick. Where one votes too many, one that answers and
// whose agent is gone keeps no sick one in its place: it may be the very host that votes in that place.
func replaceAtRisk(v View) (string, bool) {
	voters, down, proven, untold, why := 0, 0, 0, 0, ""
	goes := func(m Member) bool { return v.isSick(m) || v.Op.takesPlaceOf(m) && v.Op.Host == v.Self.ID }
	for m := range v.Cluster.voters() {
		voters++
		_, present := v.hostOf(m)
		switch doubt := v.doubt(m, health.Maintenance); {
		case !m.Live, goes(m):
			down++
		case doubt != "":
			why = "voter " + m.label() + " " + doubt
			if !present && !m.Errors {
				untold++
			}
		default:
			proven++
		}
	}
	switch {
	case mayReplaceDead(voters, down, proven), v.oneTooMany() && mayRemoveSurplus(voters, down, proven, untold):
		return "", false
	case why == "":
		why = fmt.Sprintf("of %d voters %d are down", voters, down)
	}
	return fmt.Sprintf("no voter is replaced unless all others are healthy: %s", why), true
}

// stoodIn gives the failure domain of a member's host. No host that calls it lost may name another one. Where this host
// has never heard of it, as one that is new, all voters' hosts must name it.
func (v View) stoodIn(m Member) string {
	domain := m.Domain
	for _, h := range v.Hosts {
		s, says := h.sight(m.ID)
		switch {
		case h.Own, s.Domain == "" && m.Domain != "", !says && h.Role != RoleVoter:
		case s.Domain == "" || domain != "" && s.Domain != domain:
			return ""
		default:
			domain = s.Domain
		}
	}
	return domain
}

func repairsUnreadable(v View) (string, bool) {
	return "the number of voters replaced today is unknown", v.cannotRead(RecordRepairs)
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
	if !listed || v.caughtUp(m) {
		return "", false
	}
	return fmt.Sprintf("this host's learner has been within %d entries of the leader for %s, which must be %s",
		v.Limits.PromoteLag, durationfmt.Seconds(m.SteadyFor), durationfmt.Text(v.Limits.SteadyLag)), true
}

// caughtUp tells whether a learner has been where the leader is for long enough to be promoted at once.
func (v View) caughtUp(m Member) bool {
	return steady(v, m) && m.SteadyFor >= v.Limits.SteadyLag && m.LiveFor >= v.Limits.PromoteStable
}

// notNext tells whether another host is the better one to replace a dead voter.
func notNext(v View) (string, bool) {
	if v.Resting && !v.Looked {
		return "other hosts go first", true
	}
	who, found := v.outgoing()
	list := candidates(v, RoleVoter, selfReady(v))
	position := slices.IndexFunc(list, func(h Host) bool { return h.ID == v.Self.ID })
	if !found || position <= 0 || min(who.over, v.IdleFor) >= patience(v, position) {
		return "", false
	}
	return list[0].Name + " goes first", true
}

// replaceEven tells whether a dead voter would leave, nobody come in its place, and the voters be even in number then.
func replaceEven(v View) (string, bool) {
	voters, _ := v.Cluster.Counts()
	if keepsOdd(voters, v.Target.Voters) {
		return "", false
	}
	return fmt.Sprintf("there are %d voters, and %d are wanted: without it %d would be left", voters, v.Target.Voters,
		voters-1), true
}

// awaitsRepair tells whether voters do not answer, and every one of them is called dead, or is sick and too slow
// to: a host is ready to take its place.
func (v View) awaitsRepair() bool {
	down := false
	for m := range v.Cluster.voters() {
		if m.Live {
			continue
		}
		since, _ := v.calledDead(m)
		_, well := v.calledSick(m)
		dead, slow := v.Limits.DeadGrace > 0 && since > 0, v.Limits.SickGrace > 0 && well == "" && !v.silent(m)
		if !dead && !slow {
			return false
		}
		down = true
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

// replaces is the operation that puts a host in the place of a voter: it removes one that is dead, and joins; or joins
// beside one that is sick, and removes it then. Begun by a host that votes it names no role to come to, and removes one
// that is one too many. When its agent is gone, a voter's agent ends it, and takes back the learner that was added for
// it; what begins after that does the rest.
func replaces() operation {
	return operation{
		kind:   KindReplace,
		noun:   "replacement",
		phases: []OpPhase{PhaseBegun, PhaseRemoving, PhaseAdded, PhaseStarted, PhasePromoted, PhaseRollback},
		asks:   []OpPhase{PhaseBegun, PhaseRemoving},
		joins:  true,
		out:    func(op *Op) uint64 { return op.Replaces },
		carry:  carryReplace,
		title:  replaceTitle,
		orphan: func(v View) Decision {
			if v.Op.Token != v.Lock.Token {
				return takeBack(v)
			}
			return giveBack(v)
		},
	}
}

func replaceTitle(t OperationTitle) string {
	switch t.Target {
	case "":
		return "removal of a voter too many by " + t.HostName
	case string(RoleSpare):
		return "removal of its own member, whose data was lost, by " + t.HostName
	}
	return joinTitle(t)
}

// carryReplace carries this host's replacement on, from whatever point it is seen at.
func carryReplace(v View) Decision {
	if d, decided := underLock(v, "to continue the replacement"); decided {
		return d
	}
	if v.Op.Phase == PhaseRollback {
		return giveBack(v)
	}
	m, listed := v.member()
	if listed && !m.Learner && m.ID == v.Op.Replaces {
		return removeLost(v, m)
	}
	who, there := v.memberByID(v.Op.Replaces)
	switch votes := listed && !m.Learner; {
	case v.Op.Target != RoleVoter: // nobody joins by it, also where this host votes no more
		return removeSurplus(v, who, there)
	case votes && there:
		return complete(v, m, who)
	}
	code, text := giveUp(v, m, listed)
	beside := there && v.joinsFirst(who)
	if there && !beside && code == "" {
		code, text = spared(v)
	}
	switch {
	case code != "" && v.Op.Phase == PhaseBegun && listed && m.Learner && !m.Standby: // it has been added since
		return do(Step{Kind: StepRollBack, MemberID: m.ID, Outcome: code, Why: text})
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "":
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	case beside:
		return joinBeside(v, m, listed)
	case there:
		return removeDead(v, who)
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
	if v.Limits.DeadGrace == 0 && v.Limits.SickGrace == 0 || v.Op.Target != RoleVoter {
		return Disowned, "this host's configuration does not allow this replacement"
	}
	limit := v.Limits.LearnerStall
	if v.Op.Phase == PhaseAdded || v.Op.Phase == PhaseStarted { // it was a join until that voter fell silent
		limit = v.Limits.LearnerMax
	}
	if v.Op.Elapsed > limit {
		return JoinTooLong, fmt.Sprintf("the voter could not be removed for %s, the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(limit))
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

// replacesLive tells whether the voter that is to be replaced is neither dead nor sick, or not any more.
func replacesLive(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || !m.Learner && (v.isDead(m) || v.isSick(m)) {
		return "", false
	}
	_, why := v.deadFor(m)
	if m.Learner {
		why = "it is no voter"
	}
	if s, well := v.sickFor(m); m.Live && v.Limits.SickGrace > 0 {
		if well == "" {
			well = fmt.Sprintf("its grace period has restarted, %s remain", durationfmt.Seconds(s.In))
		}
		return m.label() + " is not unhealthy: " + well, true
	}
	return m.label() + " is not dead: " + why, why != ""
}

// replacesEarly tells whether the voter that is to be replaced is dead, and not for long enough: its time has begun
// anew.
func replacesEarly(v View) (string, bool) {
	m, listed := v.memberByID(v.Op.Replaces)
	if !listed || v.isDead(m) || v.isSick(m) {
		return "", false
	}
	since, _ := v.deadFor(m)
	return fmt.Sprintf("%s has been dead for %s of %s", m.label(), durationfmt.Seconds(since),
		durationfmt.Text(v.Limits.DeadGrace)), true
}

// removeDead takes the dead voter out, once every live voter's host has told anew what it sees: since the operation was
// recorded, and since etcd may be told.
func removeDead(v View, dead Member) Decision {
	// the others could not spare it now, or this host not take the place: that is waited for, not for long
	if r, holds := vetoed(v, vetoCorrupt, vetoNoSpace, vetoReplaceAtRisk, vetoStandbyBehind,
		vetoHealthUnknown, vetoNotQualified, vetoHealthBad, vetoVersionUnknown, vetoVersionIncompatible,
		vetoClockUnknown, vetoClockSkew, vetoUnitUnusable, vetoDataUnusable, vetoLearnerPresent); holds {
		return Decision{Reasons: []Reason{r}, Again: lookSoon}
	}
	return removeTold(v, dead)
}

// removeTold removes a voter once the hosts of all others have told anew what they see.
func removeTold(v View, who Member) Decision {
	asked := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseRemoving
	switch ids, names := unheard(v, who.PeerURL); {
	case asked && len(ids) > 0:
		d := wait(VerdictAwaited, "%s waits for %s to report again whether %s is reachable", v.Self.Name, listed(names),
			who.label())
		d.Again, d.Behind = lookSoon, ids
		return d
	case asked && !v.looksAnew():
		d := wait(VerdictAwaited, "this host checks %s again", who.label())
		d.Again = lookSoon
		return d
	}
	if v.Op.Phase != PhaseRemoving {
		return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: v.Op.MemberID})
	}
	return do(Step{Kind: StepRemoveMember, MemberID: who.ID, Why: v.Op.Reason})
}

// giveBack ends a replacement. What etcd was told of a removal lands within the lock's time to live or never: nothing
// else begins before. A standby stays what it was.
func giveBack(v View) Decision {
	dead, there := v.memberByID(v.Op.Replaces)
	if left := v.Limits.LockTTL - v.Op.WrittenFor; there && left > 0 {
		return wait(Settling, "a removal of %s may be pending in etcd; it takes effect within %s or never", dead.label(),
			durationfmt.Tenths(left))
	}
	if v.Op.Target != RoleVoter { // nobody was to join
		return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
	}
	for m := range v.Cluster.learners() {
		if v.Op.concerns(v, m) && m.Standby {
			return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
		}
	}
	return rollBack(v)
}
