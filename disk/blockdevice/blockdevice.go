// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package blockdevice reads the kernel's counters of block devices, which show whether a device makes progress while an
// operation on it hangs. It promises to read only sysfs, so it touches no disk.
package blockdevice

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	counters "github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"
)

// ErrNone means that a device number has no block device: tmpfs, FUSE, overlay, btrfs, ZFS and network file
// systems have numbers of their own. Whether the device of such a file system makes progress is unknown.
var ErrNone = errors.New("no block device with this number")

// Progress counts the requests that a whole block device has completed since it appeared. Growth between two readings
// proves that the device makes progress, even if a single operation hangs; I/O in flight without growth indicates a
// stall.
type Progress struct {
	// Name is the name of the whole disk: "sda" for sda2.
	Name string
	// Writes and Flushes are completed requests, with their total time. On Linux before 5.5, and on device-mapper and
	// md devices, Flushes may always be 0; then only Writes counts.
	Writes, Flushes      uint64
	WriteTime, FlushTime time.Duration
	// InFlight is the current number of reads and writes.
	InFlight uint64
}

// Devices reads the kernel's counters of block devices. It reads only sysfs, so it does not touch any disk.
type Devices struct {
	fs  counters.FS
	sys string
}

// New returns a reader of the counters. proc and sys are the mount points of proc and sysfs; empty means
// /proc and /sys.
func New(proc, sys string) (*Devices, error) {
	if proc == "" {
		proc = "/proc"
	}
	if sys == "" {
		sys = "/sys"
	}
	fs, err := counters.NewFS(proc, sys)
	if err != nil {
		return nil, fmt.Errorf("cannot read block device counters: %w; mount proc and sysfs", err)
	}
	return &Devices{fs: fs, sys: sys}, nil
}

// Progress returns the counters of the disk with this device number (st_dev); for a partition, it returns the counters
// of its whole disk. For a number without a block device the error is [ErrNone].
func (b *Devices) Progress(device uint64) (Progress, error) {
	number := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	name, err := b.wholeDisk(number)
	if err != nil {
		return Progress{}, fmt.Errorf("cannot find device %s: %w", number, err)
	}
	stat, _, err := b.fs.SysBlockDeviceStat(name)
	if errors.Is(err, os.ErrNotExist) {
		err = ErrNone // the device was unplugged a moment ago
	}
	if err != nil {
		return Progress{}, fmt.Errorf("cannot read the counters of %s: %w", name, err)
	}
	return Progress{
		Name:      name,
		Writes:    stat.WriteIOs,
		WriteTime: time.Duration(stat.WriteTicks) * time.Millisecond,
		Flushes:   stat.FlushRequestsCompleted,
		FlushTime: time.Duration(stat.TimeSpentFlushing) * time.Millisecond,
		InFlight:  stat.IOsInProgress,
	}, nil
}

// wholeDisk returns the name of the disk with this device number. The number's link in sysfs ends in the device's
// directory, which is inside the disk's directory if the device is a partition. The agent reads the counters in every
// round, so wholeDisk reads the link without resolving every part.
func (b *Devices) wholeDisk(number string) (string, error) {
	device := filepath.Join(b.sys, "dev", "block", number)
	dir, err := os.Readlink(device)
	if errors.Is(err, os.ErrNotExist) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	return filepath.Base(dir), nil
}
