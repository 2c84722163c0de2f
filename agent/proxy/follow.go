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
)

// follower watches the list's file for a newer version.
type follower struct {
	path, kept string
	elapsed    func() time.Duration
	seen       stamp
	at         atomic.Int64 // when the list was last written, in nanoseconds of elapsed
	remembered bool         // the kept list is in force and its age is unknown
	keeping    atomic.Bool  // held by the goroutine that writes the kept list
	written    string       // content of the kept list
}

// stamp tells one version of a file from the next.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

func newFollower(path, kept string, elapsed func() time.Duration) *follower {
	f := &follower{path: path, kept: kept, elapsed: elapsed}
	f.at.Store(int64(elapsed()))
	return f
}

// look reads the list. news reports whether the list changed since the last look, or became invalid in a new version; a
// missing file is no news. The file belongs to another user, so look checks its type and size before it reads it.
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
	age := max(0, time.Since(s.modified)) // a time in the future counts as now: the clock was set back
	f.at.Store(int64(f.elapsed() - age))
	f.remembered = false
	f.keep(l)
	return l, true, nil
}

// age returns how long ago the list was written, or how long none could be read.
func (f *follower) age() time.Duration { return f.elapsed() - time.Duration(f.at.Load()) }

// old reports whether the list in force may be out of date.
func (f *follower) old() bool { return f.remembered || f.age() > agedAfter }

// keep saves a list for the next boot if its content differs from the saved one. It does not wait, as the disk may
// hang. If it fails, or if the previous save is still running, the list is used all the same, and the next version is
// saved.
func (f *follower) keep(l List) {
	if f.kept == "" || !f.keeping.CompareAndSwap(false, true) {
		return
	}
	text, err := said(l)
	if err != nil || text == f.written {
		f.keeping.Store(false)
		return
	}
	go func() {
		defer f.keeping.Store(false)
		temporary := f.kept + ".new"
		if err := errors.Join(os.WriteFile(temporary, []byte(text), 0o600), os.Rename(temporary, f.kept)); err == nil {
			f.written = text
		}
	}()
}

// said returns the content of a list without its revision.
func said(l List) (string, error) {
	l.Revision = 0
	text, err := l.Encode()
	return string(text), err
}

// last returns the list that was kept.
func (f *follower) last() (List, error) {
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
	f.remembered = true
	if same, err := said(l); err == nil {
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
