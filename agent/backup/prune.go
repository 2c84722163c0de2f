// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"slices"
	"time"
)

// Keep selects the snapshots to keep: the newest Count, but at least one, and all that are younger than Age.
type Keep struct {
	Count int
	Age   time.Duration
}

// OrphanAge is how old an orphaned object must be before it is removed. A host may still be writing a younger one.
const OrphanAge = 24 * time.Hour

// Prunable returns the snapshots that may be removed at the time now, in the order given. It keeps the snapshots
// that [Keep] describes. It takes the newest both by revision and by time, so that neither a wrong clock nor a new
// cluster causes good snapshots to be removed. For each cluster, it also keeps the last snapshot that was verified and
// the last that passed a restore test.
func Prunable(all []Snapshot, keep Keep, now time.Time) []Snapshot {
	byAge := slices.Clone(all)
	slices.SortStableFunc(byAge, func(a, b Snapshot) int { return b.TakenAt.Compare(a.TakenAt) })
	byRevision := slices.Clone(all)
	slices.SortStableFunc(byRevision, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), b.TakenAt.Compare(a.TakenAt))
	})
	kept := map[string]bool{}
	for i := range min(max(keep.Count, 1), len(all)) {
		kept[byAge[i].Name], kept[byRevision[i].Name] = true, true
	}
	keepLast(kept, all, func(s Snapshot) *time.Time { return s.VerifiedAt })
	keepLast(kept, all, func(s Snapshot) *time.Time { return s.RestoreTestedAt })
	return slices.DeleteFunc(slices.Clone(all), func(s Snapshot) bool {
		return kept[s.Name] || now.Sub(s.TakenAt) <= keep.Age
	})
}

// keepLast adds to kept, for each cluster, the snapshot for which done returns the latest time.
func keepLast(kept map[string]bool, all []Snapshot, done func(Snapshot) *time.Time) {
	last := map[string]Snapshot{} // by cluster
	for _, s := range all {
		at := done(s)
		before, found := last[s.ClusterID]
		if at != nil && (!found || at.After(*done(before))) {
			last[s.ClusterID] = s
		}
	}
	for _, s := range last {
		kept[s.Name] = true
	}
}
