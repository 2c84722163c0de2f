// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"io"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// exam writes to LaneWAL alone, one write after the other, until stdin ends. Then it removes its files. It waits for
// the write in flight, however long that takes; the parent kills the child after examPatience.
func (p *prober) exam(ctx context.Context, cancel context.CancelFunc, stdin io.Reader) int {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			p.canary.arm(0)
			err := p.wal.act()
			p.canary.disarm()
			if err != nil {
				nap(ctx, longestNap)
			}
		}
	}()
	_, _ = io.Copy(io.Discard, stdin)
	cancel()
	<-ended
	if err := p.place.leave(); err != nil {
		return exitSoftware
	}
	return 0
}

// becomeOwner switches from root to the owner of the directory. Otherwise, any user who can rename its content could
// make root follow a link. If the directory is inaccessible, becomeOwner does nothing, and the first write reports the
// error.
func becomeOwner(dir string) error {
	var stat unix.Stat_t
	if known := unix.Stat(dir, &stat) == nil; unix.Geteuid() != 0 || !known || stat.Uid == 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(int(stat.Gid)); err != nil {
		return err
	}
	return syscall.Setuid(int(stat.Uid))
}

// own creates the directory of an examination. An existing directory must belong to this user, be closed to all others,
// and not be a symbolic link.
func (p *place) own() error {
	err := uninterrupted(func() error { return unix.Mkdir(p.dir, 0o700) })
	if err != unix.EEXIST {
		return err
	}
	var stat unix.Stat_t
	if err := uninterrupted(func() error { return unix.Lstat(p.dir, &stat) }); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || stat.Mode&0o077 != 0 || int(stat.Uid) != unix.Geteuid() {
		return unix.EEXIST
	}
	return nil
}

// leave removes the files of the probe and its directory. A missing file or parent directory is no error.
func (p *place) leave() error {
	for _, name := range []string{walNextName, walName, lockName} {
		path := filepath.Join(p.dir, name)
		if err := uninterrupted(func() error { return unix.Unlink(path) }); !gone(err) {
			return err
		}
	}
	if err := uninterrupted(func() error { return unix.Rmdir(p.dir) }); !gone(err) {
		return err
	}
	return nil
}

func gone(err error) bool { return err == nil || err == unix.ENOENT || err == unix.ENOTDIR }
