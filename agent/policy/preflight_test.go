// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

func TestTheVetoesOfAHostAreCheckedInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list []veto
		want []vetoEntry
	}{
		"from joining": {vetoes(), []vetoEntry{
			{NoQuorum, false},
			{ClusterUnreachable, false},
			{ClusterIDMismatch, true},
			{HostConflict, true},
			{MaintenanceOverdue, true},
			{InMaintenance, true},
			{CycleQueued, true},
			{EtcdCorrupt, false},
			{EtcdNoSpace, false},
			{VoterNotLive, true},
			{HostRetired, true},
			{TargetMet, false},
			{LowerRanked, false},
			{VersionUnknown, true},
			{VersionUnsafe, true},
			{VersionIncompatible, true},
			{VersionUntested, true},
			{DowngradeEnabled, false},
			{HealthUnknown, true},
			{NotQualified, true},
			{HealthBad, true},
			{ClockUnknown, true},
			{ClockSkew, true},
			{SpaceLow, true},
			{UnitUnusable, true},
			{DefaultCluster, true},
			{UnitBusy, true},
			{DataUnusable, true},
			{Ejected, true},
			{BackingOff, true},
			{StepStuck, true},
			{OperationInFlight, false},
			{LockHeld, false},
			{CommonCause, false},
			{LearnerPresent, false},
			{LearnerVersion, true},
			{LearnerLimit, true},
			{Settling, false},
			{LowerRanked, false},
			{EvenVoters, false},
		}},
		"from being taken down": {cycleVetoes(), []vetoEntry{
			{HostConflict, true},
			{EtcdCorrupt, false},
			{UnitUnusable, true},
			{MemberLost, true},
			{UnitStopped, true},
			{UnitBusy, true},
			{PeerTLSMissing, true},
			{LearnerLimit, true},
			{OperationInFlight, false},
			{LockHeld, false},
			{CommonCause, false},
			{UpgradeHeld, false},
			{QuorumAtRisk, false},
			{LearnerUnsettled, false},
			{Settling, false},
			{DowngradeAwaited, false},
			{CycleQueued, false},
		}},
		"from removing a member": {removalVetoes(), []vetoEntry{
			{HostConflict, true},
			{EtcdCorrupt, false},
			{MemberLive, false},
			{MemberLive, false},
			{QuorumAtRisk, false},
			{UpgradeHeld, false},
			{OperationInFlight, false},
			{LockHeld, false},
			{Settling, false},
		}},
		"from leaving": {leaveVetoes(), []vetoEntry{
			{HostConflict, true},
			{MaintenanceOverdue, true},
			{InMaintenance, true},
			{EtcdCorrupt, false},
			{EtcdNoSpace, false},
			{QuorumAtRisk, false},
			{LearnerUnsettled, false},
			{UnitUnusable, true},
			{SnapshotFirst, false},
			{UpgradeHeld, false},
			{OperationInFlight, false},
			{LockHeld, false},
			{Settling, false},
			{Settling, false},
			{LowerRanked, false},
		}},
		"from transferring leadership": {stepDownVetoes(), []vetoEntry{
			{HostConflict, true},
			{OperationInFlight, true},
			{LeaderSlow, true},
			{CommonCause, true},
			{LeaderSlow, true},
			{LeaderSlow, true},
		}},
		"from nothing": {cautions(), []vetoEntry{
			{Recalled, true},
			{LearnerOnly, true},
			{LearnerLimit, true},
			{LearnerLimit, false},
			{VersionUnsafe, true},
			{VersionUntested, true},
			{UnitDisabled, true},
			{EtcdExternal, true},
			{LeaderSlow, true},
			{VoterUnhealthy, false},
			{VoterSuspect, false},
			{TooManyVoters, false},
			{SizeDiffers, false},
			{StandbysDiffer, false},
			{QuotasDiffer, false},
			{DowngradeEnabled, false},
			{ClientURLDiffers, true},
			{HostRetired, true},
			{StandbyLost, false},
			{BackupFailed, false},
			{BackupOld, false},
			{SnapshotFirst, false},
			{RestoreTestFailed, false},
			{RestoreTestOverdue, false},
		}},
	} {
		var got []vetoEntry
		for _, v := range c.list {
			got = append(got, vetoEntry{v.code, v.own})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a host is kept %s by\n%v\nwant\n%v", name, got, c.want)
		}
	}
}
