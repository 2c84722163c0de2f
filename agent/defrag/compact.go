// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/child"
)

// Compact compacts the database of a stopped etcd.
func Compact(ctx context.Context, dataDir string, progress *child.Progress) (Result, error) {
	return compact(ctx, dataDir, progress, func(phase) {})
}

func compact(ctx context.Context, dataDir string, progress *child.Progress, at func(phase)) (r Result, err error) {
	// The files are memory-mapped, so a read error causes a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if caught := recover(); caught != nil {
			r, err = Result{}, fmt.Errorf("cannot read the database: %v", caught)
		}
	}()
	began := time.Now()
	d, err := open(dataDir)
	if err != nil {
		return Result{}, err
	}
	defer d.file.Close()
	if err := d.clean(); err != nil {
		return Result{}, fmt.Errorf("cannot remove the files of an earlier defragmentation: %w", err)
	}
	source, err := d.openSource()
	if err != nil {
		return Result{}, err
	}
	defer source.close()
	at(phaseBegun)
	r = Result{Before: source.size, InUse: source.inUse}
	progress.Expect(2 * r.InUse) // once to write the new database, and once to read it again
	if err := d.hasRoom(r.InUse); err != nil {
		return Result{}, err
	}
	defer func() {
		if err != nil {
			_ = d.remove(newName) // the caller gets the error that came first
		}
	}()
	if err := d.write(source); err != nil {
		return Result{}, fmt.Errorf("cannot write the new database: %w%s", err, remedy(err))
	}
	progress.Add(r.InUse)
	at(phaseWritten)
	copied, err := d.verify(ctx, source)
	if err != nil {
		return Result{}, fmt.Errorf("cannot verify the new database: %w", err)
	}
	defer copied.close() // releases the lock on the new file, for which an etcd may be waiting
	progress.Add(r.InUse)
	at(phaseVerified)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := d.exchange(source, copied, at); err != nil {
		return Result{}, err
	}
	r.After, r.Seconds = copied.size, time.Since(began).Seconds()
	return r, nil
}

// remedy returns the remedy for a full disk, to append to an error text; "" for other errors.
func remedy(err error) string {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		if errors.Is(err, full) || strings.Contains(err.Error(), full.Error()) { // bbolt keeps only the error's text
			return " → free space on the database's file system, and try again; the database is unchanged"
		}
	}
	return ""
}

// hasRoom returns an error unless the file system has space for the new file.
func (d directory) hasRoom(size int64) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(d.file.Fd()), &stat); err != nil {
		return err
	}
	free := int64(stat.Bavail) * stat.Bsize //nolint:gosec // no file system is that large
	if need := size + spare; free < need {
		return fmt.Errorf("%s has %d MiB free, but %d MiB are needed%s", d.path, free>>20, (need+1<<20-1)>>20,
			remedy(unix.ENOSPC))
	}
	return nil
}

// write writes a compacted copy of the source to the new file, and syncs it.
func (d directory) write(source opened) (err error) {
	dst, err := bbolt.Open(d.name(newName), 0o600, &bbolt.Options{
		NoSync: true, Timeout: lockWait, PageSize: source.db.Info().PageSize, NoFreelistSync: true,
		OpenFile: func(path string, _ int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
		},
	})
	if err != nil {
		return err
	}
	if err := bbolt.Compact(dst, source.db, txBytes); err != nil {
		return errors.Join(err, dst.Close())
	}
	return errors.Join(dst.Sync(), dst.Close())
}

// exchange links the original to OldName, then renames the new file to "db". If an etcd has opened the original
// meanwhile, or this is unknown, exchange returns an error. It then moves the original back, unless an etcd has the new
// database open.
func (d directory) exchange(source, copied opened, at func(phase)) error {
	if err := os.Link(d.name(database), d.name(OldName)); err != nil {
		return err
	}
	// link(2) has not necessarily linked the file that was read
	if same, err := d.is(OldName, source.file); err != nil || !same {
		return errors.Join(err, errors.New("another process has replaced the database"), d.remove(OldName))
	}
	if err := d.sync(); err != nil {
		return err
	}
	at(phaseLinked)
	if err := os.Rename(d.name(newName), d.name(database)); err != nil {
		return errors.Join(err, d.remove(OldName))
	}
	at(phaseReplaced)
	if err := d.sync(); err != nil {
		return err
	}
	old, err := opensWithin(source.file, openWait)
	if err == nil && !old {
		return nil
	}
	next, other := isOpenForWriting(copied.file)
	if other == nil && next {
		return errors.Join(err, errors.New("etcd was started meanwhile, and has the new database open"))
	}
	why := errors.New("etcd was started during the defragmentation, and keeps the original database")
	return errors.Join(why, err, os.Rename(d.name(OldName), d.name(database)), d.sync())
}
