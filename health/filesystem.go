// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"
)

// The codes of the checks of the file system.
const (
	FileSystemReadOnly Code = "FILESYSTEM_READ_ONLY"
	FileSystemErrors   Code = "FILESYSTEM_ERRORS"
	InodesLow          Code = "INODES_LOW"
)

// FileSystem is what the kernel reports about the file system of etcd's data.
type FileSystem struct {
	Type string // type of the file system, such as "ext4"
	// ReadOnly is 1 while the file system is mounted read-only, and 0 otherwise.
	ReadOnly Figure
	// Errors counts the errors found in the file system since it was last checked, and LastError is the time of the
	// last one, by the wall clock; zero if unknown.
	Errors    Figure
	LastError time.Time
	// Unsafe is the mount option that keeps the file system from flushing the device, so that acknowledged writes may
	// be lost; empty if there is none.
	Unsafe string
}

// inMemory reports whether the file system is in memory and has no device.
func (s FileSystem) inMemory() bool { return s.Type == "tmpfs" || s.Type == "ramfs" }

// inodesLow and inodesLeave are the percentages of free inodes below which the finding begins, and at which it ends.
const inodesLow, inodesLeave = 5, 7

// checkReadOnly is the check of whether the file system is writable. The probe detects a read-only file system as well,
// but only this check reports the cause.
var checkReadOnly = advice{
	name: "readonly", component: Disk,
	source: "the options of the file system of etcd's data in /proc/self/mountinfo",
	limit:  Limit{Of: "read-only file systems of etcd's data", Unit: "file systems"},
	code:   FileSystemReadOnly,
	title:  "The file system of etcd's data is read-only.",
	meaning: "It was mounted read-only, or the kernel made it read-only after finding corruption. etcd cannot " +
		"write there.",
	remedy: "check 'journalctl -k' for the cause; unmount the file system, repair it (fsck or xfs_repair) and mount " +
		"it read-write again",
	measure: func(a advice, at *track) evidence {
		unknown := func(p place) string { return p.FileSystem.ReadOnly.absent() }
		return lists(0, time.Minute, listed{
			bad:     "the file system is read-only",
			well:    "the file system is writable",
			missing: func(in Input) string { return in.missing(unknown) },
			partly:  func(in Input) []string { return in.partly(unknown) },
			look: func(in Input, _ bool) (found []string) {
				for _, p := range in.places() {
					if p.FileSystem.ReadOnly.Value != 0 {
						found = append(found, fmt.Sprintf("the %s file system of %s is read-only",
							p.FileSystem.Type, p.of))
					}
				}
				return found
			},
		})(a, at)
	},
}

// checkDamage is the check of damage that the file system detected. The file system records the damage on the disk
// until an operator runs fsck.
var checkDamage = advice{
	name: "damage", component: Disk,
	source: "errors_count of ext4; other file systems have none",
	limit:  Limit{Of: "recorded errors", Unit: "since the last fsck"},
	code:   FileSystemErrors,
	title:  "The file system of etcd's data is corrupted.",
	meaning: "The kernel recorded an error in it that has not been repaired since. Files may be damaged, " +
		"and the next error may make it read-only.",
	remedy: "check 'journalctl -k -g EXT4-fs' for the error; during maintenance, unmount the file system and run " +
		"'e2fsck -f'",
	measure: func(a advice, at *track) evidence {
		unknown := func(p place) string { return p.FileSystem.Errors.absent() }
		return lists(0, time.Minute, listed{
			bad:     "the file system has recorded errors",
			well:    "the file system has recorded no error",
			missing: func(in Input) string { return in.missing(unknown) },
			partly:  func(in Input) []string { return in.partly(unknown) },
			look: func(in Input, _ bool) (found []string) {
				for _, p := range in.places() {
					if p.FileSystem.Errors.Value != 0 {
						found = append(found, "the "+p.FileSystem.damage(p.of))
					}
				}
				return found
			},
		})(a, at)
	},
}

// damage describes the errors recorded in the file system. of is the part of etcd's data on it.
func (s FileSystem) damage(of string) string {
	text := fmt.Sprintf("%s file system of %s has recorded %s, limit 0", s.Type, of,
		plural(int(s.Errors.Value), "error"))
	if !s.LastError.IsZero() {
		text += ", the last on " + s.LastError.UTC().Format("2006-01-02 15:04:05Z")
	}
	return text
}

// checkInodes is the check of free inodes.
var checkInodes = advice{
	name: "inodes", component: Disk,
	source: "statfs of the file system that the probe writes to, and of the file system of etcd's database",
	limit:  Limit{Of: "free inodes", Unit: "%", Enter: inodesLow, Leave: inodesLeave, Below: true},
	code:   InodesLow,
	title:  "The file system of etcd's data is running out of inodes.",
	meaning: "Without free inodes no file can be created. etcd creates a file for every 64 MB of its WAL; " +
		"if it cannot, it stops as if the disk were full.",
	remedy: "check 'df -i'; remove the many small files from the file system of etcd's data, and stop what creates " +
		"them",
	measure: func(a advice, at *track) evidence {
		var of string
		return exceeds(time.Minute, time.Minute,
			func(in Input) (f Figure) {
				f, of = in.inodes()
				return f
			},
			func(n float64, l Limit) string {
				return fmt.Sprintf("%.1f %% of the inodes%s are free, limit %.0f %%", n, of, l.Enter)
			},
		)(a, at)
	},
}

// inodes returns the percentage of free inodes.
func (d DiskReading) inodes() Figure {
	switch {
	case d.Total == 0:
		return Figure{}
	case d.UsageAge > usageFresh:
		return Figure{Absent: "the file system does not respond"}
	}
	return inodesOf(d.InodesFree, d.Inodes)
}

func inodesOf(free, all uint64) Figure {
	if all == 0 {
		return Figure{Absent: "the file system has no fixed number of inodes"}
	}
	return Figure{Value: 100 * float64(min(free, all)) / float64(all), Known: true}
}

// absent returns why there is no chain of devices; empty if there is one.
func (d DevicesReading) absent() string {
	if len(d.Chain) > 0 {
		return ""
	}
	return cmp.Or(d.Absent, notYet)
}
