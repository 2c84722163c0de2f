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

// follower looks whether there is a newer list.
type follower struct {
	path, kept string
	elapsed    func() time.Duration
	seen       stamp
	at         atomic.Int64 // when it was last written, as far as was found, in nanoseconds of elapsed
	remembered bool         // what was kept is in force, and nothing newer was read: nobody knows how old it is
	keeping    atomic.Bool  // somebody has what follows
	written    string       // what is kept
}

// stamp tells one writing of a file from the next.
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

// look reads the list. news tells that it is another than at the last look, or wrong in another writing; a file that
// is not there is no news. The file is another user's: what it is and how large is looked at before it is read.
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
	age := max(0, time.Since(s.modified)) // one from the future is of now: the clock was set back
	f.at.Store(int64(f.elapsed() - age))
	f.remembered = false
	f.keep(l)
	return l, true, nil
}

// age is for how long the list was not written anew; while none was read, for how long there was none.
func (f *follower) age() time.Duration { return f.elapsed() - time.Duration(f.at.Load()) }

// old tells whether what is in force may be wrong by now.
func (f *follower) old() bool { return f.remembered || f.age() > agedAfter }

// keep notes a list for the next boot, if it says something else than what is kept. Nobody waits for it: the disk may
// hang. That it cannot, or has not yet kept the one before, is no reason not to use a list: it is tried again with the
// next writing.
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
		beside := f.kept + ".new"
		if err := errors.Join(os.WriteFile(beside, []byte(text), 0o600), os.Rename(beside, f.kept)); err == nil {
			f.written = text
		}
	}()
}

// said is what a list says, without when it was said.
func said(l List) (string, error) {
	l.Revision = 0
	text, err := l.Encode()
	return string(text), err
}

// last gives the list that was kept.
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

// openList opens a regular file of a bounded size. A link is not followed, and a pipe not waited for.
func openList(path string) (*os.File, stamp, error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, stamp{size: -1}, fmt.Errorf("cannot open the list: %w", err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return nil, stamp{size: -1}, errors.Join(fmt.Errorf("cannot look at %s: %w", path, err), file.Close())
	}
	found := stamp{time.Unix(s.Mtim.Unix()), s.Size, s.Ino}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size > MaxListSize {
		return nil, found, errors.Join(
			fmt.Errorf("cannot use %s: it is no regular file of at most %d bytes", path, MaxListSize), file.Close())
	}
	return file, found, nil
}
