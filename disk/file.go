// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The calls below use x/sys/unix rather than os, so that it is certain which system calls a lane measures. A call that
// a signal interrupts, as happens on FUSE, is repeated.

func open(path string, flags int) (fd int, err error) {
	err = uninterrupted(func() error {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// writeAt writes all of b or returns an error. A disk that fills up may accept a part of b before it refuses the rest.
func writeAt(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		var n int
		err := uninterrupted(func() (err error) {
			n, err = unix.Pwrite(fd, b, offset)
			return err
		})
		if err != nil {
			return err
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

// readAt reads all of b; a shorter file is an I/O error.
func readAt(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		var n int
		err := uninterrupted(func() (err error) {
			n, err = unix.Pread(fd, b, offset)
			return err
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return syscall.EIO
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

func dataSync(fd int) error {
	return uninterrupted(func() error { return unix.Fdatasync(fd) })
}

func closeFD(fd *int) {
	if *fd >= 0 {
		_ = unix.Close(*fd)
		*fd = -1
	}
}

func uninterrupted(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
