// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// What changes the names in a directory passes through, and can be undone. No rule is for it.

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
	return n.power.remove(n.at(name), func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.power.remove(n.at(name), func() syscall.Errno { return n.LoopbackNode.Rmdir(ctx, name) })
}

func (n *node) Rename(ctx context.Context, name string, into fs.InodeEmbedder, newName string,
	flags uint32,
) syscall.Errno {
	to, ours := into.(*node)
	if !ours || n.power != nil && flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL // an exchange is not among what can be undone
	}
	return n.power.rename(n.at(name), to.at(newName), func() syscall.Errno {
		return n.LoopbackNode.Rename(ctx, name, into, newName, flags)
	})
}
