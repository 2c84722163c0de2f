// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// Verify reads a snapshot to its end, opens the database as etcd does, and compares it with its manifest. It returns
// nil only if all that the manifest says is true.
func Verify(ctx context.Context, store Source, m Manifest, o Options) error {
	database, err := fetch(ctx, store, m, o, "")
	if err != nil {
		return fmt.Errorf("cannot verify the snapshot %s: %w", m.Name, err)
	}
	return database.Close()
}

// MarkRestored records in the store that an etcd has just served a snapshot, which was verified before.
func MarkRestored(ctx context.Context, store Sink, m Manifest) error {
	if err := store.Replace(ctx, m.Name+provenEnding, []byte("proven\n")); err != nil {
		return fmt.Errorf("cannot record the restore test of snapshot %s: %w", m.Name, err)
	}
	return MarkVerified(ctx, store, m)
}

// MarkVerified records in the store that a snapshot was just verified.
func MarkVerified(ctx context.Context, store Sink, m Manifest) error {
	// A removed mark may stay missing if the write fails, and prune keeps the last verified snapshot. So replace the
	// mark.
	if err := store.Replace(ctx, m.Name+verifiedEnding, []byte("verified\n")); err != nil {
		return fmt.Errorf("cannot record the verification of snapshot %s: %w", m.Name, err)
	}
	return nil
}

// Restore verifies a snapshot like Verify, and writes its database to a new file at path, readable by its owner only
// and without the trailing checksum: the format of etcd's member/snap/db. It does not sync the file. After an error
// there is no file.
func Restore(ctx context.Context, store Source, m Manifest, path string, o Options) error {
	database, err := fetch(ctx, store, m, o, path)
	if err != nil {
		return fmt.Errorf("cannot restore the snapshot %s: %w", m.Name, err)
	}
	if err := errors.Join(database.Truncate(database.size-sha256.Size), database.Close()); err != nil {
		return fmt.Errorf("cannot restore the snapshot %s: %w", m.Name, errors.Join(err, os.Remove(path)))
	}
	return nil
}

// fetch returns the database of a snapshot once it is verified: as a new file at path, or as one without a name.
func fetch(ctx context.Context, store Source, m Manifest, o Options, path string) (*spool, error) {
	plain, err := Open(ctx, store, m, o.Identities)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	database, whole, err := newSpool(o, m.Size, plain, path)
	if err != nil {
		return nil, err
	}
	o.remains((1 + inspections) * m.Size)
	err = database.fill(ctx, whole, o.progress())
	if err == nil {
		var found record.Contents
		found, err = database.inspect(ctx, o.progress())
		if err == nil && found != m.Contents {
			err = fmt.Errorf("%w: it holds %+v, and its manifest says %+v", ErrDamaged, found, m.Contents)
		}
	}
	if err != nil {
		err = errors.Join(err, database.Close())
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		return nil, err
	}
	return database, nil
}

// Listing is the content of a store.
type Listing struct {
	// Snapshots are sorted newest first, by revision, then by time. A rebuilt cluster starts with small revisions, so
	// those of the cluster that took the last snapshot come first.
	Snapshots []Snapshot
	Orphans   []Object // data without a manifest, manifests without data, and incomplete files
	Unread    []Unread // manifests that cannot be read
}

// Unread is a manifest that cannot be read.
type Unread struct {
	Name string // of the snapshot
	Err  error
}

// List reads all manifests of a store. It skips objects that this package did not write. It calls progress with the
// maximum size of each manifest, in bytes; progress may be nil.
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
			if at, proven := there[m.Name+provenEnding]; proven {
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

// sortNewest sorts as Listing describes. A host whose clock is ahead takes no snapshot later than the store received
// it.
func sortNewest(all []Snapshot, stored func(Snapshot) time.Time) {
	last := map[string]time.Time{} // of each cluster
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

// Remove removes a snapshot: its manifest first, so that no manifest is left without its data for long.
func Remove(ctx context.Context, store Sink, m Manifest) error {
	for _, name := range []string{m.ManifestName(), m.DataName(), m.Name + verifiedEnding, m.Name + provenEnding} {
		if err := store.Delete(ctx, name); err != nil {
			return fmt.Errorf("cannot remove the snapshot %s: %w", m.Name, err)
		}
	}
	return nil
}
