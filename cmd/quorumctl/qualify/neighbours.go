// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"fmt"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// mostFiles bounds how many open files of one etcd are looked at.
const mostFiles = 4096

// etcdBeside gives the process of an etcd that has files open for writing on the disk of a device number, 0 if there is
// none; hidden is one whose files may not be looked at. It asks /proc and sysfs only, never the disk.
func etcdBeside(device uint64) (pid, hidden int) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return 0, 0
	}
	for _, p := range procs {
		if name, err := p.Comm(); err != nil || name != "etcd" {
			continue
		}
		devices, err := writesTo(p)
		if err != nil {
			hidden = p.PID
			continue
		}
		for other := range devices {
			if name := deviceName(other); other == device || name != "" && name == deviceName(device) {
				return p.PID, 0
			}
		}
	}
	return 0, hidden
}

// writesTo gives the device numbers of the file systems on which a process has files open for writing.
func writesTo(p procfs.Proc) (map[uint64]bool, error) {
	mounts, err := p.MountInfo()
	if err != nil {
		return nil, err
	}
	numbers := map[string]uint64{}
	for _, m := range mounts {
		var major, minor uint32
		if _, err := fmt.Sscanf(m.MajorMinorVer, "%d:%d", &major, &minor); err == nil {
			numbers[strconv.Itoa(m.MountID)] = unix.Mkdev(major, minor)
		}
	}
	files, err := p.FileDescriptorsInfo()
	if err != nil {
		return nil, err
	}
	devices := map[uint64]bool{}
	for _, f := range files[:min(len(files), mostFiles)] {
		flags, err := strconv.ParseUint(f.Flags, 8, 64)
		if device, known := numbers[f.MntID]; err == nil && known && flags&unix.O_ACCMODE != unix.O_RDONLY {
			devices[device] = true
		}
	}
	return devices, nil
}
