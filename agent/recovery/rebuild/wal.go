// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

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
		return h, fmt.Errorf("cannot read the write-ahead log in %s: it has %d bytes; the maximum is %d",
			p.log(), size, maxLog)
	}
	if h.from, err = newestSnapshot(p, db); err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	log, err := wal.OpenForRead(zap.NewNop(), p.log(), h.from)
	if err != nil {
		return h, fmt.Errorf("cannot read the write-ahead log in %s: %w", p.log(), err)
	}
	defer log.Close() //nolint:errcheck // the log is only read
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
		return h, fmt.Errorf("cannot read the write-ahead log in %s: it contains no member ID or no cluster ID",
			p.log())
	}
	return h, nil
}

// newestSnapshot returns the newest valid snapshot entry of the log that is not above the consistent index of the
// database, as etcd chooses it; an empty entry if there is none. If etcd needs .snap files, the newest entry that has
// one takes precedence. A higher entry counts if the directory also has the database that the leader sent with it,
// because etcd uses that database when it starts.
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
