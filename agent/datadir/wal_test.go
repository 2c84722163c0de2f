// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// writeWAL writes a log of member 0x1a of cluster 0x2b, with one entry of the given size, in bytes.
func writeWAL(t *testing.T, dir string, size int64) []string {
	t.Helper()
	who, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: new(uint64(0x1a)), ClusterID: new(uint64(0x2b))})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "member", "wal")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := wal.Create(zap.NewNop(), path, who)
	if err != nil {
		t.Fatal(err)
	}
	entry := &raftpb.Entry{Term: new(uint64(1)), Index: new(uint64(1)), Data: make([]byte, size)}
	state := &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(1))}
	if err := log.Save(state, []*raftpb.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(path, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestNewestLogFileNamesTheMemberAndCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if files := writeWAL(t, dir, wal.SegmentSizeBytes); len(files) != 2 {
		t.Fatalf("the log has the files %v, want two", files)
	}
	if got := Inspect(dir, ""); got.MemberID != 0x1a || got.ClusterID != 0x2b || got.Problem != "" {
		t.Fatalf("found %+v", got)
	}
}

func TestLogWithAFlippedBitNamesNoMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := writeWAL(t, dir, 10)[0]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.IndexByte(content, 0x1a)
	content[at] ^= 0x40
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Inspect(dir, ""); got.MemberID != 0 || !strings.Contains(got.Problem, "write-ahead log") {
		t.Fatalf("found %+v, want a problem", got)
	}
}
