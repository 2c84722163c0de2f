// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package rootfile reads and writes files that only root can have changed.
//
// Files that root, systemd or etcd's user act on must not be in a directory that a less privileged user can write. Such
// a user could create a symbolic link to a different file there, or a pipe that blocks the reader, or could replace a
// whole directory. So every directory of the path is opened beneath the previous one without following links, must
// belong to the owner of the [Tree], usually root, and must be writable only by that user. The same applies to the
// file. No call blocks on a pipe, and reads are bounded.
package rootfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Tree is a directory tree with files that only its owner can change.
type Tree struct {
	top   string // every directory from here on is checked
	owner uint32
}

// Root returns the tree of the whole file system, whose owner is root.
func Root() Tree { return Tree{top: "/"} }

// Beneath returns the tree below the directory top. The tree must belong to the user with the ID owner.
func Beneath(top string, owner int) Tree {
	return Tree{top: filepath.Clean(top), owner: uint32(owner)} //nolint:gosec // a user's number
}

// Read returns the content of a regular file of at most limit bytes.
func (t Tree) Read(path string, limit int) ([]byte, error) {
	dir, err := t.openDir(filepath.Dir(path), false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return t.read(dir, path, limit)
}

func (t Tree) read(dir *os.File, path string, limit int) ([]byte, error) {
	fd, err := unix.Openat(int(dir.Fd()), filepath.Base(path),
		unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, failed("open", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, failed("read", path, errors.New("it is not a regular file"))
	}
	if err := t.trusted(f, path); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = failed("read", path, fmt.Errorf("it has more than %d bytes", limit))
	}
	return data, err
}

// Write replaces a file, unless it already has that content and mode. A reader sees either the old content or the new
// one, even after a power loss. The directory must exist.
func (t Tree) Write(path string, data []byte, mode fs.FileMode) error {
	_, err := t.write(path, data, mode, -1)
	return err
}

// WriteFor is like Write, for a file that only root and a group can read. It reports whether the group can read the
// file: if this process may not assign the file to the group, only root can.
func (t Tree) WriteFor(path string, data []byte, group int) (shared bool, err error) {
	return t.write(path, data, 0o640, group)
}

// write replaces a file. The file keeps the group of this process if group is negative.
func (t Tree) write(path string, data []byte, mode fs.FileMode, group int) (shared bool, err error) {
	dir, err := t.openDir(filepath.Dir(path), true)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if old, err := t.read(dir, path, len(data)); err == nil && bytes.Equal(old, data) && t.has(dir, path, mode, group) {
		return group >= 0, nil
	}
	temp := "." + filepath.Base(path) + "." + rand.Text()
	fd, err := unix.Openat(int(dir.Fd()), temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		0o600)
	if err != nil {
		return false, failed("write", path, err)
	}
	f := os.NewFile(uintptr(fd), temp)
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(int(dir.Fd()), temp, 0)
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	_, err = f.Write(data)
	shared = group >= 0 && f.Chown(-1, group) == nil
	if group >= 0 && !shared {
		mode &^= 0o077 // the file would be readable by a different group
	}
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return false, err
	}
	if err = unix.Renameat(int(dir.Fd()), temp, int(dir.Fd()), filepath.Base(path)); err != nil {
		return false, err
	}
	return shared, dir.Sync()
}

// has reports whether a file has that mode and, unless group is negative, that group.
func (t Tree) has(dir *os.File, path string, mode fs.FileMode, group int) bool {
	var s unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), filepath.Base(path), &s, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && fs.FileMode(s.Mode).Perm() == mode && (group < 0 || int(s.Gid) == group)
}

// Remove removes a file durably; a missing file is not an error.
func (t Tree) Remove(path string) error {
	dir, err := t.openDir(filepath.Dir(path), true)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Unlinkat(int(dir.Fd()), filepath.Base(path), 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return failed("remove", path, err)
	}
	return dir.Sync()
}

// Check returns an error unless a file and the directories of its path belong to the tree's owner, and no other user
// can write them.
func (t Tree) Check(path string) error {
	dir, err := t.openDir(filepath.Dir(path), false)
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := unix.Openat(int(dir.Fd()), filepath.Base(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed("open", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return t.trusted(f, path)
}

// openDir opens a directory, each part of the path beneath the previous one. Only with toSync can the result be synced.
func (t Tree) openDir(path string, toSync bool) (*os.File, error) {
	below, err := filepath.Rel(t.top, path)
	if err != nil || !filepath.IsAbs(path) || below == ".." || strings.HasPrefix(below, "../") {
		return nil, failed("open", path, fmt.Errorf("it is not below %s", t.top))
	}
	at, so := unix.AT_FDCWD, t.top
	names := append([]string{t.top}, strings.Split(below, "/")...)
	if below == "." {
		names = names[:1]
	}
	var dir *os.File
	for i, name := range names {
		flags := unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if toSync && i == len(names)-1 {
			flags &^= unix.O_PATH
		}
		if i > 0 {
			so = filepath.Join(so, name)
		}
		fd, err := unix.Openat(at, name, flags, 0)
		if dir != nil {
			dir.Close()
		}
		if err != nil {
			return nil, failed("open", so, err)
		}
		dir = os.NewFile(uintptr(fd), so)
		if err := t.trusted(dir, so); err != nil {
			dir.Close()
			return nil, err
		}
		at = fd
	}
	return dir, nil
}

// trusted returns an error if users other than the owner could change the open file.
func (t Tree) trusted(f *os.File, path string) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return failed("inspect", path, err)
	}
	switch {
	case s.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link, which is not followed: replace it with the file or directory that "+
			"it points to", path)
	case s.Uid != t.owner:
		return fmt.Errorf("%s belongs to user %d, who can change it: chown root", path, s.Uid)
	case s.Mode&0o022 != 0:
		return fmt.Errorf("%s is writable by users other than its owner: chmod go-w", path)
	}
	return nil
}

// failed returns a file system error as package os does. If the path is a symbolic link or not a directory, the error
// states that.
func failed(doing, path string, err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%s is not a directory, or is a symbolic link, which is not followed: %w", path,
			&fs.PathError{Op: doing, Path: path, Err: err})
	}
	return &fs.PathError{Op: doing, Path: path, Err: err}
}
