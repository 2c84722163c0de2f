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

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/disk/atomicfile"
)

// copyPlace returns where the copy is while it is made.
func (p Place) copyPlace(w recovery.Work) Place {
	c := Place{DataDir: filepath.Join(p.DataDir, "quorumd-recover-"+w.Plan)}
	if p.separateLog() {
		c.WALDir = p.WALDir + ".quorumd-recover-" + w.Plan
	}
	return c
}

const (
	resultName = "made.json" // exists in the copy once the copy is complete
	lockName   = "lock"      // held by the process that makes the copy, and by the etcd that it starts
	ownerRW    = 0o600
	ownerAll   = 0o700
)

// bump is added to the revision. It is more than the cluster can have written since a watcher's last event.
const bump = 1_000_000_000

// Rebuild makes the copy with the given etcd binary, unless it is complete already. It takes as long as reading and
// writing the database, plus a few seconds. The member's own etcd must not run. from is the snapshot if it comes from a
// store. progress may be nil.
func Rebuild(ctx context.Context, p Place, w recovery.Work, etcd string, from io.Reader, progress *child.Progress,
) (recovery.Result, error) {
	c := p.copyPlace(w)
	if result, err := readResult(c); err == nil {
		return result, checkUnchanged(p, c, w)
	}
	if err := os.MkdirAll(c.DataDir, ownerAll); err != nil {
		return recovery.Result{}, fmt.Errorf("cannot make a copy: %w", err)
	}
	copyLock, err := lock(filepath.Join(c.DataDir, lockName), os.O_CREATE, "another copy is being made")
	if err != nil {
		return recovery.Result{}, fmt.Errorf("cannot make a copy in %s: %w", c.DataDir, err)
	}
	defer copyLock.Close() // releases the lock
	databaseLock, err := lock(p.database(), 0, "a running etcd uses it; stop it first")
	if err != nil && (w.Snapshot == nil || !errors.Is(err, fs.ErrNotExist)) {
		return recovery.Result{}, fmt.Errorf("cannot copy %s: %w", p.database(), err)
	}
	defer databaseLock.Close() // releases the lock; does nothing for nil
	if w.Snapshot != nil {
		err = unpack(ctx, p, c, w, from, progress)
	} else {
		err = copyData(p, c, w, progress)
	}
	if err != nil {
		return recovery.Result{}, err
	}
	if err := force(ctx, c, w, etcd, copyLock); err != nil {
		return recovery.Result{}, err
	}
	result, err := setIdentity(c, w)
	if err != nil {
		return recovery.Result{}, err
	}
	return result, writeResult(c, result)
}

// checkUnchanged returns an error if the member has written to its log since its copy was made, as can happen when a
// plan was abandoned and is applied again. It skips the check for a copy of a snapshot, and once the swap has moved the
// old data aside or the copy into place.
func checkUnchanged(p, c Place, w recovery.Work) error {
	if w.Snapshot != nil || !exists(p.member()) || !exists(c.member()) {
		return nil
	}
	_, err := readPlannedLog(p, w)
	return err
}

// readPlannedLog reads the log and checks that it is the one in the plan.
func readPlannedLog(p Place, w recovery.Work) (logContent, error) {
	// only the end of the log matters here, and it does not depend on the snapshot entry
	h, err := readLog(p, unreadable())
	if err != nil {
		return h, err
	}
	term, index := h.last()
	if h.cluster != uint64(w.Old) || h.member != uint64(w.Member) || term != w.Term || index != w.Index {
		return h, fmt.Errorf("cannot use %s: it contains member %x of cluster %x up to entry %d of term %d, but "+
			"the plan was made for member %s of cluster %s up to entry %d of term %d", p.DataDir, h.member, h.cluster,
			index, term, w.Member, w.Old, w.Index, w.Term)
	}
	return h, nil
}

// copyData copies the database and the snapshots, and writes a new log whose commit index is the index of its last
// entry. Before it copies, it removes the leftovers of an earlier attempt.
func copyData(p, c Place, w recovery.Work, progress *child.Progress) error {
	if _, err := readPlannedLog(p, w); err != nil {
		return err
	}
	if err := prepare(p, c, sizeOf(p.snap(), ""), 2*sizeOf(p.log(), ".wal")+2*logFile); err != nil {
		return err
	}
	progress.Expect(sizeOf(p.snap(), ""))
	entries, err := os.ReadDir(p.snap())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "tmp") || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if err := copyFile(filepath.Join(p.snap(), e.Name()), filepath.Join(c.snap(), e.Name()), progress); err != nil {
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

// prepare removes the leftovers of an earlier attempt, and creates the copy's directories if there is enough space.
func prepare(p, c Place, database, log int64) error {
	err := errors.Join(os.RemoveAll(c.member()), os.RemoveAll(c.log()), os.RemoveAll(c.log()+forcedSuffix))
	if err != nil {
		return err
	}
	if err := checkSpace(p, c, database, log, freeIn); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(c.snap(), ownerAll), os.MkdirAll(filepath.Dir(c.log()), ownerAll))
}

// checkSpace returns an error if there is too little free space for the copy.
func checkSpace(p, c Place, database, log int64, free func(dir string) int64) error {
	need := map[string]int64{c.DataDir: database + log}
	if p.separateLog() { // the log may be on a different file system
		need = map[string]int64{c.DataDir: database, filepath.Dir(c.log()): log}
	}
	for dir, need := range need {
		if free := free(dir); free < need {
			return fmt.Errorf("cannot make a copy for %s: %d bytes are free in %s, but %d are needed; free space, "+
				"and the recovery continues", p.DataDir, free, dir, need)
		}
	}
	return nil
}

const (
	logFile      = 64 << 20 // the size of a new file of the log
	forcedSuffix = ".forced"
)

// setIdentity writes a new cluster ID into the copy and raises its revision far above the old one. All older revisions
// are compacted, so a watcher that resumes gets an error instead of rewound history.
func setIdentity(c Place, w recovery.Work) (recovery.Result, error) {
	result := recovery.Result{Plan: w.Plan, Cluster: w.Cluster, Member: w.Member}
	db, err := appliedIn(c.database())
	if err != nil {
		return result, err
	}
	h, err := readLog(c, db)
	if err != nil {
		return result, err
	}
	if w.Snapshot != nil && h.from.GetIndex() == 0 {
		return result, errors.New("cannot use the copy: etcd has taken no snapshot of it, so members that join it " +
			"would not get its keys")
	}
	h.cluster = uint64(w.Cluster)
	if err := os.Rename(c.log(), c.log()+forcedSuffix); err != nil {
		return result, err
	}
	if err := writeLog(c.log(), h); err != nil {
		return result, err
	}
	return result, withDatabase(c.database(), true, func(tx *bolt.Tx) error {
		members, err := membersOf(tx)
		if err != nil {
			return err
		}
		if len(members) != 1 || members[0].ID != w.Member {
			return fmt.Errorf("cannot use the copy: it still lists %d members after --force-new-cluster, which "+
				"removes learners only in etcd 3.5.25, 3.6.6 and later: install a newer etcd", len(members))
		}
		result.Before = revisionOf(tx)
		result.After = result.Before + bump
		revision := etcddb.RevisionKey(result.After)
		return errors.Join(tx.Bucket([]byte(etcddb.Keys)).Put(revision, nil),
			tx.Bucket([]byte(etcddb.Meta)).Put([]byte(etcddb.ScheduledCompaction), revision))
	})
}

// lock opens a file and locks it, as etcd locks its database. takenText is the text of the error if another process
// holds the lock.
func lock(path string, flag int, takenText string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flag, ownerRW)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New(takenText)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

const copyChunk = 16 << 20

func copyFile(from, to string, progress *child.Progress) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // the file is only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerRW)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for { // copy in parts to report progress between them
		n, err := io.CopyN(out, in, copyChunk)
		progress.Add(n)
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

// readResult returns the description of a copy if it is complete.
func readResult(c Place) (result recovery.Result, err error) {
	text, err := os.ReadFile(filepath.Join(c.DataDir, resultName))
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}

// writeResult marks a copy as complete, once all of it is on the disk.
func writeResult(c Place, result recovery.Result) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	for _, dir := range []string{c.log(), c.snap(), c.member()} {
		if err := atomicfile.SyncDir(dir); err != nil {
			return err
		}
	}
	return atomicfile.Write(filepath.Join(c.DataDir, resultName), text, ownerRW, true)
}
