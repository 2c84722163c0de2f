// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// Health is the verdict on the machine and what it rests on.
type Health struct {
	State     string    `json:"state"` // UNKNOWN, QUALIFYING, OK, WARM, SLOW, STALLED or FAILED
	Since     time.Time `json:"since,omitzero"`
	Text      string    `json:"text,omitempty"`
	Remedy    string    `json:"remedy,omitempty"`
	Qualified bool      `json:"qualified"` // has passed the run that a first join needs
	Findings  []Finding `json:"findings"`
	Mutes     []Mute    `json:"mutes,omitempty"` // what a person has said need not be told
	// NotAvailable lists the optional checks that have nothing to judge by on this machine. They count for nothing.
	NotAvailable []Absence `json:"notAvailable,omitempty"`
	Disk         Disk      `json:"disk"`
	// Devices are the block devices below etcd's data, from the one with the file system down to the leaves.
	Devices []Device `json:"devices,omitempty"`
	// Certificates are those that connections to etcd hang on, as far as this host sees them.
	Certificates []Certificate `json:"certificates,omitempty"`
}

// Certificate is one that was seen.
type Certificate struct {
	Of    string    `json:"of"`   // own, authority, or member for what a member shows to clients or peers
	Name  string    `json:"name"` // the file, or the host and port that shows it
	Until time.Time `json:"until"`
	State string    `json:"state"` // OK, or WARM or SLOW when somebody has to issue it anew
}

// Device is a block device. What the kernel does not tell of it is left out. Model to Cache are told of leaves.
type Device struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`            // disk, partition, raid, loop, memory, lvm, crypt, multipath or dm
	Label  string   `json:"label,omitempty"` // the name that people have given to a device of the device mapper
	On     []string `json:"on,omitempty"`    // the devices that it lies on; none for a leaf
	Model  string   `json:"model,omitempty"`
	Serial string   `json:"serial,omitempty"`
	Medium string   `json:"medium,omitempty"` // rotating or solid
	Cache  string   `json:"cache,omitempty"`  // write back or write through
	// Errors are commands that it has not answered in time, and of a leg of a RAID array also what could not be read
	// from it, since the boot; left out where the kernel does not count them.
	Errors *uint64 `json:"errors,omitempty"`
	// FlushSeconds is the mean of its flushes since the boot.
	FlushSeconds float64 `json:"flushSeconds,omitempty"`
	// Array is told of a RAID array.
	Array *Array `json:"array,omitempty"`
}

// Array is what a RAID array is and does.
type Array struct {
	Level   string   `json:"level"`
	Missing int      `json:"missing"`          // legs that it lacks
	Failed  []string `json:"failed,omitempty"` // those of them that are still there
	Doing   string   `json:"doing,omitempty"`  // idle, check, repair, resync, recover or reshape
	Done    float64  `json:"done,omitempty"`   // what part of that is done
}

// Absence says why an optional check has nothing to judge by.
type Absence struct {
	Check     string `json:"check"`
	Component string `json:"component"`
	Why       string `json:"why"`
}

// Finding is one thing that is wrong, or not known yet.
type Finding struct {
	Code      string    `json:"code"`
	Component string    `json:"component"`
	State     string    `json:"state"` // the verdict that this finding alone calls for
	Text      string    `json:"text"`
	Remedy    string    `json:"remedy,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Muted     bool      `json:"muted,omitempty"` // it is known: see Mutes
	// Cause is what writes are most likely slow because of: processor, raid, other-writers, device, file-system or
	// etcd. Why says what was measured that speaks for it.
	Cause string `json:"cause,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Disk is what the fsync probe measures on the file system of the etcd WAL.
type Disk struct {
	WAL             Lane    `json:"wal"`    // like etcd's WAL: append and fdatasync
	Direct          Lane    `json:"direct"` // the device alone: direct synchronous overwrite
	InFlightSeconds float64 `json:"inFlightSeconds,omitempty"`
	InFlightOp      string  `json:"inFlightOp,omitempty"` // the call that has not come back, empty when there is none
	FreeBytes       uint64  `json:"freeBytes,omitempty"`
	// of the last minute's Samples: the processor was short, so they say nothing about the disk and no figure counts
	// them
	LeftOut      uint64   `json:"leftOut,omitempty"`
	Samples      uint64   `json:"samples,omitempty"`    // taken in the last minute
	AgeSeconds   *float64 `json:"ageSeconds,omitempty"` // since the newest measurement
	LimitSeconds float64  `json:"limitSeconds"`         // what the P99 of the WAL lane has to stay under
}

// FsyncMinutes is how many minutes of what the probe has measured are kept.
const FsyncMinutes = 120

// FsyncMinute is what the WAL lane of the probe has measured in one minute. With a Count of 0 nothing came back in it.
type FsyncMinute struct {
	Start         time.Time
	Count         uint64
	MedianSeconds float64
	MaxSeconds    float64
	// HungSeconds is the age of the oldest write that had not come back when it was looked at.
	HungSeconds float64
}

// Lane holds the figures of one lane of the probe, in seconds. With a Count of 0 nothing was
// measured and the others mean nothing.
type Lane struct {
	P50   float64 `json:"p50Seconds,omitempty"`
	P99   float64 `json:"p99Seconds,omitempty"`
	Max   float64 `json:"maxSeconds,omitempty"`
	Count uint64  `json:"count"`
}
