// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"syscall"
	"time"
)

// Lane is one of the two ways of writing a sample.
type Lane uint8

const (
	// LaneDirect overwrites written blocks, bypassing the page cache. It measures little besides the device.
	LaneDirect Lane = iota
	// LaneWAL appends and syncs as etcd does for its write-ahead log. It measures device, file system and journal.
	LaneWAL
)

// String returns the lane's name for labels and logs: "direct" or "wal".
func (l Lane) String() string {
	if l == LaneWAL {
		return "wal"
	}
	return "direct"
}

// Sample is one write that became durable, or failed to.
type Sample struct {
	Lane Lane
	// End is when the write completed or failed, on the clock of [Monotonic].
	End time.Duration
	// Latency is the time spent in the write; in LaneWAL, the time of the slower call, write or sync.
	Latency time.Duration
	// Contaminated means CPU starvation during the write: the latency is no evidence about the disk.
	Contaminated bool
	// Errno is 0 for a successful write. The latency of a failed write does not measure the disk.
	Errno syscall.Errno
}

// The operations of the child, as named by [Probe.InFlight], [Reading] and [Failure].
const (
	OpNone    = ""                  // nothing in flight
	OpOpen    = "open directory"    // creating the directory, opening the lock file
	OpLock    = "lock"              // flock on the lock file
	OpDevice  = "compare device"    // stat of the directory and of the target
	OpUsage   = "statfs"            // free space
	OpPrepare = "direct prepare"    // writing or opening the file of LaneDirect
	OpDirect  = "direct write+sync" // a sample of LaneDirect
	OpVerify  = "direct verify"     // reading back
	OpRotate  = "wal rotate"        // a new file for LaneWAL
	OpWAL     = "wal write+sync"    // a sample of LaneWAL
)

// opCode is an operation in the shared page.
type opCode uint8

const (
	opNone opCode = iota
	opOpen
	opLock
	opDevice
	opUsage
	opPrepare
	opDirect
	opVerify
	opRotate
	opWAL
)

func (o opCode) String() string {
	names := [...]string{OpNone, OpOpen, OpLock, OpDevice, OpUsage, OpPrepare, OpDirect, OpVerify, OpRotate, OpWAL}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Reading is the state of the probe at one moment.
type Reading struct {
	// Samples are the writes completed since the previous reading, oldest first.
	Samples []Sample
	// Lost counts the samples since the previous reading that were not fetched in time. Outside an examination, it
	// takes more than a minute of full burst without a reading to lose one.
	Lost uint64

	// InFlight names the operation in flight, OpNone if there is none, and InFlightAge its age.
	InFlight    string
	InFlightAge time.Duration

	// NextDirect and NextWAL are the times until the lane's next write. A negative time means that the write is
	// overdue: an operation is in flight, the child gets no CPU time, or there is no child. Each is 0 before the first
	// write of its lane.
	NextDirect, NextWAL time.Duration

	// Failure is the last error of any operation since the probe was started, nil if there was none.
	Failure *Failure
	// Usage is the space of the file system, nil while unknown.
	Usage *Usage
	// Device is the device number (st_dev) of the probe directory, 0 while unknown.
	Device uint64
	// Direct means that LaneDirect bypasses the page cache. It is false before the first write, and if the file system
	// refuses O_DIRECT.
	Direct bool

	// Alive means that there is a child, stuck or not; PID is its process ID. Restarts counts the children started
	// after the first.
	Alive    bool
	PID      int
	Restarts uint64
}

// Usage is the space of the probe's file system, in bytes and inodes.
type Usage struct {
	Total uint64
	Free  uint64 // available to users other than root, without the file system's reserve
	// Inodes is how many files the file system can have, and InodesFree is how many more can be created; both are 0 if
	// there is no such limit.
	Inodes, InodesFree uint64
	Age                time.Duration
}

// Failure is an error of the disk, or of the path to it. errors.Is finds its Errno.
type Failure struct {
	Op string // one of the Op names
	// Errno is EBADMSG if the disk returned different data from what was written, and EXDEV if the directory and the
	// target are on different file systems.
	Errno  syscall.Errno
	Age    time.Duration
	Count  uint64 // number of failures since the probe was started, including this one
	Dir    string // the probe directory
	Target string // the path that must be on the same file system
}

// Error returns what failed and what to do about it.
func (f *Failure) Error() string {
	return fmt.Sprintf("cannot probe the disk in %s: %s: %s; %s", f.Dir, f.Op, f.Cause(), f.Remedy())
}

// Unwrap returns the errno.
func (f *Failure) Unwrap() error { return f.Errno }

// Cause returns what went wrong.
func (f *Failure) Cause() string {
	switch f.Errno {
	case syscall.EBADMSG:
		return "read back different data from what was written"
	case syscall.EXDEV:
		return "not on the file system of " + f.Target
	case syscall.EWOULDBLOCK:
		return "another probe uses the directory"
	default:
		return f.Errno.Error()
	}
}

// Remedy returns what to do about the failure.
func (f *Failure) Remedy() string {
	switch f.Errno {
	case syscall.EBADMSG:
		return "take this machine out of service and replace the disk"
	case syscall.EXDEV:
		return "configure a probe directory on that file system"
	case syscall.EWOULDBLOCK:
		return "stop the other agent, or give each agent its own directory"
	case syscall.EACCES, syscall.EPERM:
		return "grant the probe's user read, write and search permission"
	case syscall.ENOENT, syscall.ENOTDIR:
		return "create the parent directory, or mount the file system"
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return "free space or raise the limit"
	case syscall.EROFS:
		return "check the kernel log for why the file system is read-only, and repair it"
	default:
		return "check the kernel log and the drive's SMART data"
	}
}
