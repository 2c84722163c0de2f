// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package restoretest tests that a snapshot can be restored: it makes an isolated cluster from it, has an etcd serve
// it, and compares the result with the snapshot's manifest. It promises:
//
//   - It writes only to a directory of its own, and to a lock file next to it. The host's etcd, its data and its ports
//     are not touched. The throw-away cluster has an ID of its own, and listens only on sockets in that directory,
//     which is closed to others.
//   - A successful test has read the snapshot to its end. At the snapshot's revision, this host's etcd binary has
//     returned the number of keys and the hash in the manifest.
//   - The directory and the etcd process are gone afterwards. If a test is killed, the next test or [Sweep] removes
//     what it left.
//
// It runs in a child of the agent: the store, the disk and etcd may hang.
//
// The data directory is made here and not by etcd's own package, which links the whole server and writes the format of
// one version only. Three small changes to the database and one entry in a new log are enough.
package restoretest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/backup"
)

const (
	dirName  = "restoreTest"       // the temporary data directory, below the spool
	lockName = "restore-test.lock" // held by a running test and by its etcd
	ownerRW  = 0o600
	ownerAll = 0o700
)

// Run restores the snapshot with the manifest m into a throw-away data directory in the spool, has the etcd binary at
// the given path serve it, and returns that etcd's version. It takes as long as reading the snapshot and starting an
// etcd on it.
func Run(ctx context.Context, store backup.Source, m backup.Manifest, etcd string, o backup.Options) (string, error) {
	version, err := run(ctx, store, m, etcd, o, "/")
	if err != nil {
		return "", fmt.Errorf("cannot test the restore of snapshot %s: %w", m.Name, err)
	}
	return version, nil
}

// run is Run on a host whose /proc and /sys are below root.
func run(ctx context.Context, store backup.Source, m backup.Manifest, etcd string, o backup.Options,
	root string,
) (version string, err error) {
	held, err := hold(o.Spool)
	if err != nil {
		return "", err
	}
	defer held.Close() // releases the lock
	dir := filepath.Join(o.Spool, dirName)
	if err := os.RemoveAll(dir); err != nil { // left by a killed test
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := checkMemory(root, m); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), ownerAll); err != nil {
		return "", err
	}
	database := filepath.Join(dir, "member", "snap", "db")
	if err := backup.Restore(ctx, store, m, database, o); err != nil {
		return "", err
	}
	if err := newCluster(dir, database); err != nil {
		return "", fmt.Errorf("cannot create a cluster from the snapshot: %w", err)
	}
	progress := o.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	if o.Remains != nil {
		o.Remains(-1) // how long etcd takes to read the database is unknown
	}
	return serve(ctx, dir, etcd, held, m, progress)
}

// Sweep removes what a killed test has left in a spool. It does not touch a running test.
func Sweep(spool string) error {
	dir := filepath.Join(spool, dirName)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := hold(spool)
	if errors.Is(err, errRunning) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove files of the last restore test: %w", err)
	}
	defer held.Close() // releases the lock
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove files of the last restore test: %w", err)
	}
	return nil
}

var errRunning = errors.New("another restore test is running on this host, or its etcd has not stopped yet")

// hold takes the lock of a spool.
func hold(spool string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(spool, lockName), os.O_RDWR|os.O_CREATE, ownerRW)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errRunning
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
