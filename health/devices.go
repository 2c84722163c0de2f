// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// DevicesReading is what the kernel tells of the block devices below etcd's data, at one moment. The zero value says
// that nothing is known.
type DevicesReading struct {
	// Chain holds the devices from the one with the file system down to those that lie on no other, its leaves.
	Chain []Device
	// Absent says why there is none, without numbers that change.
	Absent string
}

// Device is a block device. What the kernel does not tell of it is empty.
type Device struct {
	Name  string   // the kernel's
	Kind  string   // "disk", "partition", "raid", "loop", "lvm", "crypt", "multipath", "dm"
	Label string   // the name that people have given to a device of the device mapper
	On    []string // the devices that it lies on; none for a leaf

	// What follows is told of leaves.

	Model, Serial string
	Medium        string // "rotating" or "solid"
	// Cache is "write back" when the kernel has to flush the device before a write is durable, and "write through" when
	// it relies on the device to keep what it has acknowledged.
	Cache string
}

// Leaf tells whether the device lies on no other.
func (d Device) Leaf() bool { return len(d.On) == 0 }

// SilentDevices is the reading of devices that tell nothing, and why.
func SilentDevices(why string) DevicesReading { return DevicesReading{Absent: why} }
