// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// power records how to undo everything since the last sync, and undoes it when the power is cut. That is the worst case
// of a file system with an ordered journal, such as XFS:
//
//   - The bytes and the length of a file are those of its last sync.
//   - Creations, renames and removals are undone, the latest first, back to the last one that a sync made durable.
//     A sync of a file makes its name durable; a sync of a directory makes the names in it durable. Either includes
//     all earlier changes in the whole file system.
//
// Owners, modes, times and attributes stay as they were set. A nil power records nothing.
type power struct {
	mu    sync.Mutex
	keep  string // directory that keeps removed files, on the same file system as the data
	kept  int
	names []change // changes of names that are not durable yet, oldest first
	files map[uint64]*unsynced
	off   bool
}

// change is one creation, removal or renaming.
type change struct {
	touched []uint64     // inodes; a sync of any of them makes the change durable
	undo    func() error // undoes the change
	forget  func() error // removes what undo needs; may be nil
}

// unsynced is a file and its content before each write since its last sync.
type unsynced struct {
	file *os.File
	old  []extent
}

// wholeFile is longer than any file can be.
const wholeFile = 1 << 62

// extent is the previous content of a range, and the previous length of the file.
type extent struct {
	at   int64
	data []byte
	size int64
}

func newPower(back string) (*power, error) {
	keep, err := os.MkdirTemp(filepath.Dir(back), ".faultfs-removed-")
	return &power{keep: keep, files: map[uint64]*unsynced{}}, err
}

func (p *power) close() error {
	if p == nil {
		return nil
	}
	return os.RemoveAll(p.keep)
}

// on runs prepare and then act, with no other operation in between. After cut it returns EIO.
func (p *power) on(prepare func() error, act func() syscall.Errno) syscall.Errno {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return syscall.EIO
	}
	if err := prepare(); err != nil {
		return errno(err)
	}
	return act()
}

// do runs an operation that changes names, and records how to undo it.
func (p *power) do(prepare func() (change, error), act func() syscall.Errno) syscall.Errno {
	if p == nil {
		return act()
	}
	var c change
	return p.on(func() (err error) {
		c, err = prepare()
		return err
	}, func() syscall.Errno {
		done := act()
		if done == 0 {
			p.names = append(p.names, c)
		} else if c.forget != nil {
			_ = c.forget() // the operation has failed, so there is nothing to undo
		}
		return done
	})
}

// make runs an operation that creates a path.
func (p *power) make(path string, act func() syscall.Errno) syscall.Errno {
	if _, err := os.Lstat(path); p == nil || err == nil {
		return act() // without power there is nothing to record; if the path exists, act creates nothing
	}
	touched := make([]uint64, 2)
	return p.do(func() (_ change, err error) {
		touched[0], err = inode(filepath.Dir(path))
		return change{touched: touched, undo: func() error { return os.Remove(path) }}, err
	}, func() syscall.Errno {
		done := act()
		if done == 0 {
			touched[1], _ = inode(path) // cannot fail: act has just created the path
		}
		return done
	})
}

// remove runs an operation that removes a path.
func (p *power) remove(path string, act func() syscall.Errno) syscall.Errno {
	return p.do(func() (change, error) { return p.put(path) }, act)
}

// put prepares the removal of a path: it keeps a file under a different name, so that undo can restore it.
func (p *power) put(path string) (change, error) {
	above, err := inode(filepath.Dir(path))
	if err != nil {
		return change{}, err
	}
	c := change{touched: []uint64{above}}
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return c, err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR { // only an empty directory can be removed
		c.undo = func() error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, fs.FileMode(stat.Mode&0o7777)),
				os.Lchown(path, int(stat.Uid), int(stat.Gid)))
		}
		return c, nil
	}
	p.kept++
	kept := filepath.Join(p.keep, fmt.Sprint(p.kept))
	c.undo = func() error { return os.Rename(kept, path) }
	c.forget = func() error { return os.Remove(kept) }
	return c, os.Link(path, kept)
}

// rename runs an operation that moves a path, possibly over an existing file.
func (p *power) rename(from, to string, act func() syscall.Errno) syscall.Errno {
	return p.do(func() (change, error) {
		own, err := inode(from)
		left, err2 := inode(filepath.Dir(from))
		into, err3 := inode(filepath.Dir(to))
		if err := errors.Join(err, err2, err3); err != nil {
			return change{}, err
		}
		c := change{touched: []uint64{own, left, into}, undo: func() error { return os.Rename(to, from) }}
		if there, err := inode(to); err != nil || there == own {
			return c, nil
		}
		replaced, err := p.put(to)
		back := c.undo
		c.undo = func() error { return errors.Join(back(), replaced.undo()) }
		c.forget = replaced.forget
		return c, err
	}, act)
}

// write runs an operation that changes the size of a file, or up to length bytes of it from the offset at.
func (p *power) write(fd int, at, length int64, act func() syscall.Errno) syscall.Errno {
	if p == nil {
		return act()
	}
	return p.on(func() error { return p.remember(fd, at, length) }, act)
}

func (p *power) remember(fd int, at, length int64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	of := p.files[stat.Ino]
	if of == nil {
		// reopened, because fd may be closed before the power is cut
		file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		of = &unsynced{file: file}
		p.files[stat.Ino] = of
	}
	old := extent{at: at, size: stat.Size}
	if there := min(length, stat.Size-at); there > 0 {
		old.data = make([]byte, there)
		if _, err := of.file.ReadAt(old.data, at); err != nil {
			return err
		}
	}
	of.old = append(of.old, old)
	return nil
}

// sync runs an operation that makes a file or directory durable.
func (p *power) sync(own func() (uint64, error), act func() syscall.Errno) syscall.Errno {
	if p == nil {
		return act()
	}
	var synced uint64
	return p.on(func() (err error) {
		synced, err = own()
		return err
	}, func() syscall.Errno {
		if done := act(); done != 0 {
			return done
		}
		return errno(p.durable(synced))
	})
}

// durable forgets how to undo what a sync of the file or directory with the given inode has made durable.
func (p *power) durable(synced uint64) (err error) {
	if of := p.files[synced]; of != nil {
		delete(p.files, synced)
		err = of.file.Close()
	}
	for i, c := range slices.Backward(p.names) {
		if !slices.Contains(c.touched, synced) {
			continue
		}
		for _, durable := range p.names[:i+1] {
			if durable.forget != nil {
				err = errors.Join(err, durable.forget())
			}
		}
		p.names = slices.Clone(p.names[i+1:])
		break
	}
	return err
}

// cut undoes everything unsynced, and makes all later changes fail. It returns the text to print.
func (p *power) cut() (string, error) {
	if p == nil {
		return "", errors.New("cannot simulate a power loss: not mounted with -power")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	said := fmt.Sprintf("undone: %d names, %d files\n", len(p.names), len(p.files))
	var err error
	for _, of := range p.files {
		for _, old := range slices.Backward(of.old) {
			_, wrong := of.file.WriteAt(old.data, old.at)
			err = errors.Join(err, wrong, of.file.Truncate(old.size))
		}
		err = errors.Join(err, of.file.Close())
	}
	for _, c := range slices.Backward(p.names) {
		err = errors.Join(err, c.undo())
	}
	p.files, p.names = nil, nil
	return said, err
}

func inode(path string) (uint64, error) {
	var stat unix.Stat_t
	err := unix.Lstat(path, &stat)
	return stat.Ino, err
}

// errno returns the error number that the program gets.
func errno(err error) syscall.Errno {
	var known syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &known):
		return known
	}
	return syscall.EIO
}
