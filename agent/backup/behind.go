// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// piece is how much of a file the kernel is given to write at a time, in bytes.
const piece = 4 << 20

// behind writes a file of which never more than two pieces wait for the disk. What piles up is written at once in the
// end, and etcd's fsync, if its files lie on the same disk, waits for all of it.
type behind struct {
	file *os.File
	// forget lets the kernel drop what the disk has: who reads it again reads it from there.
	forget bool

	written, begun, done int64 // bytes: given, of which the disk was told, of which it has all
}

func (b *behind) Write(p []byte) (int, error) {
	n, err := b.file.Write(p)
	b.written += int64(n)
	if err == nil && b.written-b.begun >= piece {
		err = b.push()
	}
	return n, err
}

// push begins to write the last piece and waits for the one before it. What this kernel or file system cannot do is
// done by the sync at the end.
func (b *behind) push() error {
	fd := int(b.file.Fd())
	err := unix.SyncFileRange(fd, b.begun, b.written-b.begun, unix.SYNC_FILE_RANGE_WRITE)
	if before := b.begun - b.done; err == nil && before > 0 {
		err = unix.SyncFileRange(fd, b.done, before,
			unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		if b.forget {
			_ = unix.Fadvise(fd, b.done, before, unix.FADV_DONTNEED) // the kernel may know better
		}
	}
	b.done, b.begun = b.begun, b.written
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) {
		return os.NewSyscallError("sync_file_range", err)
	}
	return nil
}

// sync waits until the disk has all.
func (b *behind) sync() error {
	err := b.file.Sync()
	if b.forget {
		_ = unix.Fadvise(int(b.file.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	return err
}
