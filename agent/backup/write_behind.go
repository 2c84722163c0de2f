// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// piece is the number of bytes that are submitted to the disk together.
const piece = 4 << 20

// writeBehind writes a file with at most two pieces waiting for the disk. Without this limit the kernel would write all
// dirty pages together at the end, and etcd's next fsync on the same disk would wait for all of them.
type writeBehind struct {
	file *os.File
	// forget drops written pages from the page cache, so that later reads come from the disk.
	forget bool

	written, begun, done int64 // bytes: written to the file, submitted to the disk, and stored there
}

func (b *writeBehind) Write(p []byte) (int, error) {
	n, err := b.file.Write(p)
	b.written += int64(n)
	if err == nil && b.written-b.begun >= piece {
		err = b.push()
	}
	return n, err
}

// push starts to write the last piece and waits for the previous one. If the kernel or file system does not support
// that, the final sync writes everything.
func (b *writeBehind) push() error {
	fd := int(b.file.Fd())
	err := unix.SyncFileRange(fd, b.begun, b.written-b.begun, unix.SYNC_FILE_RANGE_WRITE)
	if before := b.begun - b.done; err == nil && before > 0 {
		err = unix.SyncFileRange(fd, b.done, before,
			unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		if b.forget {
			_ = unix.Fadvise(fd, b.done, before, unix.FADV_DONTNEED) // a hint that may fail
		}
	}
	b.done, b.begun = b.begun, b.written
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) {
		return os.NewSyscallError("sync_file_range", err)
	}
	return nil
}

// sync waits until all data is on the disk.
func (b *writeBehind) sync() error {
	err := b.file.Sync()
	if b.forget {
		_ = unix.Fadvise(int(b.file.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	return err
}
