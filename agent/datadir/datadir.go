// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package datadir looks at an etcd data directory and moves it aside. It promises:
//
//   - Nothing is deleted and nothing is overwritten: a directory is renamed to a name that did
//     not exist.
//   - The agent itself never touches the disk that it measures: each look and each move runs in a
//     short-lived child process with a deadline, so that a sick disk hangs the child only.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Contents says what lies in a data directory.
type Contents struct {
	Empty     bool   `json:"empty"`               // absent, or nothing of etcd in it
	ClusterID uint64 `json:"clusterID,omitempty"` // of the member whose data it is
	MemberID  uint64 `json:"memberID,omitempty"`
	Problem   string `json:"problem,omitempty"` // why it cannot be understood
	// Mount is where the file systems of both directories are mounted, or would be once they are made; empty when that
	// cannot be told.
	Mount string `json:"mount,omitempty"`
	// bytes that its file system has left for etcd; -1 when that cannot be told
	Free int64 `json:"free"`
}

// Inspect reads a data directory, and the WAL directory if it is another one. It changes nothing.
// Contents that are neither empty nor a problem and name no member are what an etcd left that ended
// before it was one: it makes its database before its log.
func Inspect(dataDir, walDir string) Contents {
	c := whileMounted(func() string { return mounts(dataDir, walDir) },
		func() Contents { return look(dataDir, walDir) })
	c.Free = free(dataDir)
	return c
}

// whileMounted looks, and returns where the file systems are mounted if that was the same before and after: a disk that
// is mounted during a look must not pass for one that was mounted and empty.
func whileMounted(mounts func() string, look func() Contents) Contents {
	before := mounts()
	c := look()
	if after := mounts(); after == before {
		c.Mount = after
	}
	return c
}

// mounts gives where the file systems of these directories are mounted, once each; empty when that cannot be told.
func mounts(dirs ...string) string {
	var all []string
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		at, err := mountOf(dir)
		if err != nil {
			return ""
		}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return strings.Join(all, ", ")
}

// mountOf gives the uppermost directory above one, or above where it will be made, that is on the same device: what is
// mounted there, whichever disk that is. A sandbox that mounts a directory over itself changes nothing.
func mountOf(dir string) (string, error) {
	var stat unix.Stat_t
	err := unix.Stat(dir, &stat)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Stat(dir, &stat)
	}
	if err != nil {
		return "", err
	}
	device := stat.Dev
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	for dir != filepath.Dir(dir) {
		if err := unix.Stat(filepath.Dir(dir), &stat); err != nil {
			return "", err
		}
		if stat.Dev != device {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// free gives what is left on the file system that a directory is on, or will be on once it is made.
func free(dir string) int64 {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &stat)
	}
	if err != nil {
		return -1
	}
	return int64(stat.Bavail) * stat.Bsize //nolint:gosec // no file system is that large
}

func look(dataDir, walDir string) Contents {
	if walDir == "" {
		walDir = filepath.Join(dataDir, "member", "wal")
	}
	data, err := names(filepath.Join(dataDir, "member"))
	if err != nil {
		return Contents{Problem: fmt.Sprintf("cannot read the data directory: %v", err)}
	}
	log, err := names(walDir)
	if err != nil {
		return Contents{Problem: fmt.Sprintf("cannot read the WAL directory: %v", err)}
	}
	if len(data) == 0 && len(log) == 0 {
		return Contents{Empty: true}
	}
	log = slices.DeleteFunc(log, func(name string) bool { return filepath.Ext(name) != ".wal" })
	if len(log) == 0 {
		return Contents{}
	}
	// Names begin with a sequence number of fixed width, so that the last is the newest.
	member, cluster, err := walMetadata(filepath.Join(walDir, slices.Max(log)))
	if err != nil {
		return Contents{Problem: err.Error()}
	}
	return Contents{ClusterID: cluster, MemberID: member}
}

// names lists a directory; one that does not exist has no entries.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out, err
}

// lockDatabase takes the lock that etcd holds on its database as long as it runs (go.etcd.io/bbolt, Options), so that
// none that is started at this very moment loses its files. It gives nil when there is no database.
func lockDatabase(dataDir string) (*os.File, error) {
	path := filepath.Join(dataDir, "member", "snap", "db")
	db, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot move %s aside: %w", dataDir, err)
	}
	err = unix.Flock(int(db.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("an etcd has it open; stop it first")
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot move %s aside: %w", dataDir, err)
	}
	return db, nil
}

// MoveAside renames what lies in the data directory, and the WAL directory if it is another one,
// to names that end in the time and do not exist yet. It gives the new names. The data directory
// itself stays where it is: its parent may belong to somebody else. It is refused while an etcd has
// the database open. Once it returns without an error, a loss of power does not bring the old names back.
func MoveAside(dataDir, walDir string, now time.Time) ([]string, error) {
	db, err := lockDatabase(dataDir)
	if err != nil {
		return nil, err
	}
	if db != nil {
		defer db.Close() // its lock goes with it, after the move
	}
	stamp := ".quorumd-" + now.UTC().Format("20060102T150405.000Z")
	var moved []string
	var above []string // where names have changed, now or in a try before this one
	for _, dir := range []string{filepath.Join(dataDir, "member"), walDir} {
		if dir == "" || strings.HasPrefix(dir, filepath.Join(dataDir, "member")+string(filepath.Separator)) {
			continue
		}
		above = append(above, filepath.Dir(dir))
		target := dir + stamp
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			return moved, fmt.Errorf("cannot move %s aside: %s exists", dir, target)
		}
		err := os.Rename(dir, target)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return moved, fmt.Errorf("cannot move %s aside: %w", dir, err)
		}
		moved = append(moved, target)
	}
	for _, dir := range above {
		if err := SyncDir(dir); err != nil {
			return moved, fmt.Errorf("cannot move %s aside for good: %w", dataDir, err)
		}
	}
	return moved, nil
}

// SyncDir makes the names in a directory durable; one that is not there has none.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
