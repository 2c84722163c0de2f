// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// Explored marks a step or reason that the exploration of a Scenario reaches.
const Explored = "explored"

// How all other steps and reasons are modelled. A constant condition is the same in every explored world, so its reason
// never occurs.
const (
	oneVersion    = "constant: all members run the same safe version of etcd"
	enoughSpace   = "constant: there is enough space"
	oneQuota      = "constant: all members have the same quota"
	noConflict    = "constant: IDs, names and peer URLs are unique"
	oneCluster    = "constant: endpoints and data belong to one cluster"
	qualified     = "constant: every host is qualified"
	usable        = "constant: the unit is installed and enabled, and its state is known"
	compared      = "constant: the clock offset is known"
	manages       = "constant: no agent is in observe mode"
	stepsEnd      = "constant: local steps end at once"
	readable      = "constant: data can be read"
	noHooks       = "constant: no hooks are installed (a running hook delays a host like a held lock)"
	recordsRead   = "constant: every record is readable (an unreadable one acts like a pause)"
	allowed       = "constant: etcd grants every agent all permissions"
	noBackup      = "constant: no snapshots are taken (a snapshot takes no lock and changes no member)"
	roleStays     = "constant: host.role does not change, and a host with the role learner has no voter at the start"
	noList        = "explored: by bootstrap_test.go, in separate worlds; here bootstrap.hosts is empty"
	repairsLeft   = "constant: the daily limit of replacements is not reached"
	recovers      = "explored: by quorum_loss.go; no other step of the policy may occur during a recovery"
	changesToTLS  = "explored: by readdress_test.go, in separate worlds; here no URL becomes https"
	clientURLs    = "constant: no client URL changes (it changes with etcd's restart in a readdress)"
	freesSpace    = "explored: by space_test.go, in separate worlds; here no agent may free space"
	downgrades    = "explored: by downgrade_test.go, in separate worlds; here no etcd is downgraded"
	bootstrapOnce = "constant: a bootstrap is requested once, and only without a cluster"
)

// Steps returns how each step of the policy is modelled.
func Steps() map[policy.StepKind]string {
	return map[policy.StepKind]string{
		policy.StepTakeLock: Explored, policy.StepReleaseLock: Explored, policy.StepBeginJoin: Explored,
		policy.StepMoveDataAside: Explored, policy.StepAddLearner: Explored, policy.StepWriteEnv: Explored,
		policy.StepStartUnit: Explored, policy.StepStopUnit: Explored, policy.StepPromote: Explored,
		policy.StepSetPhase: Explored, policy.StepRollBack: Explored, policy.StepRemoveLearner: Explored,
		policy.StepEndOp: Explored, policy.StepFinishBootstrap: Explored,
		policy.StepBeginCycle: Explored, policy.StepRunHooks: noHooks, policy.StepTransferLeadership: Explored,
		policy.StepLeaderStepsDown: Explored,
		policy.StepRestartUnit:     Explored, policy.StepTakeDown: Explored, policy.StepReboot: Explored,
		policy.StepRunCommand: Explored, policy.StepDefragment: Explored, policy.StepDeleteOld: Explored,
		policy.StepRecordAgain:  Explored,
		policy.StepUpdateMember: Explored, policy.StepBeginRemoval: Explored, policy.StepRemoveMember: Explored,
		policy.StepBeginReplace: Explored, policy.StepBeginLeave: Explored,
		policy.StepClaimPermit: freesSpace, policy.StepWritePermits: freesSpace, policy.StepCompact: freesSpace,
		policy.StepLeadElsewhere: freesSpace, policy.StepDefragmentOnline: freesSpace,
		policy.StepDisarmNoSpace: freesSpace, policy.StepEnableDowngrade: downgrades,
		policy.StepCancelDowngrade: downgrades,
		policy.StepStopForRecovery: recovers, policy.StepCopyData: recovers, policy.StepPlaceCopy: recovers,
		policy.StepLayAside: recovers, policy.StepEndRecovery: recovers,
	}
}

// Reasons returns how each reason of the policy is modelled.
func Reasons() map[policy.ReasonCode]string {
	return map[policy.ReasonCode]string{
		policy.Idle: Explored, policy.EtcdCorrupt: Explored, policy.DataDiffers: Explored, policy.EtcdNoSpace: Explored,
		policy.ModeObserve: manages, policy.Paused: Explored, policy.StepStuck: stepsEnd,
		policy.PermissionDenied: allowed, policy.StepFailed: Explored, policy.ClusterUnreachable: Explored,
		policy.NoQuorum: Explored, policy.ClusterIDMismatch: oneCluster,
		policy.HostConflict: noConflict, policy.TargetMet: Explored, policy.HealthUnknown: Explored,
		policy.NotQualified: qualified, policy.HealthBad: Explored, policy.CommonCause: Explored,
		policy.VersionUnknown: oneVersion, policy.VersionUnsafe: oneVersion, policy.VersionIncompatible: oneVersion,
		policy.VersionUntested: oneVersion,
		policy.ClockUnknown:    compared, policy.ClockSkew: Explored, policy.SpaceLow: enoughSpace,
		policy.SpaceNotKnown: enoughSpace,
		policy.UnitUnusable:  usable, policy.UnitNotKnown: usable, policy.UnitDisabled: usable,
		policy.EtcdExternal: Explored, policy.UnitBusy: Explored, policy.UnitStopped: Explored,
		policy.DefaultCluster: oneCluster, policy.DataUnusable: readable, policy.DataNotKnown: readable,
		policy.BackingOff:   Explored,
		policy.Ejected:      Explored,
		policy.VoterNotLive: Explored,
		policy.Settling:     Explored, policy.LearnerPresent: Explored, policy.EvenVoters: Explored,
		policy.LearnerVersion: oneVersion, policy.LearnerLimit: Explored, policy.LearnerOnly: roleStays,
		policy.PeerTLSMissing:    changesToTLS,
		policy.OperationInFlight: Explored, policy.LockHeld: Explored, policy.LowerRanked: Explored,
		policy.LearnerBehind: Explored, policy.LearnerNotSteady: Explored, policy.LearnerNotStarted: Explored,
		policy.LearnerStalled: Explored, policy.JoinTimedOut: Explored, policy.HealthLost: Explored,
		policy.HostRebooted: Explored, policy.Orphaned: Explored, policy.OperationRejected: Explored,
		policy.Joined:        Explored,
		policy.ClusterExists: bootstrapOnce, policy.Starting: Explored, policy.MemberDown: Explored,
		policy.MemberLost:   Explored,
		policy.QuorumAtRisk: Explored, policy.LearnerUnsettled: Explored, policy.CycleQueued: Explored,
		policy.InMaintenance:      Explored,
		policy.MaintenanceOverdue: Explored, policy.RebootAwaited: Explored, policy.HealthAwaited: Explored,
		policy.LeadershipNotTransferred: Explored, policy.LeaderSlow: Explored, policy.HookRunning: noHooks,
		policy.HookFailed: noHooks, policy.Stopping: Explored, policy.Returning: Explored, policy.NotBack: Explored,
		policy.CommandRunning: Explored, policy.CommandFailed: Explored,
		policy.Defragmenting: Explored, policy.DefragFailed: Explored,
		policy.FreeingSpace: freesSpace, policy.Cycled: Explored,
		policy.Cancelled:        Explored,
		policy.Recalled:         Explored,
		policy.RecordUnreadable: recordsRead,
		policy.MemberLive:       Explored, policy.Removed: Explored, policy.RepairLimitReached: repairsLeft,
		policy.VoterDead:      Explored,
		policy.VoterUnhealthy: Explored, policy.VoterSuspect: Explored, policy.StandbyLost: Explored,
		policy.TooManyVoters: Explored, policy.SizeDiffers: Explored, policy.HostRetired: Explored,
		policy.StandbysDiffer:   Explored,
		policy.QuotasDiffer:     oneQuota,
		policy.ClientURLDiffers: clientURLs,
		policy.Recovering:       recovers, policy.Recovered: recovers, policy.QuorumRestored: recovers,
		policy.RecoveryGivenUp: recovers,
		policy.BackupOld:       noBackup, policy.BackupFailed: noBackup,
		policy.RestoreTestOverdue: noBackup, policy.RestoreTestFailed: noBackup,
		policy.SnapshotFirst: noBackup, policy.UpgradeHeld: Explored, policy.BootstrapWaiting: noList,
		policy.DowngradeAwaited: downgrades, policy.DowngradeEnabled: downgrades,
	}
}
