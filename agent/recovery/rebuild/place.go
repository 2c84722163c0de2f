// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package rebuild makes a cluster of one member from the data of one survivor. It promises:
//
//   - The member's own files are only read, and in the end renamed: changes are made in a copy next to them. None of
//     them is deleted or overwritten.
//   - Every entry in the member's log is kept: an acknowledged write that reached this log is not lost. A log with a
//     torn last record is read up to that record.
//   - The copy has another cluster ID, so that no old member takes it for its own cluster. Its revision is far above
//     the old ones, so that watchers notice.
//   - It may be killed at any moment and started again: it continues, or starts the copy over.
//
// All of it runs in a child of the agent as etcd's own user, never in the agent.
//
// The database is not restored from a snapshot file but used as etcd leaves it after --force-new-cluster. A restore
// would add another cluster ID in the log and a bumped, compacted revision. These are two small changes, while etcd's
// own package for a restore links the whole server and writes the format of one version only.
package rebuild

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-semver/semver"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorumd/quorumd/agent/etcddb"
)

// Place is where a member's data is.
type Place struct {
	DataDir string
	WALDir  string // empty if it is in the data directory
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

// maxLog bounds the log that is read into memory, in bytes. By default etcd keeps five files of 64 MB.
const maxLog = 4 << 30

// logContent is the content of a log.
type logContent struct {
	member, cluster uint64
	state           *raftpb.HardState
	from            *walpb.Snapshot // the snapshot entry before the entries; empty if there is none
	entries         []*raftpb.Entry
}

// last returns the term and index of the newest entry.
func (h logContent) last() (term, index uint64) {
	if n := len(h.entries); n > 0 {
		return h.entries[n-1].GetTerm(), h.entries[n-1].GetIndex()
	}
	return h.from.GetTerm(), h.from.GetIndex()
}

// readLog reads the log of a member without locking or changing it, from the newest snapshot entry that fits the
// database. etcd's package panics on some invalid records; readLog returns an error for them.
func readLog(p Place, db appliedState) (h logContent, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot read the write-ahead log in %s: it is invalid: %v", p.log(), r)
		}
	}()
	if size := sizeOf(p.log(), ".wal"); size > maxLog {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: it has %d bytes, over %d", p.log(), size, maxLog)
	}
	if h.from, err = newestSnapshot(p, db); err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	log, err := wal.OpenForRead(zap.NewNop(), p.log(), h.from)
	if err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	defer log.Close() //nolint:errcheck // it is only read
	metadata, state, entries, err := log.ReadAll()
	if err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	var who etcdserverpb.Metadata
	if err := proto.Unmarshal(metadata, &who); err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	h.member, h.cluster, h.state, h.entries = who.GetNodeID(), who.GetClusterID(), state, entries
	if h.member == 0 || h.cluster == 0 {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: it names no member or no cluster", p.log())
	}
	return h, nil
}

// appliedState describes how much of its member's log a database contains.
type appliedState struct {
	index uint64 // the consistent index
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

// newestSnapshot returns the newest valid snapshot entry of the log that is not above the consistent index of the
// database, as etcd chooses it; an empty one if there is none. An entry above it counts if the directory has the
// database that the leader sent with it: etcd replaces the older one when it starts.
func newestSnapshot(p Place, db appliedState) (*walpb.Snapshot, error) {
	named, err := wal.ValidSnapshotEntries(zap.NewNop(), p.log())
	if err != nil {
		return nil, err
	}
	var newest *walpb.Snapshot
	for _, s := range slices.Backward(named) {
		if s.GetIndex() > db.index && sizeOf(p.snap(), fmt.Sprintf("%016x.snap.db", s.GetIndex())) == 0 {
			continue
		}
		if !db.files || sizeOf(p.snap(), fmt.Sprintf("%016x-%016x.snap", s.GetTerm(), s.GetIndex())) > 0 {
			return s, nil
		}
		if newest == nil {
			newest = s
		}
	}
	if newest == nil {
		newest = &walpb.Snapshot{Index: new(uint64), Term: new(uint64)}
	}
	return newest, nil
}

// writeLog writes a log into a new directory.
func writeLog(dir string, h logContent) (err error) {
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &h.member, ClusterID: &h.cluster})
	if err != nil {
		return err
	}
	log, err := wal.Create(zap.NewNop(), dir, metadata)
	if err != nil {
		return fmt.Errorf("cannot rewrite the WAL: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if h.from.GetIndex() > 0 {
		if err := log.SaveSnapshot(h.from); err != nil {
			return fmt.Errorf("cannot rewrite the WAL: %w", err)
		}
	}
	if err := log.Save(h.state, h.entries); err != nil {
		return fmt.Errorf("cannot rewrite the WAL: %w", err)
	}
	return log.Sync()
}

// withDatabase opens a database that no etcd has open, and closes it again.
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

// sizeOf returns the total size of a directory's files with that extension; an empty extension matches all.
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

// exists reports whether there may be a file at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
