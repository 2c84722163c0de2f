// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The operations below change names in a directory. No rule applies to them, but power can undo them.

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (
	made *fs.Inode, errno syscall.Errno,
) {
	errno = n.power.make(n.at(name), func() (errno syscall.Errno) {
		made, errno = n.LoopbackNode.Mkdir(ctx, name, mode, out)
		return errno
	})
	return made, errno
}

func (n *node) Mknod(ctx context.Context, name string, mode, dev uint32, out *fuse.EntryOut) (
	made *fs.Inode, errno syscall.Errno,
) {
	errno = n.power.make(n.at(name), func() (errno syscall.Errno) {
		made, errno = n.LoopbackNode.Mknod(ctx, name, mode, dev, out)
		return errno
	})
	return made, errno
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (
	made *fs.Inode, errno syscall.Errno,
) {
	errno = n.power.make(n.at(name), func() (errno syscall.Errno) {
		made, errno = n.LoopbackNode.Symlink(ctx, target, name, out)
		return errno
	})
	return made, errno
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (
	made *fs.Inode, errno syscall.Errno,
) {
	errno = n.power.make(n.at(name), func() (errno syscall.Errno) {
		made, errno = n.LoopbackNode.Link(ctx, target, name, out)
		return errno
	})
	return made, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	if child := n.GetChild(name); child != nil {
		child.Operations().(*node).outlive(n.at(name))
	}
	return n.power.remove(n.at(name), func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

// outlive opens a file whose name is about to be removed, because a program that has the file open may reopen it
// through /proc.
func (n *node) outlive(path string) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	if before := n.nameless.Swap(file); before != nil {
		before.Close()
	}
}

// OnForget closes the file that outlive opened. The kernel calls it when no program has the file open.
func (n *node) OnForget() {
	if file := n.nameless.Swap(nil); file != nil {
		file.Close()
	}
}

func (n *node) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	errno := n.LoopbackNode.Getattr(ctx, f, out)
	file := n.nameless.Load()
	if errno != syscall.ENOENT || file == nil {
		return errno
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &stat); err != nil {
		return fs.ToErrno(err)
	}
	out.FromStat(&stat)
	return 0
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.power.remove(n.at(name), func() syscall.Errno { return n.LoopbackNode.Rmdir(ctx, name) })
}

func (n *node) Rename(ctx context.Context, name string, into fs.InodeEmbedder, newName string,
	flags uint32,
) syscall.Errno {
	to, ours := into.(*node)
	if !ours || n.power != nil && flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL // power cannot undo an exchange of two names
	}
	return n.power.rename(n.at(name), to.at(newName), func() syscall.Errno {
		return n.LoopbackNode.Rename(ctx, name, into, newName, flags)
	})
}
