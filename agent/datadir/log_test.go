// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// v2Request returns what etcd 3.5 writes when it publishes its cluster version: a request of the v2 API.
func v2Request() (data []byte) {
	data = protowire.AppendVarint(protowire.AppendTag(data, 1, protowire.VarintType), 7587862094871123219)
	for field, text := range map[protowire.Number]string{2: "PUT", 3: "/0/version", 4: "3.5.0"} {
		data = protowire.AppendString(protowire.AppendTag(data, field, protowire.BytesType), text)
	}
	return data
}

func v3Request(t *testing.T) []byte {
	t.Helper()
	data, err := proto.Marshal(&etcdserverpb.InternalRaftRequest{
		Put: &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte("v")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// logOf writes a log with entries of this content, from index 1 on, and snapshots at these indexes. A snapshot has a
// file unless its index is in missing.
func logOf(t *testing.T, entries [][]byte, snapshots, missing []uint64) string {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	log, err := wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), nil)
	must(err)
	var all []*raftpb.Entry
	for i, data := range entries {
		all = append(all, &raftpb.Entry{Term: new(uint64(2)), Index: new(uint64(i) + 1), Data: data})
	}
	must(log.Save(&raftpb.HardState{Term: new(uint64(2)), Commit: new(uint64(len(entries)))}, all))
	for _, at := range snapshots {
		must(log.SaveSnapshot(&walpb.Snapshot{Index: new(at), Term: new(uint64(2)), ConfState: &raftpb.ConfState{}}))
		must(os.WriteFile(snapshotFile(dir, at), []byte("x"), 0o600))
	}
	for _, at := range missing {
		must(os.Remove(snapshotFile(dir, at)))
	}
	must(log.Close())
	return dir
}

func snapshotFile(dir string, index uint64) string {
	return filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 2, index))
}

func TestAnEntryOfEtcd35IsFoundUnlessASnapshotIsNewer(t *testing.T) {
	t.Parallel()
	old, recent := v2Request(), v3Request(t)
	for name, c := range map[string]struct {
		entries            [][]byte
		snapshots, missing []uint64
		want               Log
	}{
		"no entry of 3.5":          {[][]byte{nil, recent, recent}, nil, nil, Log{}},
		"no snapshot":              {[][]byte{recent, old, recent}, nil, nil, Log{Old: 2}},
		"a newer snapshot":         {[][]byte{recent, old, recent}, []uint64{3}, nil, Log{Snapshot: 3}},
		"a snapshot of that entry": {[][]byte{recent, old, recent}, []uint64{2}, nil, Log{Snapshot: 2}},
		"an older snapshot":        {[][]byte{recent, old, old}, []uint64{2}, nil, Log{Snapshot: 2, Old: 3}},
		"a snapshot without a file": {
			[][]byte{recent, old, recent}, []uint64{1, 3}, []uint64{3}, Log{Snapshot: 1, Old: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := readLog(logOf(t, c.entries, c.snapshots, c.missing), ""); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestALogThatIsInvalidOrMissingIsAnError(t *testing.T) {
	t.Parallel()
	dir := logOf(t, [][]byte{v3Request(t), v3Request(t)}, nil, nil)
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() string{
		"no log": t.TempDir,
		"a flipped byte": func() string {
			damaged := append([]byte(nil), data...)
			damaged[100] ^= 0xff
			if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		if got, err := readLog(damage(), ""); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestALogWithTooManyFilesIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeWAL(t, dir, 10)
	last := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	data, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxWALFiles {
		name := fmt.Sprintf("%016x-%016x.wal", i+1, i+1)
		if err := os.WriteFile(filepath.Join(filepath.Dir(last), name), data[:64], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readLog(dir, ""); err == nil {
		t.Error("it was read")
	}
}

func TestOnlyFilesSinceTheNewestSnapshotAreRead(t *testing.T) {
	t.Parallel()
	dir := logOf(t, [][]byte{v2Request(), v3Request(t), v3Request(t)}, []uint64{3}, nil)
	wals := filepath.Join(dir, "member", "wal")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first := filepath.Join(wals, "0000000000000000-0000000000000000.wal")
	must(os.Rename(first, filepath.Join(wals, "0000000000000001-0000000000000004.wal")))
	must(os.WriteFile(first, []byte("damaged"), 0o600))
	if got, err := readLog(t.TempDir(), wals); err == nil { // without the snapshot's file
		t.Errorf("a damaged file was read: %+v", got)
	}
	if got, err := readLog(dir, wals); err != nil || got != (Log{Snapshot: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAPipeInPlaceOfALogFileIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readLog(dir, dir); err == nil {
		t.Error("it was read")
	}
}
