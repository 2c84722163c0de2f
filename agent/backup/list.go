// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Listing is the content of a store.
type Listing struct {
	// Snapshots are sorted by cluster, then newest first by revision and time. The cluster that saved the last snapshot
	// comes first, because a rebuilt cluster starts with small revisions.
	Snapshots []Snapshot
	Orphans   []Object // data without a manifest, manifests without data, and incomplete files
	Unread    []Unread // manifests that cannot be read
}

// Unread is a manifest that cannot be read.
type Unread struct {
	Name string // name of the snapshot
	Err  error
}

// List reads all manifests of a store. It skips objects that this package did not write. After each manifest it calls
// progress with maxManifest, the maximum size of a manifest in bytes. progress may be nil.
func List(ctx context.Context, store Source, progress func(int64)) (Listing, error) {
	if progress == nil {
		progress = func(int64) {}
	}
	objects, err := store.List(ctx)
	if err != nil {
		return Listing{}, fmt.Errorf("cannot list the snapshots: %w", err)
	}
	there := make(map[string]time.Time, len(objects))
	for _, o := range objects {
		there[o.Name] = o.Modified
	}
	is := func(name string) bool { _, found := there[name]; return found }
	var l Listing
	for _, o := range objects {
		manifest, isManifest := strings.CutSuffix(o.Name, manifestEnding)
		data, isData := strings.CutSuffix(o.Name, dataEnding)
		switch {
		case isManifest && nameOf.MatchString(manifest) && is(manifest+dataEnding):
			m, err := readManifest(ctx, store, manifest)
			progress(maxManifest)
			if ctx.Err() != nil {
				return Listing{}, fmt.Errorf("cannot list the snapshots: %w", ctx.Err())
			}
			if err != nil {
				l.Unread = append(l.Unread, Unread{manifest, err})
				continue
			}
			one := Snapshot{Manifest: m}
			if at, verified := there[m.Name+verifiedEnding]; verified {
				one.VerifiedAt = &at
			}
			if at, tested := there[m.Name+restoreTestedEnding]; tested {
				one.RestoreTestedAt = &at
			}
			l.Snapshots = append(l.Snapshots, one)
		case strings.HasPrefix(o.Name, unfinished), isManifest && nameOf.MatchString(manifest),
			isData && nameOf.MatchString(data) && !is(data+manifestEnding):
			l.Orphans = append(l.Orphans, o)
		}
	}
	sortNewest(l.Snapshots, func(s Snapshot) time.Time { return there[s.ManifestName()] })
	return l, nil
}

// sortNewest sorts as Listing describes. A snapshot counts as no newer than its arrival in the store, so a host with a
// clock that is ahead does not put its cluster first.
func sortNewest(all []Snapshot, stored func(Snapshot) time.Time) {
	last := map[string]time.Time{} // by cluster
	for _, s := range all {
		at := s.TakenAt
		if had := stored(s); had.Before(at) {
			at = had
		}
		if at.After(last[s.ClusterID]) {
			last[s.ClusterID] = at
		}
	}
	slices.SortFunc(all, func(a, b Snapshot) int {
		return cmp.Or(last[b.ClusterID].Compare(last[a.ClusterID]), cmp.Compare(a.ClusterID, b.ClusterID),
			cmp.Compare(b.Revision, a.Revision), b.TakenAt.Compare(a.TakenAt))
	})
}

// Remove removes a snapshot, its manifest first. If Remove fails midway, data without a manifest may remain, but no
// manifest without its data.
func Remove(ctx context.Context, store Sink, m Manifest) error {
	for _, name := range []string{
		m.ManifestName(), m.DataName(), m.Name + verifiedEnding,
		m.Name + restoreTestedEnding,
	} {
		if err := store.Delete(ctx, name); err != nil {
			return fmt.Errorf("cannot remove the snapshot %s: %w", m.Name, err)
		}
	}
	return nil
}
