// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/database"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// newestSnapshot is how the newest snapshot in the store is named.
const newestSnapshot = "newest"

// findSnapshot tells what a snapshot is that a cluster is to go on with: one in the store of this host, or a file here.
func (a *app) findSnapshot(ctx context.Context, name string) (*recovery.Snapshot, error) {
	const what = "plan the recovery"
	if strings.ContainsRune(name, filepath.Separator) {
		if dir := hidden(name); dir != "" && sandboxed() {
			return nil, usage("put it into a directory such as /srv that etcd's user may enter, chown etcd: FILE, and "+
				"name it there", "cannot %s: %s lies below %s, which quorumd's service does not see", what, name, dir)
		}
		s, err := fileSnapshot(ctx, name)
		if err != nil {
			return nil, usage("name a file that etcdctl snapshot save has written", "cannot %s: %s: %v", what, name,
				err)
		}
		return s, nil
	}
	started, err := a.client().StartSnapshot(ctx, control.SnapshotRequest{Do: control.SnapshotList})
	if err != nil {
		return nil, cannot(what, err)
	}
	job, err := a.followSnapshot(ctx, started)
	switch {
	case err != nil:
		return nil, err
	case job.Error != "":
		return nil, &failure{
			code: exitFault, message: cannotSo(what, job.Error), hint: "journalctl -u quorumd shows more",
		}
	}
	for _, s := range job.Snapshots {
		if name == s.Name || name == newestSnapshot {
			return storedSnapshot(s)
		}
	}
	return nil, usage("quorumctl snapshot list; for a file write a / into its path",
		"cannot %s: there is no snapshot %q in the store", what, name)
}

// hidden gives the directory above a file that the sandbox of quorumd's services hides from them, or nothing: they
// have ProtectHome= and PrivateTmp=.
func hidden(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, dir := range []string{"/root", "/home", "/run/user", "/tmp", "/var/tmp"} {
		if strings.HasPrefix(path, dir+"/") {
			return dir
		}
	}
	return ""
}

// sandboxed tells whether quorumd runs here as its package has it: an errand on etcd's files is a service of its own.
func sandboxed() bool {
	_, err := os.Stat("/run/quorumd-errand.sock")
	return err == nil
}

func storedSnapshot(s control.Snapshot) (*recovery.Snapshot, error) {
	id, err := strconv.ParseUint(s.ClusterID, 16, 64)
	if err != nil {
		return nil, cannot("plan the recovery", fmt.Errorf("%.30q is no ID of a cluster", s.ClusterID))
	}
	return &recovery.Snapshot{
		Name: s.Name, Taken: s.TakenAt, Cluster: record.MemberID(id), Contents: database.Contents{
			Revision: s.Revision, CompactRevision: s.CompactRevision, Hash: s.Hash, Keys: s.Keys,
		}, Size: s.Size, SHA256: s.StoredSHA256, Member: randomID(),
	}, nil
}

// fileSnapshot reads a file to its end. It is read again, and held against this, by who goes on with it.
func fileSnapshot(ctx context.Context, name string) (*recovery.Snapshot, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no file"))
	}
	sum, nobody := sha256.New(), func(int64) {}
	size, err := database.Receive(ctx, io.Discard, io.TeeReader(file, sum), nobody)
	if err != nil {
		return nil, err
	}
	contents, err := database.Inspect(ctx, file, nobody)
	return &recovery.Snapshot{
		File: path, Contents: contents, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), Member: randomID(),
	}, err
}

// randomID gives the ID of a new member or cluster, which is not 0.
func randomID() record.MemberID {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return record.MemberID(binary.BigEndian.Uint64(random[:]) | 1)
}
