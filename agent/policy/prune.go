// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// BackupKeep is which snapshots are kept: the newest so many, and all younger ones.
type BackupKeep struct {
	Count int
	Age   time.Duration
}

// StoredSnapshot is a snapshot in the store. Ages are negative if the clock of its host was ahead.
type StoredSnapshot struct {
	Name      string
	ClusterID string // etcd's: a new cluster begins with small revisions
	Revision  int64
	Age       time.Duration
	Verified  bool
	// VerifiedAge is since when, if it was verified.
	VerifiedAge time.Duration
	Proven      bool // an etcd has served it
	// ProvenAge is since when, if it passed a restore test.
	ProvenAge time.Duration
}

// StrayAge is how old an orphaned object must be before it is removed: until then a host may still be writing it.
const StrayAge = 24 * time.Hour

// Prune returns the names of the snapshots that may be removed. It keeps the newest by revision and by age, so that
// neither a wrong clock nor a new cluster costs good snapshots, and for each cluster the last one that was verified and
// the last one that passed a restore test.
func Prune(all []StoredSnapshot, keep BackupKeep) []string {
	byAge := slices.Clone(all)
	slices.SortStableFunc(byAge, func(a, b StoredSnapshot) int { return cmp.Compare(a.Age, b.Age) })
	byRevision := slices.Clone(all)
	slices.SortStableFunc(byRevision, func(a, b StoredSnapshot) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Age, b.Age))
	})
	kept := map[string]bool{}
	for i := range min(max(keep.Count, 1), len(all)) {
		kept[byAge[i].Name], kept[byRevision[i].Name] = true, true
	}
	keepLast(kept, all, func(k StoredSnapshot) (bool, time.Duration) { return k.Verified, k.VerifiedAge })
	keepLast(kept, all, func(k StoredSnapshot) (bool, time.Duration) { return k.Proven, k.ProvenAge })
	var out []string
	for _, k := range all {
		if !kept[k.Name] && k.Age > keep.Age {
			out = append(out, k.Name)
		}
	}
	return out
}

// keepLast adds the latest one per cluster.
func keepLast(kept map[string]bool, all []StoredSnapshot, done func(StoredSnapshot) (bool, time.Duration)) {
	last := map[string]StoredSnapshot{} // by cluster
	for _, k := range all {
		is, age := done(k)
		before, found := last[k.ClusterID]
		if _, of := done(before); is && (!found || age < of) {
			last[k.ClusterID] = k
		}
	}
	for _, k := range last {
		kept[k.Name] = true
	}
}
