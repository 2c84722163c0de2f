// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/quorumd/quorumd/agent/record"
)

// Verify reads a snapshot to its end, opens the database as etcd does, and compares it with its manifest. It returns
// nil only if the manifest is correct.
func Verify(ctx context.Context, store Source, m Manifest, o Options) error {
	database, err := fetch(ctx, store, m, o, "")
	if err != nil {
		return fmt.Errorf("cannot verify the snapshot %s: %w", m.Name, err)
	}
	return database.Close()
}

// MarkRestored records in the store that a snapshot has just passed a restore test, which also verifies it.
func MarkRestored(ctx context.Context, store Sink, m Manifest) error {
	if err := store.Replace(ctx, m.Name+restoreTestedEnding, []byte("restore-tested\n")); err != nil {
		return fmt.Errorf("cannot record the restore test of snapshot %s: %w", m.Name, err)
	}
	return MarkVerified(ctx, store, m)
}

// MarkVerified records in the store that a snapshot was just verified.
func MarkVerified(ctx context.Context, store Sink, m Manifest) error {
	// Replace the mark instead of removing it first. If the write failed after a removal, the mark would be missing,
	// and prune would not recognize the last verified snapshot.
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

// fetch returns the verified database of a snapshot, in a new file at path or, without a path, in a file without a
// name.
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
			err = fmt.Errorf("%w: the database contains %+v, but the manifest has %+v", ErrDamaged, found, m.Contents)
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
