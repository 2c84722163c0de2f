// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

// Health is the health state of the machine and its evidence.
type Health struct {
	State     string    `json:"state"` // UNKNOWN, QUALIFYING, OK, WARM, SLOW, STALLED or FAILED
	Since     time.Time `json:"since,omitzero"`
	Text      string    `json:"text,omitempty"`
	Remedy    string    `json:"remedy,omitempty"`
	Qualified bool      `json:"qualified"` // the disk has passed the qualifying run that a first join needs
	Findings  []Finding `json:"findings"`

	Mutes []health.Mute `json:"mutes,omitempty"` // muted findings
	// NotAvailable lists the optional checks and the individual devices that have no reading. They do not affect
	// the health state.
	NotAvailable []health.Absence `json:"notAvailable,omitempty"`
	Disk         Disk             `json:"disk"`
	// Devices are the block devices below etcd's data, from the one with the file system down to the leaves.
	Devices []Device `json:"devices,omitempty"`
	// Certificates are those that connections to etcd depend on, as far as this host can read them.
	Certificates []Certificate `json:"certificates,omitempty"`
}

// Certificate is an observed certificate.
type Certificate struct {
	Of    string    `json:"of"`   // own, ca, or member: presented by a member to clients or peers
	Name  string    `json:"name"` // the file, or the host and port that presents it
	Until time.Time `json:"until"`
	State string    `json:"state"` // OK, or WARM or SLOW if the certificate must be reissued
}

// Device is a block device and its state. Properties unknown to the kernel are absent.
type Device struct {
	health.Device
	// Errors counts commands that the device has not answered in time since boot and, for a member device of a RAID
	// array, also read errors. It is absent if the kernel does not count them.
	Errors *uint64 `json:"errors,omitempty"`
	// FlushSeconds is the mean duration of the device's flushes since boot.
	FlushSeconds float64 `json:"flushSeconds,omitempty"`
	// Array is the state of a RAID array.
	Array *health.Array `json:"array,omitempty"`
}

// Finding is a detected condition, or a measurement that is still missing.
type Finding struct {
	Code      string    `json:"code"`
	Component string    `json:"component"`
	State     string    `json:"state"` // the health state that this finding alone causes
	Text      string    `json:"text"`
	Remedy    string    `json:"remedy,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Muted     bool      `json:"muted,omitempty"` // an operator has muted the finding
	// Cause is the most likely cause of slow writes: processor, raid, other-writers, device, file-system or etcd. Why
	// is the evidence for it.
	Cause string `json:"cause,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Disk holds the measurements of the fsync probe on the file system of the etcd WAL.
type Disk struct {
	WAL             Lane    `json:"wal"`    // writes like those of etcd's WAL: append and fdatasync
	Direct          Lane    `json:"direct"` // writes to the device alone: direct synchronous overwrite
	InFlightSeconds float64 `json:"inFlightSeconds,omitempty"`
	InFlightOp      string  `json:"inFlightOp,omitempty"` // the call that has not returned yet; empty if there is none
	FreeBytes       uint64  `json:"freeBytes,omitempty"`
	// samples of the last minute excluded because of CPU starvation: they do not measure the disk
	LeftOut      uint64   `json:"leftOut,omitempty"`
	Samples      uint64   `json:"samples,omitempty"`    // samples taken in the last minute
	AgeSeconds   *float64 `json:"ageSeconds,omitempty"` // age of the newest sample
	LimitSeconds float64  `json:"limitSeconds"`         // limit of the P99 of WAL-like writes
}

// FsyncMinutes is the number of minutes for which the probe's measurements are kept.
const FsyncMinutes = 120

// FsyncMinute is one minute of the probe's WAL-like writes. Count is 0 if no write completed in it.
type FsyncMinute struct {
	Start         time.Time
	Count         uint64
	MedianSeconds float64
	MaxSeconds    float64
	// HungSeconds is the maximum age of a write in flight, as observed in that minute.
	HungSeconds float64
}

// Lane holds the figures of one lane of the probe (WAL-like or direct writes), in seconds. If Count is 0, the other
// figures have no meaning.
type Lane struct {
	P50   float64 `json:"p50Seconds,omitempty"`
	P99   float64 `json:"p99Seconds,omitempty"`
	Max   float64 `json:"maxSeconds,omitempty"`
	Count uint64  `json:"count"`
}
