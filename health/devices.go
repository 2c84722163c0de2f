// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// DevicesReading is what the kernel tells of the block devices below etcd's data, at one moment. The zero value says
// that nothing is known.
type DevicesReading struct {
	// Chain holds the devices from the one with the file system down to those that lie on no other, its leaves.
	Chain []Device
	// Absent says why there is none, without numbers that change.
	Absent string
	// At is the moment of the look, on the clock of [Input].
	At time.Duration
	// Arrays are the RAID arrays of the chain, and FileSystem is the file system at its top.
	Arrays     []Array
	FileSystem FileSystem
}

// Device is a block device. What the kernel does not tell of it is empty.
type Device struct {
	Name  string   // the kernel's
	Kind  string   // "disk", "partition", "raid", "loop", "memory", "lvm", "crypt", "multipath", "dm"
	Label string   // the name that people have given to a device of the device mapper
	On    []string // the devices that it lies on; none for a leaf
	// Suspended says that the device mapper keeps back whatever is written to it, because somebody told it to.
	Suspended bool

	// What follows is told of leaves.

	Model, Serial string
	Medium        string // "rotating" or "solid"
	// HangsOn are the NVMe controllers or the ATA port that it is reached by, as the kernel's log names them.
	HangsOn []string
	// Cache is "write back" when the kernel has to flush the device before a write is durable, and "write through" when
	// it relies on the device to keep what it has acknowledged.
	Cache string
	// OwnCache is what a SCSI or SATA drive says of its cache itself; a person may have told the kernel otherwise.
	OwnCache string
	// Errors are commands that it did not answer in time, as SCSI counts them; of a leg of a RAID array also what could
	// not be read from it.
	Errors Figure
	// Traffic is what it has done; the device at the top tells of it too.
	Traffic Traffic
}

// Traffic is what a device has done since it appeared. It is known when Known says so.
type Traffic struct {
	Known                bool
	Writes, Flushes      uint64
	Written, Read        uint64        // bytes
	WriteTime, FlushTime time.Duration // that they took in sum
	Busy                 time.Duration // in which it had anything to do
	InFlight             uint64        // what it has at this moment
}

// Leaf reports whether the device lies on no other.
func (d Device) Leaf() bool { return len(d.On) == 0 }

// SilentDevices is the reading of devices that tell nothing, and why.
func SilentDevices(why string) DevicesReading {
	f := Figure{Absent: why}
	return DevicesReading{Absent: why, FileSystem: FileSystem{ReadOnly: f, Errors: f}}
}

// declareDevices declares the checks of what lies under etcd's data.
func declareDevices() []declaration {
	return []declaration{
		declareReadOnly(), declareDamage(), declareInodes(), declareRAID(), declareResync(), declareDeviceErrors(),
		declareLogged(),
		declareDurability(),
	}
}
