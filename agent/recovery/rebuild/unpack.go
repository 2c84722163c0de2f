// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/recovery"
)

// unpack makes the copy from a snapshot: its database without the original members, and a new log with the one entry
// that adds this host's member, like the log of a new etcd. The snapshot must match the plan.
func unpack(ctx context.Context, p, c Place, w recovery.Work, from io.Reader, progress *child.Progress) error {
	cannot := func(err error) error { return fmt.Errorf("cannot use the snapshot %s: %w", w.Snapshot, err) }
	if err := prepare(p, c, 2*w.Snapshot.Size, 2*logFile); err != nil { // etcd may rewrite each page
		return cannot(err)
	}
	if w.Snapshot.File != "" {
		file, err := openSnapshot(w.Snapshot.File)
		if err != nil {
			return cannot(err)
		}
		defer file.Close() // the file is only read
		from = file
	}
	if err := receive(ctx, c.database(), w.Snapshot, from, progress); err != nil {
		return cannot(err)
	}
	if err := withDatabase(c.database(), true, etcddb.Forget); err != nil {
		return cannot(err)
	}
	h, err := newMemberLog(w)
	if err != nil {
		return cannot(err)
	}
	return writeLog(c.log(), h)
}

// openSnapshot opens a file, which must be regular, because a FIFO would block the child.
func openSnapshot(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file"), file.Close())
	}
	return file, nil
}

// receive writes the database to path and compares it with the plan.
func receive(ctx context.Context, path string, s *recovery.Snapshot, from io.Reader, progress *child.Progress,
) (err error) {
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownerRW)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	from = io.TeeReader(io.LimitReader(from, s.Size+1), sum)
	progress.Expect(3 * s.Size) // the inspection reads the database twice more
	size, err := etcddb.Receive(ctx, out, from, progress.Add)
	if err != nil {
		return err
	}
	// for a snapshot from a store, SHA256 is the hash of the stored object
	if s.File != "" && hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
		return fmt.Errorf("%w: its SHA-256 differs from the plan's", etcddb.ErrDamaged)
	}
	found, err := etcddb.Inspect(ctx, out, progress.Add)
	if err != nil {
		return err
	}
	if size != s.Size || found != s.Contents {
		return fmt.Errorf("%w: it has %d bytes and contains %+v, but the plan has %d bytes and %+v", etcddb.ErrDamaged,
			size, found, s.Size, s.Contents)
	}
	return errors.Join(out.Truncate(size-etcddb.SumBytes), out.Sync())
}

// newMemberLog returns the log of a new member: one entry, which adds it.
func newMemberLog(w recovery.Work) (logContent, error) {
	state, added, err := etcddb.FirstLog(uint64(w.Member), w.Name, w.PeerURL)
	// setIdentity sets the ID of the new cluster later, as it does for a copy of a survivor's data.
	return logContent{
		member: uint64(w.Member), cluster: max(uint64(w.Old), 1), state: state,
		from: &walpb.Snapshot{Index: new(uint64), Term: new(uint64)}, entries: []*raftpb.Entry{added},
	}, err
}
