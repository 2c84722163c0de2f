// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// ownFlags are not passed on to the backing file, but keep their effect for the program. O_DIRECT would fail there,
// because requests arrive in buffers without the alignment that a direct write needs. O_SYNC and O_DSYNC would sync
// each write twice, because the kernel sends an fsync after each write anyway.
const ownFlags = unix.O_DIRECT | unix.O_SYNC | unix.O_DSYNC

// openFlags makes close independent of an fsync that a rule holds. Otherwise every fork and exec of a program with the
// file open would wait for that fsync.
const openFlags = fuse.FOPEN_NOFLUSH

// node is a file or directory. It applies the rules, then passes the operation to the backing directory.
type node struct {
	*fs.LoopbackNode
	rules    *ruleTable
	power    *power
	nameless atomic.Pointer[os.File] // the open file, after its name was removed
}

// WrapChild wraps a child of this node in the type node.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: ops.(*fs.LoopbackNode), rules: n.rules, power: n.power}
}

// at returns the path of this node in the backing directory or, if name is not empty, the path of the entry with that
// name.
func (n *node) at(name string) string {
	return filepath.Join(n.LoopbackNode.RootData.Path, n.Path(n.Root()), name)
}

// apply applies the rules to an operation. They match the current name of the file, because etcd renames its log files
// while they are open.
func (n *node) apply(op string) syscall.Errno { return n.rules.apply(op, n.Path(n.Root())) }

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.apply("open"); errno != 0 {
		return nil, 0, errno
	}
	fh, _, errno := n.LoopbackNode.Open(ctx, flags&^ownFlags)
	if gone := n.nameless.Load(); errno == syscall.ENOENT && gone != nil {
		path := fmt.Sprintf("/proc/self/fd/%d", gone.Fd())
		again, err := os.OpenFile(path, int(flags&^(ownFlags|unix.O_APPEND|fuse.FMODE_EXEC)), 0)
		if err != nil {
			return nil, 0, fs.ToErrno(err)
		}
		fh, errno = fs.NewLoopbackFileFromOS(again), 0
	}
	if errno != 0 {
		return nil, 0, errno
	}
	return &file{fh.(*fs.LoopbackFile), n}, openFlags, 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (
	*fs.Inode, fs.FileHandle, uint32, syscall.Errno,
) {
	if errno := n.rules.apply("open", filepath.Join(n.Path(n.Root()), name)); errno != 0 {
		return nil, nil, 0, errno
	}
	var inode *fs.Inode
	var fh fs.FileHandle
	errno := n.power.make(n.at(name), func() (errno syscall.Errno) {
		inode, fh, _, errno = n.LoopbackNode.Create(ctx, name, flags&^ownFlags, mode, out)
		return errno
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, &file{fh.(*fs.LoopbackFile), inode.Operations().(*node)}, openFlags, 0
}

// Tmpfile returns EOPNOTSUPP, because no rule could match a file without a name.
func (n *node) Tmpfile(context.Context, uint32, uint32,
	*fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EOPNOTSUPP
}

func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, truncates := in.GetSize(); truncates {
		if errno := n.apply("write"); errno != 0 {
			return errno
		}
	}
	size, truncates := in.GetSize()
	set := func() syscall.Errno { return n.LoopbackNode.Setattr(ctx, fh, in, out) }
	if !truncates || n.power == nil {
		return set()
	}
	if open, ok := fh.(*file); ok {
		fd, _ := open.LoopbackFile.PassthroughFd()
		return n.power.write(fd, int64(size), wholeFile, set) //nolint:gosec // a length that a file can have
	}
	f, err := os.OpenFile(n.at(""), os.O_RDWR, 0)
	if err != nil {
		return errno(err)
	}
	defer f.Close()                                                // the file was opened only for this write
	return n.power.write(int(f.Fd()), int64(size), wholeFile, set) //nolint:gosec // as above
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &dir{fh.(dirHandle), n}, fuseFlags, 0
}

// dirHandle is the interface that go-fuse requires of an open directory.
type dirHandle interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
	fs.FileFsyncdirer
}

type dir struct {
	dirHandle
	node *node
}

func (d *dir) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	if errno := d.node.apply("fsync"); errno != 0 {
		return errno
	}
	return d.node.power.sync(func() (uint64, error) { return inode(d.node.at("")) }, func() syscall.Errno {
		return d.dirHandle.Fsyncdir(ctx, flags)
	})
}

// file is an open file. Its other methods are those of LoopbackFile.
type file struct {
	*fs.LoopbackFile
	node *node
}

// PassthroughFd prevents the kernel from bypassing this file system.
func (f *file) PassthroughFd() (int, bool) { return -1, false }

func (f *file) Read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno := f.node.apply("read"); errno != 0 {
		return nil, errno
	}
	return f.LoopbackFile.Read(ctx, buf, off)
}

func (f *file) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	return f.Writev(ctx, [][]byte{data}, off)
}

func (f *file) Writev(ctx context.Context, data [][]byte, off int64) (written uint32, errno syscall.Errno) {
	if errno := f.node.apply("write"); errno != 0 {
		return 0, errno
	}
	var length int64
	for _, part := range data {
		length += int64(len(part))
	}
	fd, _ := f.LoopbackFile.PassthroughFd()
	errno = f.node.power.write(fd, off, length, func() (errno syscall.Errno) {
		written, errno = f.LoopbackFile.Writev(ctx, data, off)
		return errno
	})
	return written, errno
}

func (f *file) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	if errno := f.node.apply("write"); errno != 0 {
		return errno
	}
	fd, _ := f.LoopbackFile.PassthroughFd()
	//nolint:gosec // a length that a file can have
	return f.node.power.write(fd, int64(off), int64(size), func() syscall.Errno {
		return f.LoopbackFile.Allocate(ctx, off, size, mode)
	})
}

func (f *file) Fsync(_ context.Context, flags uint32) syscall.Errno {
	if errno := f.node.apply("fsync"); errno != 0 {
		return errno
	}
	fd, _ := f.LoopbackFile.PassthroughFd()
	return f.node.power.sync(func() (uint64, error) {
		var stat unix.Stat_t
		err := unix.Fstat(fd, &stat)
		return stat.Ino, err
	}, func() syscall.Errno {
		if flags&1 != 0 { // FUSE_FSYNC_FDATASYNC in linux/fuse.h
			return fs.ToErrno(unix.Fdatasync(fd))
		}
		return fs.ToErrno(unix.Fsync(fd))
	})
}
