// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package datadir inspects an etcd data directory and moves it aside. It promises:
//
//   - Nothing is deleted and nothing is overwritten: a directory is renamed to a new name.
//   - The agent itself never touches the disk that it measures: each inspection and each move runs in a short-lived
//     child process with a deadline, so that a failing disk hangs only the child.
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

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// Contents describe a data directory.
type Contents struct {
	Empty     bool   `json:"empty"`               // absent, or without etcd's files
	ClusterID uint64 `json:"clusterID,omitempty"` // IDs of the cluster and member that the data belongs to
	MemberID  uint64 `json:"memberID,omitempty"`
	Problem   string `json:"problem,omitempty"` // why the data cannot be read
	// Mount lists the mount points of both directories, or of their future parents; empty if unknown.
	Mount string `json:"mount,omitempty"`
	// Free is the space that etcd can still use on the file system of its data, in bytes; -1 if unknown.
	Free int64 `json:"free"`
}

// Inspect reads a data directory, and the WAL directory if it is separate. It changes nothing. Contents that are not
// empty and have neither a member nor a problem were left by an etcd that ended during its first start, because etcd
// creates its database before its log.
func Inspect(dataDir, walDir string) Contents {
	c := withMounts(func() string { return mounts(dataDir, walDir) },
		func() Contents { return readContents(dataDir, walDir) })
	c.Free = free(dataDir)
	return c
}

// withMounts calls read, and sets the mount points only if they were the same before and after. Otherwise a disk that
// was mounted in between could count as mounted and empty.
func withMounts(mounts func() string, read func() Contents) Contents {
	before := mounts()
	c := read()
	if after := mounts(); after == before {
		c.Mount = after
	}
	return c
}

// mounts returns the mount points of these directories, each once; "" if unknown.
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

// mountOf returns the mount point of a directory's disk: the topmost parent directory on the same device. The directory
// may not exist yet. The result is the same in a sandbox that bind-mounts a directory onto itself.
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

// free returns the free space of the file system of a directory. The directory may not exist yet.
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

func readContents(dataDir, walDir string) Contents {
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
	// Names begin with a sequence number of fixed width, so the last is the newest.
	member, cluster, err := walMetadata(filepath.Join(walDir, slices.Max(log)))
	if err != nil {
		return Contents{Problem: err.Error()}
	}
	return Contents{ClusterID: cluster, MemberID: member}
}

// names returns the names of a directory's entries. A missing directory has none.
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

// lockDatabase takes the lock that a running etcd holds on its database, so that the move does not take the files from
// an etcd that is just starting. It returns nil if there is no database.
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
		err = errors.New("a running etcd uses it; stop etcd first")
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot move %s aside: %w", dataDir, err)
	}
	return db, nil
}

// MoveAside renames the member directory in the data directory, and the WAL directory if it is separate, to names that
// end in the time. It returns the new names. The data directory itself stays where it is, because its parent may belong
// to a different user. MoveAside fails while an etcd has the database open. After it has returned without an error, a
// power failure does not restore the old names.
func MoveAside(dataDir, walDir string, now time.Time) ([]string, error) {
	db, err := lockDatabase(dataDir)
	if err != nil {
		return nil, err
	}
	if db != nil {
		defer db.Close() // releases the lock on the database, after the move
	}
	stamp := ".quorumd-" + now.UTC().Format("20060102T150405.000Z")
	var moved []string
	var parents []string // directories to sync: this or an earlier attempt may have changed their entries
	for _, dir := range []string{filepath.Join(dataDir, "member"), walDir} {
		if dir == "" || strings.HasPrefix(dir, filepath.Join(dataDir, "member")+string(filepath.Separator)) {
			continue
		}
		parents = append(parents, filepath.Dir(dir))
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
	for _, dir := range parents {
		if err := atomicfile.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return moved, fmt.Errorf("cannot make the move of %s durable: %w", dataDir, err)
		}
	}
	return moved, nil
}
