// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// The sizes of a host's disks. Their images are sparse files.
const (
	diskSize  = 6 << 30 // a database of 1 GB, its log, and 2 GB that must be free for a copy of it
	stateSize = 32 << 20
)

// Disk is a disk of a host: a real ext4 on a loop device. Files outside a host's disks are on the machine's own disk,
// which never loses power.
type Disk struct {
	dir   string // directory with the image and the mount point
	holds string // the path on the host at which the disk is mounted
	size  int64
	// the file system with faults that holds the image, if the lab was created with Options.Faultfs
	mount  *testbed.Mount
	device string // name of the loop device, such as loop3, while mounted
}

func (d *Disk) image() string { return filepath.Join(d.dir, "image", "disk") }

// Path returns the mount point of the disk on the machine.
func (d *Disk) Path() string { return filepath.Join(d.dir, "mounted") }

// source returns the directory on the disk that is mounted into the host.
func (d *Disk) source() string { return filepath.Join(d.Path(), filepath.Base(d.holds)) }

// make creates the file system, or copies the image of an earlier one. With Options.Faultfs the image is on a faultfs,
// which can slow the disk down.
func (d *Disk) make(ctx context.Context, faultfs, from string) error {
	image, back := filepath.Dir(d.image()), filepath.Join(d.dir, "back")
	if err := errors.Join(os.MkdirAll(image, 0o755), os.MkdirAll(back, 0o755),
		os.MkdirAll(d.Path(), 0o755)); err != nil {
		return err
	}
	if faultfs != "" {
		var err error
		if d.mount, err = testbed.StartFaultfs(faultfs, back, image); err != nil {
			return err
		}
	}
	if from != "" {
		_, err := machine(ctx, "", "cp", "--sparse=always", from, d.image())
		return err
	}
	if err := os.WriteFile(d.image(), nil, 0o644); err != nil {
		return err
	}
	if err := os.Truncate(d.image(), d.size); err != nil {
		return err
	}
	_, err := machine(ctx, "", "mkfs.ext4", "-q", "-F", d.image())
	return err
}

// attach mounts the disk, which replays its journal.
func (d *Disk) attach(ctx context.Context) error {
	if d.device != "" {
		return nil
	}
	if _, err := machine(ctx, "", "mount", "-o", "loop,errors=remount-ro", d.image(), d.Path()); err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " "+d.Path()+" ") {
			_, after, _ := strings.Cut(line, " - ext4 /dev/")
			d.device, _, _ = strings.Cut(after, " ")
		}
	}
	if d.device == "" {
		return fmt.Errorf("cannot find the device of %s", d.Path())
	}
	return nil
}

// detach unmounts the file system and waits until the kernel has released it: the last mount namespace of a dead host
// ends a little later.
func (d *Disk) detach(ctx context.Context) error {
	if d.device == "" {
		return nil
	}
	mounted := true
	err := until(ctx, d.Path()+" is unmounted", func() bool {
		mounted = mounted && unix.Unmount(d.Path(), 0) != nil
		_, err := os.Stat("/sys/fs/ext4/" + d.device)
		return !mounted && os.IsNotExist(err)
	})
	if err == nil {
		d.device = ""
	}
	return err
}

// cutPower discards unflushed writes: the file system shuts down at once and leaves its journal as it is on the disk.
func (d *Disk) cutPower() error {
	const (
		goingDown  = 0x8004587d // EXT4_IOC_SHUTDOWN
		noLogFlush = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
	)
	dir, err := os.Open(d.Path())
	if err != nil {
		return err
	}
	defer dir.Close()
	flags := uint32(noLogFlush)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), goingDown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("cannot shut %s down: %w", d.Path(), errno)
	}
	return nil
}

// Break makes every read and write fail from now on, as if the device had disappeared. A power loss of the host repairs
// it.
func (d *Disk) Break() error { return d.cutPower() }

// fillName is the file that fills the disk.
const fillName = ".full"

// Fill fills the disk to the last block.
func (d *Disk) Fill() error {
	file, err := os.Create(filepath.Join(d.Path(), fillName))
	if err != nil {
		return err
	}
	defer file.Close()
	size := int64(0)
	for chunk := int64(64 << 20); chunk >= 4096; { // halve the size of the chunks until nothing fits any more
		switch err := unix.Fallocate(int(file.Fd()), 0, size, chunk); {
		case err == nil:
			size += chunk
		case errors.Is(err, unix.ENOSPC):
			chunk /= 2
		default:
			return fmt.Errorf("cannot fill the disk: %w", err)
		}
	}
	return nil
}

// Empty removes the file that Fill has written.
func (d *Disk) Empty() error { return os.Remove(filepath.Join(d.Path(), fillName)) }

// Slow delays every flush of the device by the given time. The lab must have been created with Options.Faultfs.
func (d *Disk) Slow(by time.Duration) error { return d.rule("fsync * delay=" + by.String()) }

// Hang makes every flush of the device wait until Repair. The lab must have been created with Options.Faultfs.
func (d *Disk) Hang() error { return d.rule("fsync * hang") }

// Repair ends Slow and Hang.
func (d *Disk) Repair() error {
	if d.mount == nil {
		return errNoFaults
	}
	return d.mount.Clear()
}

// release ends every fault that may block the host's processes.
func (d *Disk) release() error {
	if d.mount == nil {
		return nil
	}
	return d.mount.Clear()
}

// discard unmounts the disk of a powered-off host, and its faultfs.
func (d *Disk) discard(ctx context.Context) error {
	err := d.detach(ctx)
	if d.mount != nil {
		err = errors.Join(err, d.mount.Unmount())
	}
	return err
}

var errNoFaults = errors.New("cannot make the disk slow: the lab was created without Options.Faultfs")

func (d *Disk) rule(rule string) error {
	if d.mount == nil {
		return errNoFaults
	}
	return d.mount.Rule(rule)
}
