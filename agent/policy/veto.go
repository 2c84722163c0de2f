// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/health"
)

// A veto is a condition that keeps a host from a step, such as joining, being taken down or removing a member. The
// vetoes that cautions returns are reported even if they block nothing. check reports whether the veto applies, and
// returns the text of the reason.
type veto struct {
	code ReasonCode
	// own reports that the veto concerns only this host: while it applies, the host does not count as ready, and other
	// hosts do not wait for it.
	own   bool
	check func(v View) (text string, holds bool)
}

// reason returns the reason if the veto applies. A veto may have a different code in a special case, such as a missing
// observation: the remedy for a full disk does not help if the disk does not answer.
func (k veto) reason(v View) (Reason, bool) {
	text, holds := k.check(v)
	if !holds {
		return Reason{}, false
	}
	for _, b := range unknownVetoes() {
		if b.veto == k.code && b.holds(v) {
			return Reason{b.code, text}, true
		}
	}
	return Reason{k.code, text}, true
}

// unknownVeto replaces the code of a veto if holds returns true, in most cases because an observation is missing.
type unknownVeto struct {
	veto, code ReasonCode
	holds      func(v View) bool
}

func unknownVetoes() []unknownVeto {
	return []unknownVeto{
		{SpaceLow, SpaceNotKnown, func(v View) bool { return !v.Data.FreeKnown }},
		{UnitUnusable, UnitNotKnown, func(v View) bool { return v.Unit.State == UnitUnknown }},
		{UnitUnusable, EtcdExternal, func(v View) bool { return !v.Self.Drives }},
		{DataUnusable, DataNotKnown, func(v View) bool { return v.Data.State == DataUnknown }},
		{EtcdCorrupt, DataDiffers, func(v View) bool { return v.Cluster.Intact }},
	}
}

// vetoed returns the reason of the first veto in list that applies.
func vetoed(v View, list ...func() veto) (Reason, bool) {
	for _, veto := range list {
		if r, holds := veto().reason(v); holds {
			return r, true
		}
	}
	return Reason{}, false
}

// blockedBy returns the decision to wait until the veto no longer applies.
func blockedBy(v View, by func() veto) Decision {
	r, holds := by().reason(v)
	if !holds {
		r = Reason{Code: by().code}
	}
	return Decision{Reasons: []Reason{r}}
}

// Each veto is declared once, here. A list that names a missing veto does not compile, while a misspelled code would
// silently block nothing. Vetoes are functions, not variables, to avoid an initialization cycle: their checks lead,
// through the table of operations, to decisions that name vetoes.

func vetoNoQuorum() veto            { return veto{NoQuorum, false, noQuorum} }
func vetoUnreachable() veto         { return veto{ClusterUnreachable, false, unreachable} }
func vetoIDMismatch() veto          { return veto{ClusterIDMismatch, true, idMismatch} }
func vetoHostConflict() veto        { return veto{HostConflict, true, hostConflict} }
func vetoIdentityConflict() veto    { return veto{HostConflict, true, identityConflict} }
func vetoMaintenanceOverdue() veto  { return veto{MaintenanceOverdue, true, maintenanceOverdue} }
func vetoInMaintenance() veto       { return veto{InMaintenance, true, inMaintenance} }
func vetoAwaitsTurn() veto          { return veto{CycleQueued, true, awaitsTurn} }
func vetoVoterNotLive() veto        { return veto{VoterNotLive, true, voterNotLive} }
func vetoTargetMet() veto           { return veto{TargetMet, false, targetMet} }
func vetoVersionUnknown() veto      { return veto{VersionUnknown, true, versionUnknown} }
func vetoVersionUnsafe() veto       { return veto{VersionUnsafe, true, versionUnsafe} }
func vetoVersionUntested() veto     { return veto{VersionUntested, true, versionUntested} }
func vetoVersionIncompatible() veto { return veto{VersionIncompatible, true, versionIncompatible} }
func vetoHealthUnknown() veto       { return veto{HealthUnknown, true, healthUnknown} }
func vetoNotQualified() veto        { return veto{NotQualified, true, notQualified} }
func vetoHealthBad() veto           { return veto{HealthBad, true, healthBad} }
func vetoClockUnknown() veto        { return veto{ClockUnknown, true, clockUnknown} }
func vetoClockSkew() veto           { return veto{ClockSkew, true, clockSkew} }
func vetoSpaceLow() veto            { return veto{SpaceLow, true, spaceLow} }
func vetoUnitUnusable() veto        { return veto{UnitUnusable, true, unitUnusable} }
func vetoEtcdExternal() veto        { return veto{EtcdExternal, true, etcdExternal} }
func vetoUnitBusy() veto            { return veto{UnitBusy, true, unitBusy} }
func vetoDefaultCluster() veto      { return veto{DefaultCluster, true, strayDefault} }
func vetoDataUnusable() veto        { return veto{DataUnusable, true, dataUnusable} }
func vetoEjected() veto             { return veto{Ejected, true, ejected} }
func vetoBackingOff() veto          { return veto{BackingOff, true, backingOff} }
func vetoStepStuck() veto           { return veto{StepStuck, true, stepStuck} }
func vetoOperationInFlight() veto   { return veto{OperationInFlight, false, operationInFlight} }
func vetoLockHeld() veto            { return veto{LockHeld, false, lockHeld} }
func vetoCommonCause() veto         { return veto{CommonCause, false, commonCause} }
func vetoLearnerPresent() veto      { return veto{LearnerPresent, false, learnerPresent} }
func vetoSettling() veto            { return veto{Settling, false, settling} }
func vetoLowerRanked() veto         { return veto{LowerRanked, false, lowerRanked} }
func vetoEvenVoters() veto          { return veto{EvenVoters, false, evenVoters} }
func vetoMemberUnitUnusable() veto  { return veto{UnitUnusable, true, memberUnitUnusable} }
func vetoMemberLost() veto          { return veto{MemberLost, true, memberLost} }
func vetoRestartOfStopped() veto    { return veto{UnitStopped, true, restartOfStopped} }
func vetoPeerTLSMissing() veto      { return veto{PeerTLSMissing, true, peerTLSMissing} }
func vetoNonMemberEtcdRuns() veto   { return veto{UnitBusy, true, nonMemberEtcdRuns} }
func vetoQuorumAtRisk() veto        { return veto{QuorumAtRisk, false, quorumAtRisk} }
func vetoLearnerUnsettled() veto    { return veto{LearnerUnsettled, false, learnerUnsettled} }
func vetoNotSettled() veto          { return veto{Settling, false, notSettled} }
func vetoCycleQueued() veto         { return veto{CycleQueued, false, cycleQueued} }
func vetoRemovesLive() veto         { return veto{MemberLive, false, removesLive} }
func vetoRemovesEarly() veto        { return veto{MemberLive, false, removesEarly} }
func vetoRemovalAtRisk() veto       { return veto{QuorumAtRisk, false, removalAtRisk} }
func vetoListUnsettled() veto       { return veto{Settling, false, listUnsettled} }
func vetoTooOld() veto              { return veto{VersionUnsafe, true, tooOld} }
func vetoTooNew() veto              { return veto{VersionUntested, true, tooNew} }
func vetoSeveralDown() veto         { return veto{CommonCause, false, severalDown} }
func vetoReplaceAtRisk() veto       { return veto{QuorumAtRisk, false, replaceAtRisk} }
func vetoReplacesLive() veto        { return veto{MemberLive, false, replacesLive} }
func vetoReplacesEarly() veto       { return veto{VoterDead, false, replacesEarly} }
func vetoRepairsUnreadable() veto   { return veto{RecordUnreadable, false, repairsUnreadable} }
func vetoRepairsSpent() veto        { return veto{RepairLimitReached, false, repairsSpent} }
func vetoStandbyBehind() veto       { return veto{LearnerNotSteady, true, standbyBehind} }
func vetoNotNext() veto             { return veto{LowerRanked, false, notNext} }
func vetoReplaceEven() veto         { return veto{EvenVoters, false, replaceEven} }
func vetoUnitDisabled() veto        { return veto{UnitDisabled, true, unitDisabled} }
func vetoOwnOperationDue() veto     { return veto{OperationInFlight, true, ownOperationDue} }
func vetoNotFollowed() veto         { return veto{LeaderSlow, true, notFollowed} }
func vetoAllUnhealthy() veto        { return veto{CommonCause, true, allUnhealthy} }
func vetoNoneBetter() veto          { return veto{LeaderSlow, true, noneBetter} }
func vetoSteppedDown() veto         { return veto{LeaderSlow, true, tooSoonAgain} }
func vetoStandbyLost() veto         { return veto{StandbyLost, false, standbyLost} }
func vetoLeaderSlow() veto          { return veto{LeaderSlow, true, leaderSlowText} }
func vetoVoterUnhealthy() veto      { return veto{VoterUnhealthy, false, voterUnhealthy} }
func vetoVoterSuspect() veto        { return veto{VoterSuspect, false, voterSuspect} }
func vetoBackupOld() veto           { return veto{BackupOld, false, backupOld} }
func vetoBackupFailed() veto        { return veto{BackupFailed, false, backupFailed} }
func vetoRestoreTestOverdue() veto  { return veto{RestoreTestOverdue, false, restoreTestOverdue} }
func vetoRestoreTestFailed() veto   { return veto{RestoreTestFailed, false, restoreTestFailed} }
func vetoSnapshotFirst() veto       { return veto{SnapshotFirst, false, snapshotFirst} }
func vetoUpgradeHeld() veto         { return veto{UpgradeHeld, false, upgradeHeld} }
func vetoDowngradeAwaited() veto    { return veto{DowngradeAwaited, false, downgradeAwaited} }
func vetoDowngradeLeft() veto       { return veto{DowngradeEnabled, false, downgradeLeft} }
func vetoJoinsShut() veto           { return veto{DowngradeEnabled, false, joinsShut} }
func vetoDowngradeEnabled() veto    { return veto{DowngradeEnabled, false, downgradeEnabled} }
func vetoLastLeaves() veto          { return veto{UpgradeHeld, false, lastLeaves} }
func vetoLastRemoved() veto         { return veto{UpgradeHeld, false, lastRemoved} }
func vetoLastReplaced() veto        { return veto{UpgradeHeld, false, lastReplaced} }
func vetoLeaveAtRisk() veto         { return veto{QuorumAtRisk, false, leaveAtRisk} }
func vetoRemovalPending() veto      { return veto{Settling, false, removalPending} }
func vetoNotFirstToLeave() veto     { return veto{LowerRanked, false, notFirstToLeave} }
func vetoOperationRecorded() veto   { return veto{OperationInFlight, false, operationRecorded} }
func vetoRetired() veto             { return veto{HostRetired, true, retired} }
func vetoSizeDiffers() veto         { return veto{SizeDiffers, false, sizeDiffers} }
func vetoStandbysDiffer() veto      { return veto{StandbysDiffer, false, standbysDiffer} }
func vetoQuotasDiffer() veto        { return veto{QuotasDiffer, false, quotasDiffer} }
func vetoClientURLDiffers() veto    { return veto{ClientURLDiffers, true, clientURLDiffers} }
func vetoAloneWithoutSnapshot() veto {
	return veto{SnapshotFirst, false, aloneWithoutSnapshot}
}
func vetoRecalled() veto       { return veto{Recalled, true, recalled} }
func vetoLearnerLast() veto    { return veto{LowerRanked, false, learnerLast} }
func vetoLearnerVersion() veto { return veto{LearnerVersion, true, learnerVersion} }
func vetoLearnerLimit() veto   { return veto{LearnerLimit, true, learnerLimit} }
func vetoLearnersExceed() veto { return veto{LearnerLimit, true, learnersExceedLimit} }
func vetoLowersLimit() veto    { return veto{LearnerLimit, true, restartLowersLimit} }
func vetoPlacesTaken() veto    { return veto{LearnerLimit, false, learnerPlacesTaken} }
func vetoLearnerVotes() veto   { return veto{LearnerOnly, true, learnerVotes} }
func vetoSurplus() veto        { return veto{TooManyVoters, false, surplus} }

// Refusal is the reason why an operator's request is rejected.
type Refusal struct {
	Kind RefusalKind
	Code ReasonCode // empty if no reason code applies
	Text string     // the cause, as it follows "cannot …: "
	Hint string     // the remedy
}

// RefusalKind classifies a refusal.
type RefusalKind uint8

// The kinds of refusals.
const (
	Conflicts RefusalKind = iota // the host or the cluster is not in the expected state
	NotNow                       // the request may succeed later
	Wrong                        // the request can never be fulfilled
	NoSuch                       // the name matches nothing, or is ambiguous
)

func conflicts(code ReasonCode, text, hint string) *Refusal {
	return &Refusal{Conflicts, code, text, hint}
}

// Permission is what a health state allows.
type Permission struct {
	Join bool // the host may become a learner, and then a voter
	Hold bool // a join that has begun may wait for a better health state
}

// Permits returns what a health state allows. Unknown neither adds a member nor rolls a join back.
func Permits(s health.State) Permission {
	switch s { //exhaustive:enforce
	case health.OK:
		return Permission{Join: true, Hold: true}
	case health.Warm, health.Unknown, health.Qualifying:
		return Permission{Hold: true}
	case health.Slow, health.Stalled, health.Failed:
		return Permission{}
	}
	return Permission{Hold: true} // a health state that this agent does not know is unknown
}

// blocks reports whether a health state blocks the steps that a gate protects, given the gates that no finding closes.
// While the state is unknown or still being determined there are no findings, so everything is blocked.
func blocks(s health.State, ungated, what health.Gate) bool {
	switch s { //exhaustive:enforce
	case health.OK:
		return false
	case health.Warm, health.Slow, health.Stalled, health.Failed:
		return ungated&what == 0
	case health.Unknown, health.Qualifying:
	}
	return true
}

// blocks reports whether this host's health state blocks the steps that a gate protects.
func (h Health) blocks(what health.Gate) bool { return blocks(h.State, h.Ungated, what) }

// Unhealthy reports whether a health state means that the host harms the cluster.
func Unhealthy(s health.State) bool {
	return s == health.Slow || s == health.Stalled || s == health.Failed
}

// MaxMutes is the maximum number of mutes on a host.
const MaxMutes = 128

// AgainstMute returns why a finding may not be muted, or nil. check is the check that reports the finding, or nil if no
// check does.
func AgainstMute(code health.Code, check *health.Check) *Refusal {
	switch {
	case check == nil:
		return &Refusal{NoSuch, "", "no check reports that finding", "quorumctl health lists the findings"}
	case check.Gates != health.Nothing:
		gates := strings.Join(check.Gates.Names(), ", ")
		return conflicts("", "it gates "+gates+"; a finding that blocks a step cannot be muted",
			"quorumctl health "+string(code)+" shows the remedy")
	}
	return nil
}

// AgainstMoreMutes returns why no mute may be added to that many existing ones, or nil.
func AgainstMoreMutes(others int) *Refusal {
	if others < MaxMutes {
		return nil
	}
	return conflicts("", fmt.Sprintf("%d findings are muted already, which is the limit", others),
		"quorumctl health unmute ends one")
}

// cautions returns the conditions that need attention even if they block nothing. A host without a step reports them
// after its other reasons, in any mode.
func cautions() []veto {
	return []veto{
		vetoRecalled(),
		vetoLearnerVotes(),
		vetoLearnersExceed(),
		vetoPlacesTaken(),
		vetoTooOld(),
		vetoTooNew(),
		vetoUnitDisabled(),
		vetoEtcdExternal(),
		vetoLeaderSlow(),
		vetoVoterUnhealthy(),
		vetoVoterSuspect(),
		vetoSurplus(),
		vetoSizeDiffers(),
		vetoStandbysDiffer(),
		vetoQuotasDiffer(),
		vetoDowngradeLeft(),
		vetoClientURLDiffers(),
		vetoRetired(),
		vetoStandbyLost(),
		vetoBackupFailed(),
		vetoBackupOld(),
		vetoSnapshotFirst(),
		vetoRestoreTestFailed(),
		vetoRestoreTestOverdue(),
	}
}

// caution appends the cautions that apply and whose codes are not among the reasons yet.
func caution(v View, reasons []Reason) []Reason {
	for _, c := range cautions() {
		r, holds := c.reason(v)
		if !holds || hasCode(reasons, r.Code) {
			continue
		}
		reasons = append(reasons[:len(reasons):len(reasons)], r)
	}
	return reasons
}

func hasCode(reasons []Reason, code ReasonCode) bool {
	for _, r := range reasons {
		if r.Code == code {
			return true
		}
	}
	return false
}

// Cautions returns those of a decision's reasons that block nothing.
func (d Decision) Cautions() []Reason {
	var list []Reason
	for i, r := range d.Reasons {
		for _, c := range cautions() {
			if i > 0 && c.code == r.Code { // the first reason is why the host does nothing
				list = append(list, r)
			}
		}
	}
	return list
}

func unitDisabled(v View) (string, bool) {
	if !v.Unit.NotAtBoot || v.Unit.State == UnitMissing {
		return "", false
	}
	return "the unit is not enabled: after a boot etcd stays down until it is started by hand", true
}
