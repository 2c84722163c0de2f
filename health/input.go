// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"syscall"
	"time"
)

// Input is all there is to judge by at one moment. Every moment in it is a duration since boot on one clock of the
// kernel that all processes share, best CLOCK_MONOTONIC, on which the probe stamps its samples.
type Input struct {
	// Now is the present moment. One that lies before the last is taken for the last.
	Now time.Duration
	// Member says that this host has a member of the cluster, a learner included. True when in doubt: a host without
	// one has to pass a qualifying run.
	Member bool
	Disk   DiskReading
	// Hardware is what drives and sensors told last when they were asked.
	Hardware HardwareReading
	// Machine is what the kernel told last of the rest of the machine; it may be as old as a few rounds.
	Machine MachineReading
	// Devices is what the kernel told last of the devices below etcd's data; it may be as old.
	Devices DevicesReading
	// Database is what was seen last of the file system of etcd's database, where its log has another one; as old.
	Database DatabaseReading
	// Etcd is what the local etcd told last of itself; it may be as old as a few of its own looks.
	Etcd EtcdReading
	// Plugins is what the operator's own checks have said last.
	Plugins []ExternalCheckReading
	// Links is what the kernel told last of the interfaces that carry etcd's traffic; it may be as old.
	Links LinkReading
	// Discovery is the last answer to where the members are.
	Discovery DiscoveryReading
	// Network is who reaches whom, as far as the hosts have told.
	Network NetworkReading

	reset bool // an operator wants FAILED gone
}

// DiskReading is what the probe has to say since the reading before. The zero value means unknown.
type DiskReading struct {
	// Samples are the writes that came back since the reading before, oldest first, each given once. One that failed is
	// no sample; it shows in Err.
	Samples []Sample
	// InFlight is the age of the operation under way, 0 if there is none, and InFlightOp its name.
	InFlight   time.Duration
	InFlightOp string
	// NextIn is how long the probe wants to rest before its next write, 0 if it is due or not known.
	NextIn time.Duration
	// Alive says that the probe runs, stuck or not.
	Alive bool
	// Err is the last error of any operation, nil if there was none.
	Err *DiskError
	// Free and Total are the bytes of the file system, UsageAge the age of both. With a Total of 0 they are not known.
	Free, Total uint64
	UsageAge    time.Duration
	// Inodes are how many files it can have, and InodesFree how many of them it can still make. With 0 Inodes it knows
	// no such number.
	Inodes, InodesFree uint64
	// LastCompletion is the moment of the last write to this disk by somebody else, etcd first of all, that was seen to
	// become durable; 0 if not known. It vouches for the disk while the probe's own write hangs, for
	// [Thresholds.Stall], so it should be looked at twice as often as that.
	LastCompletion time.Duration
}

// Lane is how a sample was written.
type Lane uint8

// The lanes.
const (
	LaneDirect Lane = iota // overwrites a block past the page cache: the device and hardly anything else
	LaneWAL                // appends and syncs as etcd's write-ahead log does: device, file system and journal
)

// Sample is one write that became durable.
type Sample struct {
	Lane Lane
	// End is the moment it came back.
	End     time.Duration
	Latency time.Duration
	// Contaminated says that the processor was short meanwhile. Such a sample is never held against the disk.
	Contaminated bool
}

// DiskError is an error that an operation of the probe came back with.
type DiskError struct {
	Op    string
	Errno syscall.Errno
	At    time.Duration // the moment it came back
}

// broken reports whether the error means that the disk is broken, and not that the probe is kept from writing, and says
// it in words where the kernel's are misleading. The list is what Linux makes of the errors of a block device
// (block/blk-core.c), and of file systems that shut down or found themselves damaged.
func (e *DiskError) broken() bool {
	switch e.Errno {
	case syscall.EIO, syscall.EROFS, syscall.EBADMSG, syscall.EUCLEAN, syscall.ESHUTDOWN,
		syscall.ENODEV, syscall.ENXIO, syscall.ENODATA, syscall.EREMOTEIO, syscall.EILSEQ, syscall.ENOLINK,
		syscall.ETIMEDOUT:
		return true
	default:
		return false
	}
}

// refused tells that the probe did not get to the disk: another one is there, which the agent before this one may have
// left behind, stuck.
func (e *DiskError) refused() bool { return e.Errno == syscall.EWOULDBLOCK }

// String returns what failed and how.
func (e *DiskError) String() string {
	cause := e.Errno.Error()
	switch e.Errno {
	case syscall.EBADMSG:
		cause = "read back other bytes than were written"
	case syscall.ENODATA:
		cause = "medium error"
	case syscall.ENODEV, syscall.ENXIO:
		cause = "the device disappeared"
	case syscall.EWOULDBLOCK:
		cause = "another probe is running or stuck there"
	case syscall.EXDEV:
		cause = "the probe directory is not on the file system of etcd's data"
	}
	return e.Op + ": " + cause
}
