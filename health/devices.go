// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// DevicesReading is what the kernel reports about the block devices below etcd's data, at one moment. The zero value
// means unknown.
type DevicesReading struct {
	// Chain contains the devices from the one with the file system down to the leaves, which have no device below them.
	Chain []Device
	// Absent is the reason if there is no chain, as a stable text.
	Absent string
	// At is the time of the reading, on the clock of [Input].
	At time.Duration
	// Arrays are the RAID arrays of the chain, and FileSystem is the file system at its top.
	Arrays     []Array
	FileSystem FileSystem
}

// Device is a block device. Fields that the kernel does not report are empty.
type Device struct {
	Name  string   `json:"name"`            // the kernel's name
	Kind  string   `json:"kind"`            // disk, partition, raid, loop, memory, lvm, crypt, multipath or dm
	Label string   `json:"label,omitempty"` // the name that an operator gave to a device of the device mapper
	On    []string `json:"on,omitempty"`    // names of the devices directly below; none for a leaf
	// Suspended means that the device mapper holds back all writes to the device (dmsetup suspend).
	Suspended bool `json:"-"`

	// The following fields are set only for leaves, except Errors and Traffic.

	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	WWID   string `json:"-"`                // identifies the device worldwide
	Medium string `json:"medium,omitempty"` // rotating or solid
	// AttachedTo names the NVMe controllers or the ATA port of the device, as the kernel's log does.
	AttachedTo []string `json:"-"`
	// Cache is "write back" if the kernel has to flush the device to make a write durable, and "write through" if the
	// kernel relies on the device to keep acknowledged writes.
	Cache string `json:"cache,omitempty"`
	// OwnCache is what a SCSI or SATA drive itself reports about its cache; an administrator may have configured the
	// kernel differently.
	OwnCache string `json:"-"`
	// Errors counts the commands that timed out, as SCSI reports them. For a member device of a RAID array, the number
	// also includes failed reads.
	Errors Figure `json:"-"`
	// PCI is the PCI Express device that connects the leaf: the drive itself if it is an NVMe drive, otherwise its
	// controller.
	PCI PCIDevice `json:"-"`
	// Traffic is the I/O that the device has completed. Leaves have it, and so does the device at the top of the chain,
	// unless that is a partition.
	Traffic Traffic `json:"-"`
}

// PCIDevice is what the kernel reports about a PCI Express device.
type PCIDevice struct {
	Address string // such as 0000:02:00.0
	// Lanes is how many lanes its link uses, and MostLanes how many both ends of the link support; 0 if unknown.
	Lanes, MostLanes int
	// Corrected and Uncorrected count its errors since the boot (AER).
	Corrected, Uncorrected Figure
}

// Traffic counts the I/O of a device since the device appeared. It is valid only if Known is set.
type Traffic struct {
	Known                bool
	Writes, Flushes      uint64
	Written, Read        uint64        // bytes
	WriteTime, FlushTime time.Duration // total duration of the writes and of the flushes
	Busy                 time.Duration // time during which any request was in flight
	InFlight             uint64        // number of requests in flight now
}

// Leaf reports whether the device has no device below it.
func (d Device) Leaf() bool { return len(d.On) == 0 }
