// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"syscall"
	"time"
)

// Lane tells which of the two ways of writing a sample comes from.
type Lane uint8

const (
	// LaneDirect overwrites written blocks past the page cache: the device and hardly anything else.
	LaneDirect Lane = iota
	// LaneWAL appends and syncs as etcd's write-ahead log does: device, file system and journal.
	LaneWAL
)

// String returns the lane's name for labels and logs: "direct" or "wal".
func (l Lane) String() string {
	if l == LaneWAL {
		return "wal"
	}
	return "direct"
}

// Sample is one write that was made durable, or failed to be.
type Sample struct {
	Lane Lane
	// End is the moment it came back, on the clock of [Monotonic].
	End time.Duration
	// Latency is the time in the system calls, in LaneWAL that in the slower of the two.
	Latency time.Duration
	// Contaminated says that the processor was short meanwhile: the latency says little about the disk.
	Contaminated bool
	// Errno is 0 for a write that succeeded. The latency of one that failed is no measure of the disk.
	Errno syscall.Errno
}

// What the child can be at, as [Probe.InFlight], [Reading] and [Failure] name it.
const (
	OpNone    = ""                  // nothing in flight
	OpOpen    = "open directory"    // making the directory, opening the lock file
	OpLock    = "lock"              // flock on it
	OpDevice  = "compare device"    // stat of the directory and of the target
	OpUsage   = "statfs"            // space used
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

// Reading is what the probe has to say at one moment.
type Reading struct {
	// Samples are those completed since the reading before, oldest first.
	Samples []Sample
	// Lost counts the samples since the reading before that nobody fetched in time. It takes more than a minute of full
	// burst without a reading to lose one.
	Lost uint64

	// InFlight names the operation under way, OpNone if there is none, and InFlightAge its age.
	InFlight    string
	InFlightAge time.Duration

	// NextDirect and NextWAL tell how long until the lane's next turn. Negative: it is overdue by that much, because an
	// operation is in flight, or the child does not get to run. 0 before the first turn.
	NextDirect, NextWAL time.Duration

	// Failure is the last error of any operation since the probe was started, nil if there was none.
	Failure *Failure
	// Usage is the space of the file system, nil while it is not known.
	Usage *Usage
	// Device is the device number (st_dev) of the probe directory, 0 while it is not known.
	Device uint64
	// Direct says that LaneDirect goes past the page cache; false where the file system refuses that, or before the
	// first turn.
	Direct bool

	// Alive says that there is a child, stuck or not, and PID which. Restarts counts the children started after the
	// first.
	Alive    bool
	PID      int
	Restarts uint64
}

// Usage is the space of the file system the probe lives on, in bytes and inodes.
type Usage struct {
	Total uint64
	Free  uint64 // to ordinary users, which leaves out what the file system reserves
	// Inodes are how many files it can have, InodesFree how many more; both 0 where there is no such number.
	Inodes, InodesFree uint64
	Age                time.Duration
}

// Failure is an error the disk, or the way to it, gave to the child. errors.Is finds its Errno.
type Failure struct {
	Op string // one of the Op names
	// EBADMSG: the disk gave back other bytes than were written; EXDEV: the directory is on another file system than
	// the target
	Errno  syscall.Errno
	Age    time.Duration
	Count  uint64 // of failures since the probe was started, this one included
	Dir    string // the probe directory
	Target string // whose file system it must share
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
		return "read back other bytes than were written"
	case syscall.EXDEV:
		return "not on the file system of " + f.Target
	case syscall.EWOULDBLOCK:
		return "another probe is running there"
	default:
		return f.Errno.Error()
	}
}

// Remedy returns what to do about it.
func (f *Failure) Remedy() string {
	switch f.Errno {
	case syscall.EBADMSG:
		return "take this machine out of service and replace the disk"
	case syscall.EXDEV:
		return "configure a probe directory on that file system"
	case syscall.EWOULDBLOCK:
		return "stop the other agent, or give each its own directory"
	case syscall.EACCES, syscall.EPERM:
		return "grant the agent's user read, write and search permission"
	case syscall.ENOENT, syscall.ENOTDIR:
		return "create its parent directory, or mount its file system"
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return "free space or raise the limit"
	case syscall.EROFS:
		return "check the kernel log for why the file system is read-only, and repair it"
	default:
		return "check the kernel log and the drive's SMART data"
	}
}
