// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// search finds an etcd among the processes of a machine. Its limits bound the search on a machine with very many
// processes. It reads only /proc and sysfs, never the disk.
type search struct {
	proc      string
	processes int // maximum number of processes to check
	files     int // maximum number of open files to check, of all etcd processes together
	time      time.Duration
}

// usualSearch returns a search of this machine with the usual limits.
func usualSearch() *search {
	return &search{proc: procfs.DefaultMountPoint, processes: 1 << 16, files: 1 << 14, time: 3 * time.Second}
}

// neighbour is the result of a search.
type neighbour struct {
	pid    int    // process ID of an etcd that has files open for writing on the disk; 0 if none was found
	hidden int    // process ID of an etcd whose open files cannot be read
	cut    string // why the search was incomplete
}

// etcdOn searches for an etcd that has files open for writing on the disk with this device number.
func (s *search) etcdOn(device uint64) (found neighbour) {
	began := time.Now()
	fs, err := procfs.NewFS(s.proc)
	if err != nil {
		return neighbour{cut: err.Error()}
	}
	all, err := os.Open(s.proc)
	if err != nil {
		return neighbour{cut: err.Error()}
	}
	defer all.Close()
	for {
		names, err := all.Readdirnames(256)
		if err != nil {
			return found // the end of the directory: reading /proc returns no other error
		}
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if s.processes--; s.processes < 0 || time.Since(began) > s.time {
				found.cut = "there are too many processes to check"
				return found
			}
			p, err := fs.Proc(pid)
			if err != nil {
				continue // the process has exited
			}
			if name, err := p.Comm(); err != nil || name != "etcd" {
				continue
			}
			switch writes, err := s.writesTo(p, device, began); {
			case writes:
				return neighbour{pid: pid}
			case errors.Is(err, errTooManyFiles):
				found.cut = fmt.Sprintf("etcd, process %d, has too many files open to check", pid)
				return found
			case err != nil:
				found.hidden = pid
			}
		}
	}
}

var errTooManyFiles = errors.New("too many files")

// writesTo reports whether a process has a file open for writing on the disk with this device number.
func (s *search) writesTo(p procfs.Proc, device uint64, began time.Time) (bool, error) {
	mounts, err := p.MountInfo()
	if err != nil {
		return false, err
	}
	numbers := map[string]uint64{}
	for _, m := range mounts {
		var major, minor uint32
		if _, err := fmt.Sscanf(m.MajorMinorVer, "%d:%d", &major, &minor); err == nil {
			numbers[strconv.Itoa(m.MountID)] = unix.Mkdev(major, minor)
		}
	}
	open, err := os.Open(filepath.Join(s.proc, strconv.Itoa(p.PID), "fd"))
	if err != nil {
		return false, err
	}
	defer open.Close()
	files, err := open.Readdirnames(s.files + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	disk, seen := deviceName(device), map[uint64]bool{}
	for _, name := range files {
		if s.files--; s.files < 0 || time.Since(began) > s.time {
			return false, errTooManyFiles
		}
		f, err := p.FDInfo(name)
		if err != nil {
			continue // the process has closed it
		}
		flags, err := strconv.ParseUint(f.Flags, 8, 64)
		other, known := numbers[f.MntID]
		if err != nil || !known || flags&unix.O_ACCMODE == unix.O_RDONLY || seen[other] {
			continue
		}
		seen[other] = true
		if other == device || disk != "" && deviceName(other) == disk {
			return true, nil
		}
	}
	return false, nil
}
