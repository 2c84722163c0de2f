// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

// vetoEntry is an expected entry in the list of vetoes: its code, and whether it concerns only this host.
type vetoEntry struct {
	code ReasonCode
	own  bool
}

func TestEveryReasonIsDeclared(t *testing.T) {
	t.Parallel()
	all := []ReasonCode{
		EtcdCorrupt, DataDiffers, EtcdNoSpace,
		Idle, ModeObserve, Paused, StepStuck, ClusterUnreachable, NoQuorum, PermissionDenied, ClusterIDMismatch,
		HostConflict, TargetMet, HealthUnknown, NotQualified, HealthBad, CommonCause, VersionUnknown,
		VersionUnsafe, VersionUntested, VersionIncompatible, ClockUnknown, ClockSkew, SpaceLow, SpaceNotKnown,
		UnitUnusable, EtcdExternal,
		UnitNotKnown, UnitDisabled, UnitBusy, UnitStopped, DefaultCluster, DataUnusable, DataNotKnown,
		BackingOff, Ejected,
		VoterNotLive, Settling, LearnerPresent, EvenVoters, OperationInFlight, LockHeld, LowerRanked, LearnerBehind,
		LearnerNotSteady, LearnerNotStarted, LearnerStalled, JoinTimedOut, HealthLost, HostRebooted, Orphaned,
		OperationRejected, Joined, ClusterExists, Starting, MemberDown, MemberLost, StepFailed, QuorumAtRisk,
		LearnerUnsettled, CycleQueued, InMaintenance, MaintenanceOverdue, RebootAwaited, HealthAwaited,
		LeadershipNotTransferred, LeaderSlow, HookRunning, HookFailed, CommandRunning, CommandFailed, Stopping,
		Defragmenting, DefragFailed, FreeingSpace, DowngradeAwaited, DowngradeEnabled,
		Returning, NotBack,
		Cycled, Cancelled, Recalled, RecordUnreadable, MemberLive, Removed, RepairLimitReached, VoterDead,
		VoterUnhealthy,
		VoterSuspect,
		StandbyLost, TooManyVoters, SizeDiffers, StandbysDiffer, QuotasDiffer, HostRetired, ClientURLDiffers,
		Recovering, Recovered, RecoveryGivenUp, QuorumRestored,
		BackupOld, BackupFailed,
		RestoreTestOverdue, RestoreTestFailed, SnapshotFirst, BootstrapWaiting, UpgradeHeld,
		LearnerVersion, LearnerLimit, LearnerOnly, PeerTLSMissing,
	}
	for _, code := range all {
		if info := code.Info(); info.Code != code || info.Meaning == "" {
			t.Errorf("%s is declared as %+v", code, info)
		}
	}
	if len(Reasons()) != len(all) {
		t.Errorf("%d reasons are declared, and the test lists %d", len(Reasons()), len(all))
	}
	if got := ReasonCode("DANCE").Info(); got != (ReasonInfo{Code: "DANCE"}) {
		t.Errorf("an undeclared code returns %+v", got)
	}
	if got := blockedBy(spareView(), vetoLockHeld); !slices.Equal(got.Reasons, []Reason{{Code: LockHeld}}) {
		t.Errorf("a veto that no longer holds is reported as %+v", got)
	}
}

// unrecordedOperationView returns the view of a host during its operation, after the operation's record was deleted.
func unrecordedOperationView() View {
	v := downView()
	v.Op, v.Asked.RecordDeleted = nil, true
	v.Lock = Lock{Known: true}
	return v
}
