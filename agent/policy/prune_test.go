// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// week returns one snapshot per day, newest first, from revision 700 today to revision 100 six days ago.
func week() []StoredSnapshot {
	var all []StoredSnapshot
	for day := range 7 {
		all = append(all, StoredSnapshot{
			Name: fmt.Sprint("day-", day), ClusterID: "a", Revision: int64(100 * (7 - day)),
			Age: time.Duration(day) * 24 * time.Hour,
		})
	}
	return all
}

func TestOnlyOldSnapshotsBeyondTheNewestAreRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keep BackupKeep
		want []string
	}{
		{BackupKeep{Count: 7}, nil},
		{BackupKeep{Count: 5}, []string{"day-5", "day-6"}},
		{BackupKeep{Count: 1, Age: 4 * 24 * time.Hour}, []string{"day-5", "day-6"}},
		{BackupKeep{Count: 0}, []string{"day-1", "day-2", "day-3", "day-4", "day-5", "day-6"}},
	} {
		if diff := cmp.Diff(c.want, Prune(week(), c.keep)); diff != "" {
			t.Errorf("%+v: (-want +got)\n%s", c.keep, diff)
		}
	}
	if got := Prune(nil, BackupKeep{}); len(got) > 0 {
		t.Error(got)
	}
}

func TestTheLastVerifiedSnapshotIsNeverRemoved(t *testing.T) {
	t.Parallel()
	all := week()
	all[6].Verified, all[6].VerifiedAge = true, 2*time.Hour
	all[5].Verified, all[5].VerifiedAge = true, time.Hour // a newer snapshot, which was verified later
	if got := Prune(all, BackupKeep{Count: 1}); slices.Contains(got, "day-5") || !slices.Contains(got, "day-6") {
		t.Error(got)
	}
}

func TestTheLastRestoreTestedSnapshotIsNeverRemoved(t *testing.T) {
	t.Parallel()
	all := week()
	all[6].Proven, all[6].ProvenAge = true, time.Hour
	all[5].Verified, all[5].VerifiedAge = true, time.Minute
	all[4].Proven, all[4].ProvenAge = true, 2*time.Hour
	want := []string{"day-1", "day-2", "day-3", "day-4"}
	if diff := cmp.Diff(want, Prune(all, BackupKeep{Count: 1})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWrongClocksAndNewClustersCostNoGoodSnapshot(t *testing.T) {
	t.Parallel()
	old := StoredSnapshot{Name: "clock-ahead", ClusterID: "a", Revision: 1, Age: -1000 * time.Hour}
	if got := Prune(append(week(), old), BackupKeep{Count: 1}); slices.Contains(got, "day-0") {
		t.Errorf("one with a clock that was ahead counts as the newest: %v", got)
	}
	again := StoredSnapshot{Name: "again", ClusterID: "b", Revision: 1}
	if got := Prune(append(week(), again), BackupKeep{Count: 1}); slices.Contains(got, "again") ||
		slices.Contains(got, "day-0") {
		t.Errorf("the first of a new cluster ranks behind the old one's: %v", got)
	}
}
