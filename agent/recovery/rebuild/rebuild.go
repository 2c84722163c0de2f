// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/recovery"
)

// copyOf returns where the copy is while it is made.
func (p Place) copyOf(w recovery.Work) Place {
	c := Place{DataDir: filepath.Join(p.DataDir, "quorumd-recover-"+w.Plan)}
	if p.apart() {
		c.WALDir = p.WALDir + ".quorumd-recover-" + w.Plan
	}
	return c
}

const (
	doneName = "made.json" // in the copy once it is complete
	lockName = "lock"      // held by the process that makes the copy, and by the etcd that it starts
	ownerRW  = 0o600
	ownerAll = 0o700
)

// bump is how far the revision is raised: further than the cluster can have written since a watcher's last event.
const bump = 1_000_000_000

// Rebuild makes the copy with that etcd, unless it is complete already. It takes some seconds and the time to read and
// write the database. The member's own etcd must not run. A snapshot from a store is read from the reader. The progress
// may be nil.
func Rebuild(ctx context.Context, p Place, w recovery.Work, etcd string, from io.Reader, how *Progress) (recovery.Made,
	error,
) {
	c := p.copyOf(w)
	if made, err := readMade(c); err == nil {
		return made, stillSo(p, c, w)
	}
	if err := os.MkdirAll(c.DataDir, ownerAll); err != nil {
		return recovery.Made{}, fmt.Errorf("cannot make a copy: %w", err)
	}
	only, err := lock(filepath.Join(c.DataDir, lockName), os.O_CREATE, "another copy is being made")
	if err != nil {
		return recovery.Made{}, fmt.Errorf("cannot make a copy in %s: %w", c.DataDir, err)
	}
	defer only.Close() // releases the lock
	own, err := lock(p.database(), 0, "a running etcd uses it; stop it first")
	if err != nil && (w.Snapshot == nil || !errors.Is(err, fs.ErrNotExist)) {
		return recovery.Made{}, fmt.Errorf("cannot copy %s: %w", p.database(), err)
	}
	defer own.Close() // releases the lock; does nothing for nil
	if w.Snapshot != nil {
		err = unpack(ctx, p, c, w, from, how)
	} else {
		err = fill(p, c, w, how)
	}
	if err != nil {
		return recovery.Made{}, err
	}
	if err := force(ctx, c, w, etcd, only); err != nil {
		return recovery.Made{}, err
	}
	made, err := renew(c, w)
	if err != nil {
		return recovery.Made{}, err
	}
	return made, writeMade(c, made)
}

// stillSo returns an error if the member has written to its log since its copy was made, as can happen when a plan was
// given up and is applied again. Once the swap has begun, one of the two is in another place.
func stillSo(p, c Place, w recovery.Work) error {
	if w.Snapshot != nil || !exists(p.member()) || !exists(c.member()) {
		return nil
	}
	_, err := planned(p, w)
	return err
}

// planned reads the log and checks that it is the one in the plan.
func planned(p Place, w recovery.Work) (history, error) {
	h, err := readLog(p, unread()) // which snapshot entry it begins with makes no difference to its end
	if err != nil {
		return h, err
	}
	term, index := h.last()
	if h.cluster != uint64(w.Old) || h.member != uint64(w.Member) || term != w.Term || index != w.Index {
		return h, fmt.Errorf("cannot use %s: it is member %x of cluster %x with its last entry %d of term %d, and "+
			"the plan was made for %s of %s with %d of term %d", p.DataDir, h.member, h.cluster, index, term,
			w.Member, w.Old, w.Index, w.Term)
	}
	return h, nil
}

// fill copies the database and the snapshots, and writes a new log with its commit raised to its last entry. It first
// removes what an earlier attempt left of the copy.
func fill(p, c Place, w recovery.Work, how *Progress) error {
	if _, err := planned(p, w); err != nil {
		return err
	}
	if err := clean(p, c, sizeOf(p.snap(), ""), 2*sizeOf(p.log(), ".wal")+2*logFile); err != nil {
		return err
	}
	how.remains(sizeOf(p.snap(), ""))
	entries, err := os.ReadDir(p.snap())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "tmp") || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if err := copyFile(filepath.Join(p.snap(), e.Name()), filepath.Join(c.snap(), e.Name()), how); err != nil {
			return fmt.Errorf("cannot copy %s: %w", p.DataDir, err)
		}
	}
	db, err := appliedIn(c.database())
	if err != nil {
		return err
	}
	h, err := readLog(p, db)
	if err != nil {
		return err
	}
	_, index := h.last()
	h.state.Commit = &index
	return writeLog(c.log(), h)
}

// clean removes what an earlier attempt left of the copy, and creates its directories if there is enough free space.
func clean(p, c Place, database, log int64) error {
	err := errors.Join(os.RemoveAll(c.member()), os.RemoveAll(c.log()), os.RemoveAll(c.log()+forcedEnding))
	if err != nil {
		return err
	}
	if err := room(p, c, database, log, freeIn); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(c.snap(), ownerAll), os.MkdirAll(filepath.Dir(c.log()), ownerAll))
}

// room returns an error if there is too little free space for the copy.
func room(p, c Place, database, log int64, free func(dir string) int64) error {
	need := map[string]int64{c.DataDir: database + log}
	if p.apart() { // perhaps on a file system of its own
		need = map[string]int64{c.DataDir: database, filepath.Dir(c.log()): log}
	}
	for dir, need := range need {
		if free := free(dir); free < need {
			return fmt.Errorf("cannot make a copy for %s: %d bytes are free in %s, %d are needed; free space and the "+
				"recovery continues", p.DataDir, free, dir, need)
		}
	}
	return nil
}

const (
	logFile      = 64 << 20 // the size of a new file of the log
	forcedEnding = ".forced"
)

// renew writes another cluster ID into the copy and raises its revision far above the old one. All before that is
// compacted: a watcher that resumes gets an error, and never sees history rewound.
func renew(c Place, w recovery.Work) (recovery.Made, error) {
	made := recovery.Made{Plan: w.Plan, Cluster: w.Cluster, Member: w.Member}
	db, err := appliedIn(c.database())
	if err != nil {
		return made, err
	}
	h, err := readLog(c, db)
	if err != nil {
		return made, err
	}
	if w.Snapshot != nil && h.from.GetIndex() == 0 {
		return made, errors.New("cannot use the copy: etcd has taken no snapshot of it, and members that join it " +
			"would not get its keys")
	}
	h.cluster = uint64(w.Cluster)
	if err := os.Rename(c.log(), c.log()+forcedEnding); err != nil {
		return made, err
	}
	if err := writeLog(c.log(), h); err != nil {
		return made, err
	}
	return made, withDatabase(c.database(), true, func(tx *bolt.Tx) error {
		members, err := membersOf(tx)
		if err != nil {
			return err
		}
		if len(members) != 1 || members[0].ID != w.Member {
			return fmt.Errorf("cannot use the copy: its etcd was forced and still lists %d members; etcd 3.5.25 and "+
				"3.6.6 are the first that force learners out: install a newer etcd", len(members))
		}
		made.Before = revisionOf(tx)
		made.After = made.Before + bump
		revision := etcddb.RevisionKey(made.After)
		return errors.Join(tx.Bucket([]byte(etcddb.Keys)).Put(revision, nil),
			tx.Bucket([]byte(etcddb.Meta)).Put([]byte(etcddb.ScheduledCompaction), revision))
	})
}

// lock opens a file and takes the same lock that etcd takes on its database.
func lock(path string, flag int, taken string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flag, ownerRW)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New(taken)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

const copiedAtOnce = 16 << 20

func copyFile(from, to string, how *Progress) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // it was only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerRW)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for { // in parts, so that the kernel's copy reports progress
		n, err := io.CopyN(out, in, copiedAtOnce)
		how.did(n)
		if errors.Is(err, io.EOF) {
			return out.Sync()
		}
		if err != nil {
			return err
		}
	}
}

func freeIn(dir string) int64 {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0
	}
	return int64(stat.Bavail) * stat.Bsize //nolint:gosec // no file system is that large
}

// readMade returns the description of a copy if it is complete.
func readMade(c Place) (made recovery.Made, err error) {
	text, err := os.ReadFile(filepath.Join(c.DataDir, doneName))
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	return made, err
}

// writeMade marks a copy as complete, once all of it is on the disk.
func writeMade(c Place, made recovery.Made) error {
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	path := filepath.Join(c.DataDir, doneName)
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, ownerRW)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	for _, dir := range []string{c.log(), c.snap(), c.member()} {
		if err := datadir.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return datadir.SyncDir(c.DataDir)
}
