// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package defrag compacts the database of a stopped etcd into a new file, and replaces the original with that file. It
// promises:
//
//   - At every instant, even after a power loss, the file "db" is a complete database with the same contents. The
//     original is only read, and is kept as "db.before-defrag" until a later call deletes it.
//   - The new file replaces the original only after it was synced, read again and compared with the original.
//   - If an etcd that was started meanwhile has the original open after the exchange, the exchange is undone, so that
//     no change of that etcd is lost.
//   - Only a child process that runs as etcd's user opens these files.
package defrag

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/etcddb"
)

const (
	database = "db"
	// OldName is the name of the original after the exchange. etcd ignores it, with a warning in its log.
	OldName = "db.before-defrag"
	// newName is the name of the new file before the exchange. When etcd starts, it deletes files whose names begin
	// with "db.tmp".
	newName = "db.tmp.quorumd-defrag"
	// txBytes limits a transaction, in bytes. Smaller transactions take longer, and a single transaction would need
	// memory for the whole database.
	txBytes = 64 << 20
	// spare is the free space to leave for etcd's log while the new file is written, in bytes.
	spare = 64 << 20
	// lockWait is how long to wait for the lock of the database, which a running etcd holds.
	lockWait = 5 * time.Second
	// openWait is how long to keep checking, after the exchange, whether an etcd has the original open. An etcd that
	// was about to open the original at the exchange has opened it by then.
	openWait = 200 * time.Millisecond
)

// Result describes a compaction.
type Result struct {
	Before  int64   `json:"before"` // size of the file in bytes
	After   int64   `json:"after"`
	InUse   int64   `json:"inUse"`   // size of the original's pages in use, in bytes
	Seconds float64 `json:"seconds"` // duration
}

// phase is a point in a compaction at which tests intervene.
type phase string

const (
	phaseBegun    phase = "begun"    // the original is open and locked
	phaseWritten  phase = "written"  // the new file is complete
	phaseVerified phase = "verified" // the new file is equal to the original
	phaseLinked   phase = "linked"   // the original also has the name OldName
	phaseReplaced phase = "replaced" // the new file is in place
)

// snapDir returns the directory of the database in a data directory.
func snapDir(dataDir string) string { return filepath.Join(dataDir, "member", "snap") }

// directory is the open and locked directory of a database.
type directory struct {
	path string
	file *os.File
}

// open opens the directory and locks it against another compaction.
func open(dataDir string) (directory, error) {
	d := directory{path: snapDir(dataDir)}
	var err error
	if d.file, err = os.OpenFile(d.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return d, err
	}
	if err := unix.Flock(int(d.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = d.file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another defragmentation of this database is still running")
		}
		return d, err
	}
	return d, nil
}

func (d directory) name(name string) string { return filepath.Join(d.path, name) }

// sync makes renames in the directory durable.
func (d directory) sync() error { return d.file.Sync() }

// remove removes a file if it exists. It follows no link.
func (d directory) remove(name string) error {
	if err := os.Remove(d.name(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Clean deletes the original that a compaction kept, and the new file that a killed compaction left behind. If an etcd
// has continued with the original, Clean moves it back instead.
func Clean(dataDir string) error {
	d, err := open(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.file.Close()
	return d.clean()
}

// clean removes the files of an earlier compaction. If that compaction was killed after the exchange, an etcd may have
// continued with the original. In that case, clean moves the original back.
func (d directory) clean() error {
	if err := d.remove(newName); err != nil {
		return err
	}
	used, err := d.continued()
	switch {
	case err != nil:
		return err
	case used:
		err = os.Rename(d.name(OldName), d.name(database))
	default:
		err = d.remove(OldName)
	}
	return errors.Join(err, d.sync())
}

// continued reports whether an etcd has continued with the original after the exchange: the etcd has the original open,
// or has written to it. If a process has "db" open for writing, continued returns false. It compares consistent
// indexes, not file times, because the clock may have been set back. The consistent index is how much of etcd's log the
// database contains; etcd stores it with each change.
func (d directory) continued() (bool, error) {
	file, err := os.OpenFile(d.name(OldName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	old, err := file.Stat()
	if err != nil || !old.Mode().IsRegular() {
		return false, err
	}
	now, err := os.Lstat(d.name(database))
	if err != nil || os.SameFile(old, now) { // the exchange did not happen
		return false, err
	}
	if serves, err := d.isOpenForWriting(database); serves || err != nil {
		return false, err
	}
	if open, err := isOpenForWriting(file); open || err != nil {
		return open, err
	}
	contains, err := d.index(database)
	if err != nil { // keep the original: "db" cannot be read
		return false, err
	}
	original, err := d.index(OldName)
	return err == nil && original > contains, nil
}

// index returns the consistent index of a database.
func (d directory) index(name string) (index uint64, err error) {
	o, err := d.openDB(name)
	if err != nil {
		return 0, fmt.Errorf("cannot open %s: %w", d.name(name), err)
	}
	defer o.close()
	err = o.db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket([]byte(etcddb.Meta)); meta != nil {
			index = etcddb.IndexOf(meta.Get([]byte(etcddb.ConsistentIndex)))
		}
		return nil
	})
	return index, err
}

// isOpenForWriting reports whether a process has the named file open for writing.
func (d directory) isOpenForWriting(name string) (bool, error) {
	file, err := os.OpenFile(d.name(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return isOpenForWriting(file)
}

// opened is a database opened read-only. bbolt holds a shared lock on the file, and an etcd that opens the file waits
// until bbolt releases it.
type opened struct {
	db    *bbolt.DB
	file  *os.File // the file that bbolt has open
	size  int64
	inUse int64 // bytes of the database's pages in use
}

func (o opened) close() { _ = o.db.Close() } // an error does not matter: the database was only read

// openSource opens the database. It returns an error if an etcd has the database open.
func (d directory) openSource() (opened, error) {
	o, err := d.openDB(database)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return o, errors.New("another process has locked the database: etcd is running")
	case err != nil:
		return o, fmt.Errorf("cannot open the database: %w", err)
	}
	busy, err := isOpenForWriting(o.file)
	if err == nil && busy {
		err = errors.New("another process has the database open: etcd is running")
	}
	if err != nil {
		o.close()
	}
	return o, err
}

// openDB opens a database of the directory, and checks its pages: a cycle among them would make bbolt exhaust the
// memory.
func (d directory) openDB(name string) (o opened, err error) {
	o.db, err = bbolt.Open(d.name(name), 0, &bbolt.Options{
		ReadOnly: true, Timeout: lockWait,
		OpenFile: func(path string, _ int, _ os.FileMode) (*os.File, error) {
			o.file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
			if err != nil {
				return nil, err
			}
			info, err := o.file.Stat()
			if err == nil && !info.Mode().IsRegular() {
				err = errors.New(path + " is not a regular file")
			}
			if err != nil {
				_ = o.file.Close()
				return nil, err
			}
			o.size = info.Size()
			return o.file, nil
		},
	})
	if err != nil {
		return o, err
	}
	if o.inUse, err = etcddb.InUse(o.file, o.size, o.db.Info().PageSize); err != nil {
		o.close()
		return o, fmt.Errorf("it is damaged: %w", err)
	}
	return o, nil
}

// isOpenForWriting reports whether a process has a file open for writing, as etcd does with its database. The kernel
// then refuses a lease on the file, whatever process, user or container has it open.
func isOpenForWriting(file *os.File) (bool, error) {
	_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if errors.Is(err, unix.EAGAIN) {
		return true, nil
	}
	if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	if err != nil {
		return false, fmt.Errorf("cannot find out whether etcd has the database open: %w", err)
	}
	return false, nil
}

// opensWithin reports whether a process has a file open for writing, now or at any time within the limit.
func opensWithin(file *os.File, limit time.Duration) (bool, error) {
	over := time.After(limit)
	tick := time.NewTicker(limit / 10)
	defer tick.Stop()
	for {
		busy, err := isOpenForWriting(file)
		if busy || err != nil {
			return busy, err
		}
		select {
		case <-over:
			return isOpenForWriting(file)
		case <-tick.C:
		}
	}
}

// is reports whether a name in the directory refers to the given file.
func (d directory) is(name string, file *os.File) (bool, error) {
	named, err := os.Lstat(d.name(name))
	if err != nil {
		return false, err
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(named, opened), err
}

// Command is the name of the hidden command that runs in the child. It is followed by the data directory and by a verb.
const Command = "defragment"

const (
	compactVerb = "compact"
	cleanVerb   = "clean"
)

// Allowed reports whether the arguments are those of a child for this data directory.
func Allowed(args []string, dataDir string) bool {
	return len(args) == 3 && args[0] == Command && args[1] == dataDir &&
		(args[2] == compactVerb || args[2] == cleanVerb)
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }
