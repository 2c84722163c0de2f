// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/agent/record"
)

// today is the time at which the tests prune.
func today() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

// ago returns a time before today.
func ago(d time.Duration) *time.Time {
	at := today().Add(-d)
	return &at
}

// stored returns a snapshot of the given age.
func stored(name, cluster string, revision int64, age time.Duration) Snapshot {
	return Snapshot{Manifest: Manifest{
		Name: name, ClusterID: cluster, TakenAt: *ago(age), Contents: record.Contents{Revision: revision},
	}}
}

// week returns a snapshot for each day, the newest first, from revision 700 today to 100 six days ago.
func week() []Snapshot {
	var all []Snapshot
	for day := range 7 {
		all = append(all, stored(fmt.Sprint("day-", day), "a", int64(100*(7-day)), time.Duration(day)*24*time.Hour))
	}
	return all
}

// pruned returns the names of the snapshots that may be removed today.
func pruned(all []Snapshot, keep Keep) []string {
	var names []string
	for _, s := range Prunable(all, keep, today()) {
		names = append(names, s.Name)
	}
	return names
}

func TestOnlyOldSnapshotsBeyondTheNewestAreRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keep Keep
		want []string
	}{
		{Keep{Count: 7}, nil},
		{Keep{Count: 5}, []string{"day-5", "day-6"}},
		{Keep{Count: 1, Age: 4 * 24 * time.Hour}, []string{"day-5", "day-6"}},
		{Keep{Count: 0}, []string{"day-1", "day-2", "day-3", "day-4", "day-5", "day-6"}},
	} {
		if diff := cmp.Diff(c.want, pruned(week(), c.keep)); diff != "" {
			t.Errorf("%+v: (-want +got)\n%s", c.keep, diff)
		}
	}
	if got := pruned(nil, Keep{}); len(got) > 0 {
		t.Error(got)
	}
}

func TestTheLastVerifiedSnapshotIsNeverRemoved(t *testing.T) {
	t.Parallel()
	all := week()
	all[6].VerifiedAt = ago(2 * time.Hour)
	all[5].VerifiedAt = ago(time.Hour) // a newer snapshot, verified later
	if got := pruned(all, Keep{Count: 1}); slices.Contains(got, "day-5") || !slices.Contains(got, "day-6") {
		t.Error(got)
	}
}

func TestTheLastRestoreTestedSnapshotIsNeverRemoved(t *testing.T) {
	t.Parallel()
	all := week()
	all[6].RestoreTestedAt = ago(time.Hour)
	all[5].VerifiedAt = ago(time.Minute)
	all[4].RestoreTestedAt = ago(2 * time.Hour)
	want := []string{"day-1", "day-2", "day-3", "day-4"}
	if diff := cmp.Diff(want, pruned(all, Keep{Count: 1})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWrongClocksAndNewClustersCostNoGoodSnapshot(t *testing.T) {
	t.Parallel()
	ahead := stored("clock-ahead", "a", 1, -1000*time.Hour)
	if got := pruned(append(week(), ahead), Keep{Count: 1}); slices.Contains(got, "day-0") {
		t.Errorf("one with a clock that was ahead counts as the newest: %v", got)
	}
	again := stored("again", "b", 1, 0)
	if got := pruned(append(week(), again), Keep{Count: 1}); slices.Contains(got, "again") ||
		slices.Contains(got, "day-0") {
		t.Errorf("the first of a new cluster ranks behind the old one's: %v", got)
	}
}
