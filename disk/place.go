// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"github.com/shirou/gopsutil/v3/disk"
	"golang.org/x/sys/unix"
)

const lockName = "lock"

// place is the probe directory. Only one probe uses it, and it is on the file system of the target.
type place struct {
	*watched
	dir, target string
	lock        int
	exam        bool
}

func newPlace(w *watched, set settings) *place {
	return &place{watched: w, dir: set.dir, target: set.target, lock: -1, exam: set.exam}
}

// claim locks and checks the directory, unless it has already done so. The lock ends with the process, and a process
// that is stuck in the kernel keeps it, so a stalled disk never has two probes waiting on it.
func (p *place) claim() error {
	if p.lock >= 0 {
		return nil
	}
	if err := p.do(opOpen, p.enter); err != nil {
		return err
	}
	err := p.do(opLock, func() error {
		return uninterrupted(func() error { return unix.Flock(p.lock, unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err == nil {
		err = p.do(opDevice, p.compare)
	}
	if err != nil {
		p.release()
	}
	return err
}

// release drops the directory, so that the next claim checks everything again. The directory may have been removed, or
// a different file system may have been mounted over it.
func (p *place) release() { closeFD(&p.lock) }

// enter opens the lock file. It creates the file and the directory only if they are missing: on a stalled disk, any
// change would hang before claim could detect that a stuck probe holds the lock.
func (p *place) enter() (err error) {
	if p.exam {
		if err := p.own(); err != nil {
			return err
		}
	}
	path := filepath.Join(p.dir, lockName)
	if p.lock, err = open(path, unix.O_RDONLY); err != syscall.ENOENT {
		return err
	}
	err = uninterrupted(func() error { return unix.Mkdir(p.dir, 0o700) })
	if err != nil && err != syscall.EEXIST {
		return err
	}
	p.lock, err = open(path, unix.O_RDONLY|unix.O_CREAT)
	return err
}

// compare returns EXDEV if the directory and the target are on different file systems.
func (p *place) compare() error {
	here, err := deviceOf(p.dir)
	if err != nil {
		return err
	}
	there, err := nearestDevice(p.target)
	if err != nil {
		return err
	}
	p.page.device.Store(here)
	if here != there {
		return syscall.EXDEV
	}
	return nil
}

// nearestDevice returns the device of a path, or of its nearest existing ancestor.
func nearestDevice(path string) (uint64, error) {
	for {
		device, err := deviceOf(path)
		if parent := filepath.Dir(path); (err == syscall.ENOENT || err == syscall.ENOTDIR) && parent != path {
			path = parent
			continue
		}
		return device, err
	}
}

func deviceOf(path string) (uint64, error) {
	var stat unix.Stat_t
	err := uninterrupted(func() error { return unix.Stat(path, &stat) })
	return uint64(stat.Dev), err //nolint:unconvert // it is 32 bits wide on some architectures
}

// run reads the free space, and checks that the target is still on the same file system, because a different file
// system may have been mounted in the meantime.
func (p *place) run() error {
	return errors.Join(p.do(opDevice, p.compare), p.do(opUsage, p.usage))
}

func (p *place) usage() error {
	usage, err := disk.UsageWithContext(context.Background(), p.dir)
	if err != nil {
		return err
	}
	now := Monotonic()
	p.page.inodes.put(uint64(now), usage.InodesTotal, usage.InodesFree, 0)
	p.page.usage.put(uint64(now), usage.Total, usage.Free, uint64(now))
	return nil
}
