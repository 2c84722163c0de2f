// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"syscall"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// Input contains all readings that a judge uses, at one moment. Every time in it, except those of the wall clock, is a
// duration since boot on one kernel clock that all processes share, preferably CLOCK_MONOTONIC, which also stamps the
// probe's samples.
type Input struct {
	// Now is the current time. If it is before the Now of the previous input, that one counts instead.
	Now time.Duration
	// Member means that this host has a member of the cluster, including a learner. If in doubt, it is true, because a
	// host without a member has to pass a qualifying run.
	Member bool
	Disk   DiskReading
	// Hardware is the last report of drives, sensors, the kernel log and chronyd.
	Hardware HardwareReading
	// Machine is the kernel's last report on the rest of the machine; it may be a few rounds old.
	Machine MachineReading
	// Devices is the kernel's last report on the devices below etcd's data; it may also be a few rounds old.
	Devices DevicesReading
	// Database is the last reading of the file system of etcd's database, if the WAL is on a different one. It may also
	// be a few rounds old.
	Database DatabaseReading
	// Etcd is the local etcd's last report; it may be a few reading intervals old.
	Etcd EtcdReading
	// ExternalChecks are the last results of the operator's own checks.
	ExternalChecks []ExternalCheckReading
	// Links is the kernel's last report on the interfaces that carry etcd's traffic; it may also be a few rounds old.
	Links LinkReading
	// Discovery is the last answer of endpoint discovery.
	Discovery DiscoveryReading
	// Protected means that, according to the operator, a battery or capacitors protect the write caches under etcd's
	// data.
	Protected bool
	// Shared is where the other voters run.
	Shared SharedReading
	// Network is which hosts can reach each other, as far as the hosts have reported it.
	Network NetworkReading
	// Peers is how long the other voters' writes take, as their hosts publish it.
	Peers PeerWritesReading
	// Wall is the wall clock's time, or zero. It may jump: it only selects the day and the hour in [History].
	Wall time.Time

	reset bool // an operator has reset FAILED
}

// DiskReading is what the probe has reported since the previous reading. The zero value means unknown.
type DiskReading struct {
	// Samples are the writes that completed since the previous reading, each once, oldest first. A failed write is not
	// a sample; it is reported in Err.
	Samples []disk.Sample
	// InFlight is the age of the operation in flight, 0 if there is none, and InFlightOp its name.
	InFlight   time.Duration
	InFlightOp string
	// NextIn is how long the probe rests before its next write, 0 if it is due or unknown.
	NextIn time.Duration
	// Alive means that the probe is running, even if it is stuck.
	Alive bool
	// Err is the last error of any operation, nil if there was none.
	Err *DiskError
	// Free and Total are the free space and the size of the file system in bytes, and UsageAge is the age of both. If
	// Total is 0, they are unknown.
	Free, Total uint64
	UsageAge    time.Duration
	// Inodes is how many files the file system can have, and InodesFree how many more can be created. Inodes is 0 if
	// there is no such limit.
	Inodes, InodesFree uint64
	// LastCompletion is when a write of another program to this disk, usually etcd, was last observed to become
	// durable; 0 if unknown. For [Thresholds.Stall] it counts as evidence that the disk works even if the probe's own
	// write hangs, so it should be read at least twice in that time.
	LastCompletion time.Duration
}

// DiskError is an error returned by an operation of the probe.
type DiskError struct {
	Op    string
	Errno syscall.Errno
	At    time.Duration // when it was returned
}

// broken reports whether the error means that the disk is broken, rather than that the probe cannot write. It returns
// true for the errors to which Linux maps errors of block devices (block/blk-core.c), and for those of file systems
// that shut down or detected damage.
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

// refused reports whether another probe, perhaps a stuck probe of the previous agent, has locked the directory.
func (e *DiskError) refused() bool { return e.Errno == syscall.EWOULDBLOCK }

// String returns which operation failed and how.
func (e *DiskError) String() string {
	cause := e.Errno.Error()
	switch e.Errno {
	case syscall.EBADMSG:
		cause = (&disk.Failure{Errno: e.Errno}).Cause()
	case syscall.ENODATA:
		cause = "medium error"
	case syscall.ENODEV, syscall.ENXIO:
		cause = "the device disappeared"
	case syscall.EWOULDBLOCK:
		cause = "another probe, running or stuck, is using the directory"
	case syscall.EXDEV:
		cause = "the probe directory is not on the file system of etcd's WAL"
	}
	return e.Op + ": " + cause
}
