// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// LogCommand is the name of the hidden command that reads the log in a child.
const LogCommand = "inspect-log"

// maxWALFiles and maxWALFile limit how many files of a write-ahead log are read, and the size of each, in bytes. etcd
// begins a new file after 64 MB.
const (
	maxWALFiles = 64
	maxWALFile  = 1 << 30
)

// Log describes the entries of a member's write-ahead log that etcd applies again when it starts: those after the
// newest snapshot of the member.
type Log struct {
	Snapshot uint64 `json:"snapshot,omitempty"` // the index of the newest snapshot; 0 if there is none
	// Old is the index of the newest of these entries that etcd 3.7 cannot read, because etcd 3.5 wrote it in the
	// format of the v2 API; 0 if there is none. etcd 3.5 writes such an entry at each start and when the cluster
	// version rises.
	Old uint64 `json:"old,omitempty"`
}

// Log reads the write-ahead log, in a child. etcd may be running.
func (d Dir) Log(ctx context.Context) (l Log, err error) {
	if err := d.run(ctx, LogCommand, &l); err != nil {
		return Log{}, fmt.Errorf("cannot read etcd's write-ahead log: %w", err)
	}
	return l, nil
}

// LogMain runs in the child that reads the log. Its arguments are the data and the WAL directory.
func LogMain(args []string, stdout io.Writer) error {
	return runMain(args, stdout, func() (Log, error) { return readLog(args[0], args[1]) })
}

// readLog reads the files of the log, the newest first, until the remaining ones contain only entries that the newest
// snapshot covers. It counts a snapshot only if the snapshot's file exists, as etcd does. The package of etcd panics on
// some invalid records; readLog returns an error for them.
func readLog(dataDir, walDir string) (l Log, err error) {
	member := filepath.Join(dataDir, "member")
	if walDir == "" {
		walDir = filepath.Join(member, "wal")
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is invalid: %v", walDir, r)
		}
	}()
	files, err := filepath.Glob(filepath.Join(walDir, "*.wal")) // in order: names begin with a sequence number
	switch {
	case err != nil:
		return Log{}, err
	case len(files) == 0:
		return Log{}, fmt.Errorf("%s has no write-ahead log", walDir)
	}
	newest := uint64(0)
	for i, name := range slices.Backward(files) {
		if len(files)-i > maxWALFiles {
			return Log{}, fmt.Errorf("%s has more than %d files since the newest snapshot", walDir, maxWALFiles)
		}
		old, snapshot, err := readWALFile(name, filepath.Join(member, "snap"), i == len(files)-1)
		if err != nil {
			return Log{}, fmt.Errorf("cannot read %s: %w", name, err)
		}
		newest, l.Snapshot = max(newest, old), max(l.Snapshot, snapshot)
		if l.Snapshot > 0 && firstIndex(name) <= l.Snapshot+1 {
			break
		}
	}
	if newest > l.Snapshot {
		l.Old = newest
	}
	return l, nil
}

// firstIndex returns the index of the first entry in a file of a log, according to the file's name.
func firstIndex(name string) uint64 {
	_, text, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".wal"), "-")
	index, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return math.MaxUint64
	}
	return index
}

// readWALFile returns the index of the newest entry in a file that etcd 3.7 cannot read, and of the newest snapshot
// that the file names and snapDir contains; 0 if there is none. last means that etcd may be writing to the file.
func readWALFile(name, snapDir string, last bool) (old, snapshot uint64, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would block without O_NONBLOCK
	if err != nil {
		return 0, 0, err
	}
	defer file.Close() // an error does not matter: the file was only read
	switch info, err := file.Stat(); {
	case err != nil:
		return 0, 0, err
	case !info.Mode().IsRegular() || info.Size() > maxWALFile:
		return 0, 0, fmt.Errorf("it is not a file of at most %d bytes", maxWALFile)
	}
	records := wal.NewDecoder(walFile{file})
	for {
		var record walpb.Record
		switch err := records.Decode(&record); {
		case errors.Is(err, io.EOF), last && errors.Is(err, io.ErrUnexpectedEOF):
			return old, snapshot, nil
		case err != nil:
			return 0, 0, err
		}
		switch record.GetType() {
		case wal.CrcType:
			records.UpdateCRC(record.GetCrc())
		case wal.EntryType:
			index, unreadable, err := isOld(record.GetData())
			if err != nil {
				return 0, 0, err
			}
			if unreadable {
				old = max(old, index)
			}
		case wal.SnapshotType:
			var s walpb.Snapshot
			if err := proto.Unmarshal(record.GetData(), &s); err != nil {
				return 0, 0, err
			}
			file := filepath.Join(snapDir, fmt.Sprintf("%016x-%016x.snap", s.GetTerm(), s.GetIndex()))
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				snapshot = max(snapshot, s.GetIndex())
			}
		}
	}
}

// isOld returns the index of an entry, and whether etcd 3.7 cannot read it.
func isOld(data []byte) (index uint64, old bool, err error) {
	var entry raftpb.Entry
	if err := proto.Unmarshal(data, &entry); err != nil {
		return 0, false, err
	}
	if entry.GetType() != raftpb.EntryNormal || len(entry.GetData()) == 0 {
		return entry.GetIndex(), false, nil
	}
	return entry.GetIndex(), proto.Unmarshal(entry.GetData(), &etcdserverpb.InternalRaftRequest{}) != nil, nil
}

// walFile is a file of a log, as etcd's decoder reads it.
type walFile struct{ *os.File }

func (f walFile) FileInfo() (fs.FileInfo, error) { return f.Stat() }
