// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Each veto is declared once, here. A list that names a missing veto does not compile, while a misspelled code would
// silently block nothing. Vetoes are functions, not variables, to avoid an initialization cycle: their checks lead,
// through the table of operations, to decisions that name vetoes.

func vetoNoQuorum() veto            { return veto{NoQuorum, false, noQuorum} }
func vetoUnreachable() veto         { return veto{ClusterUnreachable, false, unreachable} }
func vetoIDMismatch() veto          { return veto{ClusterIDMismatch, true, idMismatch} }
func vetoHostConflict() veto        { return veto{HostConflict, true, hostConflict} }
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
func vetoNotMyTurn() veto           { return veto{NotMyTurn, false, notMyTurn} }
func vetoEvenVoters() veto          { return veto{EvenVoters, false, evenVoters} }
func vetoMemberUnitUnusable() veto  { return veto{UnitUnusable, true, memberUnitUnusable} }
func vetoMemberLost() veto          { return veto{MemberLost, true, memberLost} }
func vetoRestartOfStopped() veto    { return veto{UnitStopped, true, restartOfStopped} }
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
func vetoNotNext() veto             { return veto{NotMyTurn, false, notNext} }
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
func vetoSurplus() veto             { return veto{TooManyVoters, false, surplus} }
