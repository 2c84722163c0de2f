// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// BackupKeep says which snapshots are kept: the newest so many, and all that are younger.
type BackupKeep struct {
	Count int
	Age   time.Duration
}

// Kept is a snapshot that lies in the store. Ages are negative where the clock of its host was ahead.
type Kept struct {
	Name      string
	ClusterID string // etcd's: a cluster that was made anew begins with small revisions
	Revision  int64
	Age       time.Duration
	Verified  bool
	// VerifiedAge is since when; of one that was verified.
	VerifiedAge time.Duration
}

// StrayAge is how old what belongs to no snapshot must be before it is taken away: until then somebody may be writing
// it.
const StrayAge = 24 * time.Hour

// Prune gives the names of the snapshots that may be removed. What is among the newest by its revision, or by its age,
// is kept, so that neither a wrong clock nor a cluster that was made anew costs the good ones; and so is, of each
// cluster, the last that was verified.
func Prune(all []Kept, keep BackupKeep) []string {
	byAge := slices.Clone(all)
	slices.SortStableFunc(byAge, func(a, b Kept) int { return cmp.Compare(a.Age, b.Age) })
	byRevision := slices.Clone(all)
	slices.SortStableFunc(byRevision, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Age, b.Age))
	})
	kept := map[string]bool{}
	for i := range min(max(keep.Count, 1), len(all)) {
		kept[byAge[i].Name], kept[byRevision[i].Name] = true, true
	}
	proven := map[string]Kept{} // by cluster
	for _, k := range all {
		if last, found := proven[k.ClusterID]; k.Verified && (!found || k.VerifiedAge < last.VerifiedAge) {
			proven[k.ClusterID] = k
		}
	}
	var out []string
	for _, k := range all {
		if !kept[k.Name] && k.Age > keep.Age && proven[k.ClusterID].Name != k.Name {
			out = append(out, k.Name)
		}
	}
	return out
}
