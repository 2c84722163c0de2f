// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// follower watches the list's file for a newer version.
type follower struct {
	path, kept string
	elapsed    func() time.Duration
	seen       stamp
	writtenAt  atomic.Int64 // when the list was last written, in nanoseconds by the elapsed clock
	fromSaved  bool         // the saved list is in force and its age is unknown
	saving     atomic.Bool  // a goroutine is saving a list
	written    string       // content of the saved list
	write      func(path string, data []byte, mode os.FileMode, durable bool) error
}

// stamp identifies one version of a file.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

func newFollower(path, kept string, elapsed func() time.Duration) *follower {
	f := &follower{path: path, kept: kept, elapsed: elapsed, write: atomicfile.Write}
	f.writtenAt.Store(int64(elapsed()))
	return f
}

// look reads the list if its file has changed since the last look. news reports whether the file has changed. If the
// file is missing, look returns an error, and news is false. A different user owns the file, so look checks its type
// and size before reading it.
func (f *follower) look() (l List, news bool, err error) {
	file, s, err := openList(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.seen = stamp{}
		return l, false, err
	}
	if err != nil {
		news, f.seen = f.seen != s, s
		return l, news, err
	}
	defer file.Close()
	if s == f.seen {
		return l, false, nil
	}
	f.seen = s
	text, err := io.ReadAll(io.LimitReader(file, MaxListSize+1))
	if err != nil {
		return l, true, fmt.Errorf("cannot read %s: %w", f.path, err)
	}
	if l, err = Parse(text); err != nil {
		return l, true, fmt.Errorf("cannot use %s: %w", f.path, err)
	}
	age := max(0, time.Since(s.modified)) // time.Since is negative after the clock was set back
	f.writtenAt.Store(int64(f.elapsed() - age))
	f.fromSaved = false
	f.save(l)
	return l, true, nil
}

// age returns the time since the list was written; before the first list, the time since the start.
func (f *follower) age() time.Duration { return f.elapsed() - time.Duration(f.writtenAt.Load()) }

// old reports whether the list in force may be out of date.
func (f *follower) old() bool { return f.fromSaved || f.age() > staleAfter }

// save writes a list for the next boot if its content differs from the saved one. It does not wait, because the disk
// may hang. If the write fails, or the previous one is still running, this list is not saved.
func (f *follower) save(l List) {
	if f.kept == "" || !f.saving.CompareAndSwap(false, true) {
		return
	}
	text, err := content(l)
	if err != nil || text == f.written {
		f.saving.Store(false)
		return
	}
	go func() {
		defer f.saving.Store(false)
		if f.write(f.kept, []byte(text), 0o600, false) == nil {
			f.written = text
		}
	}()
}

// content returns the content of a list without its revision.
func content(l List) (string, error) {
	l.Revision = 0
	text, err := l.Encode()
	return string(text), err
}

// saved returns the list that was saved before the boot or restart.
func (f *follower) saved() (List, error) {
	if f.kept == "" {
		return List{}, fs.ErrNotExist
	}
	file, _, err := openList(f.kept)
	if err != nil {
		return List{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxListSize+1))
	if err != nil {
		return List{}, err
	}
	l, err := Parse(text)
	if err != nil {
		return List{}, err
	}
	f.fromSaved = true
	if same, err := content(l); err == nil {
		f.written = same
	}
	return l, nil
}

// openList opens a regular file of bounded size. It follows no symbolic link, and never blocks on a pipe.
func openList(path string) (*os.File, stamp, error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, stamp{size: -1}, fmt.Errorf("cannot open the list: %w", err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return nil, stamp{size: -1}, errors.Join(fmt.Errorf("cannot inspect %s: %w", path, err), file.Close())
	}
	found := stamp{time.Unix(s.Mtim.Unix()), s.Size, s.Ino}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size > MaxListSize {
		return nil, found, errors.Join(
			fmt.Errorf("cannot use %s: not a regular file of at most %d bytes", path, MaxListSize), file.Close())
	}
	return file, found, nil
}
