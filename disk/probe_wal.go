// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	walName     = "wal"
	walNextName = "wal.next"
	walBytes    = 4 << 20
	// walRecord is the write size in the fio test of etcd's documentation.
	walRecord = 2300
)

// walLane implements LaneWAL. Like etcd it writes into space that is allocated but not yet written.
type walLane struct {
	*watched
	path, next string
	fd         int
	offset     int64
	record     []byte
}

func newWALLane(w *watched, set settings) *walLane {
	return &walLane{
		watched: w, fd: -1, record: make([]byte, walRecord),
		path: filepath.Join(set.dir, walName), next: filepath.Join(set.dir, walNextName),
	}
}

// run appends one record. After an error the next run begins a new file.
func (l *walLane) run() error {
	err := l.try()
	if err != nil {
		closeFD(&l.fd)
	}
	return err
}

func (l *walLane) try() error {
	if l.fd < 0 || l.offset+walRecord > walBytes {
		if err := l.do(opRotate, l.rotate); err != nil {
			return err
		}
	}
	fillRandom(l.record)
	if err := l.sample(opWAL, LaneWAL, l.write); err != nil {
		return err
	}
	l.offset += walRecord
	return nil
}

// write appends the record, and returns how long the slower of its two calls took. On a healthy disk that is the
// fdatasync, which etcd also counts for its own WAL. If the write itself has to wait, its duration counts.
func (l *walLane) write() (slower time.Duration, err error) {
	start := Monotonic()
	if err := writeAt(l.fd, l.record, l.offset); err != nil {
		return Monotonic() - start, err
	}
	written := Monotonic()
	err = dataSync(l.fd)
	return max(written-start, Monotonic()-written), err
}

// rotate creates a new file and replaces the old one with it.
func (l *walLane) rotate() error {
	fd, err := open(l.next, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	if err = allocate(fd); err == nil {
		err = uninterrupted(func() error { return unix.Rename(l.next, l.path) })
	}
	if err == nil {
		// Without this, the first sample would include the allocation.
		err = dataSync(fd)
	}
	if err != nil {
		_ = unix.Unlink(l.next) // remove the partial file, for example on a full disk
		closeFD(&fd)
		return err
	}
	closeFD(&l.fd)
	l.fd, l.offset = fd, 0
	return nil
}

func allocate(fd int) error {
	err := uninterrupted(func() error { return unix.Fallocate(fd, 0, 0, walBytes) })
	if err != syscall.EOPNOTSUPP && err != syscall.ENOSYS {
		return err
	}
	zeros := make([]byte, 64<<10)
	for offset := int64(0); offset < walBytes; offset += int64(len(zeros)) {
		if err := writeAt(fd, zeros, offset); err != nil {
			return err
		}
	}
	return nil
}
