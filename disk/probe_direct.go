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
	directName   = "direct"
	directBlocks = 256 // 1 MiB
)

// directLane implements LaneDirect. Overwriting written blocks does not change the file's metadata, so it needs no
// journal commit and does not wait for other files' data.
type directLane struct {
	*watched
	path   string
	verify time.Duration

	fd       int
	written  bool // this process has written the whole file, so there are blocks to overwrite
	buffered bool // the file system refused O_DIRECT
	block    []byte

	seq      uint64 // sequence number of the last written block, from which its offset is calculated
	intact   bool   // the write of the last block succeeded
	verified time.Duration
}

func newDirectLane(w *watched, set settings) (*directLane, error) {
	// O_DIRECT requires aligned memory; a mapping begins on a page.
	block, err := unix.Mmap(-1, 0, blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	return &directLane{
		watched: w, path: filepath.Join(set.dir, directName), verify: set.verify,
		fd: -1, block: block, verified: Monotonic(),
	}, nil
}

// run writes one block. After an error the next run opens the file again.
func (l *directLane) run() error {
	err := l.try()
	if err != nil {
		closeFD(&l.fd)
		l.intact = false
	}
	return err
}

func (l *directLane) try() error {
	if l.fd < 0 {
		if err := l.do(opPrepare, l.prepare); err != nil {
			return err
		}
	}
	// Verify before the next write rather than right after the last one: a write may get lost at any time in between.
	if now := Monotonic(); l.intact && now-l.verified >= l.verify {
		l.verified = now
		if err := l.do(opVerify, l.readBack); err != nil {
			return err
		}
	}
	l.seq++
	l.intact = false
	fillBlock(l.block, l.seq)
	if err := l.sample(opDirect, LaneDirect, whole(l.write)); err != nil {
		return err
	}
	l.intact = true
	return nil
}

func (l *directLane) offset() int64 { return int64(l.seq%directBlocks) * blockSize }

func (l *directLane) write() error {
	if err := writeAt(l.fd, l.block, l.offset()); err != nil || !l.buffered {
		return err
	}
	return dataSync(l.fd)
}

func (l *directLane) readBack() error {
	if l.buffered {
		// Without this, the page cache serves the read instead of the disk.
		_ = unix.Fadvise(l.fd, l.offset(), blockSize, unix.FADV_DONTNEED)
	}
	if err := readAt(l.fd, l.block, l.offset()); err != nil {
		return err
	}
	return checkBlock(l.block, l.seq)
}

// prepare opens the file. If this process has not written it completely, or its size is wrong, prepare writes it first.
func (l *directLane) prepare() error {
	l.page.direct.Store(0)
	if err := l.open(); err != nil {
		return err
	}
	if l.written && l.complete() {
		return l.settle()
	}
	closeFD(&l.fd)
	if err := l.fill(); err != nil {
		return err
	}
	l.written = true
	if err := l.open(); err != nil {
		return err
	}
	return l.settle()
}

func (l *directLane) open() error {
	flags := unix.O_RDWR | unix.O_CREAT
	if !l.buffered {
		fd, err := open(l.path, flags|unix.O_DIRECT|unix.O_DSYNC)
		if err == nil || !refused(err) {
			l.fd = fd
			return err
		}
		l.buffered = true
	}
	fd, err := open(l.path, flags)
	l.fd = fd
	return err
}

func (l *directLane) complete() bool {
	var stat unix.Stat_t
	return unix.Fstat(l.fd, &stat) == nil && stat.Size == directBlocks*blockSize
}

// settle writes one block without measuring it, because some file systems accept O_DIRECT in open but refuse it in the
// first write.
func (l *directLane) settle() error {
	err := l.write()
	if err != nil && !l.buffered && refused(err) {
		l.buffered = true
		closeFD(&l.fd)
		if err = l.open(); err == nil {
			err = l.write()
		}
	}
	if err == nil && !l.buffered {
		l.page.direct.Store(1)
	}
	return err
}

func refused(err error) bool { return err == syscall.EINVAL || err == syscall.EOPNOTSUPP }

// fill writes the whole file through the page cache, and syncs it.
func (l *directLane) fill() error {
	fd, err := open(l.path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeFD(&fd)
	for i := range int64(directBlocks) {
		fillBlock(l.block, 0)
		if err := writeAt(fd, l.block, i*blockSize); err != nil {
			return err
		}
	}
	return uninterrupted(func() error { return unix.Fsync(fd) })
}
