// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package rebuild makes a cluster of one member from the data of one survivor, or from a snapshot. It promises:
//
//   - The member's own files are only read and, in the end, renamed; none is deleted or overwritten. All changes are
//     made in a copy next to them.
//   - Every entry in the member's log is kept, so no acknowledged write that reached this log is lost. A log with a
//     torn last record is read up to that record.
//   - The copy has a new cluster ID, so that no old member takes it for its own cluster. Its revision is far above the
//     old ones, so that a watcher that resumes gets an error.
//   - The process may be killed at any moment and started again. It then continues, or starts the copy over.
//
// The agent never accesses these files itself. A child process does, which runs as etcd's own user.
//
// Instead of etcd's restore, the package uses the database as etcd leaves it after --force-new-cluster. A restore would
// also change the cluster ID in the log, and bump and compact the revision. This package makes these small changes
// itself, because etcd's package for a restore links the whole server and writes the format of one version only.
package rebuild

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/coreos/go-semver/semver"
	bolt "go.etcd.io/bbolt"

	"github.com/quorumd/quorumd/agent/etcddb"
)

// Place is where a member's data is.
type Place struct {
	DataDir string
	WALDir  string // empty if the WAL is in the data directory
}

func (p Place) member() string   { return filepath.Join(p.DataDir, "member") }
func (p Place) snap() string     { return filepath.Join(p.member(), "snap") }
func (p Place) database() string { return filepath.Join(p.snap(), "db") }

func (p Place) log() string {
	if p.WALDir != "" {
		return p.WALDir
	}
	return filepath.Join(p.member(), "wal")
}

// separateLog reports whether the log is outside the member's directory, so that it is renamed separately.
func (p Place) separateLog() bool {
	return p.WALDir != "" && !strings.HasPrefix(p.WALDir, p.member()+string(filepath.Separator))
}

// appliedState describes how much of its member's log a database contains.
type appliedState struct {
	index uint64 // etcd's consistent index
	// files is set if the etcd of this database starts only from a snapshot entry with a .snap file: 3.6 and earlier.
	// 3.7 does not read these files, and 3.8 does not write them.
	files bool
}

// unreadable returns the value for a database that cannot be read because an etcd has it open.
func unreadable() appliedState { return appliedState{index: math.MaxUint64} }

// appliedOf returns how much of the log the database contains.
func appliedOf(tx *bolt.Tx) appliedState {
	meta := tx.Bucket([]byte(etcddb.Meta))
	if meta == nil {
		return appliedState{}
	}
	version, err := semver.NewVersion(string(meta.Get([]byte(etcddb.StorageVersion))))
	files := err != nil || version.LessThan(semver.Version{Major: 3, Minor: 7}) // before 3.6 there was no version
	return appliedState{etcddb.IndexOf(meta.Get([]byte(etcddb.ConsistentIndex))), files}
}

// appliedIn returns how much of the log the database in a file contains.
func appliedIn(path string) (db appliedState, err error) {
	err = withDatabase(path, false, func(tx *bolt.Tx) error {
		db = appliedOf(tx)
		return nil
	})
	return db, err
}

// withDatabase calls do with a transaction on a database that no etcd has open. The transaction is read-only unless
// change is true.
func withDatabase(path string, change bool, do func(*bolt.Tx) error) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := etcddb.Open(path, bolt.Options{ReadOnly: !change, Timeout: lockWait})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if change {
		return db.Update(do)
	}
	return db.View(do)
}

// sizeOf returns the total size of a directory's regular files whose names end with ending.
func sizeOf(dir, ending string) (sum int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ending) {
			sum += info.Size()
		}
	}
	return sum
}

// exists reports whether there is a file at path. If that is unknown, it returns true.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
