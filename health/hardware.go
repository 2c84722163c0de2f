// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "cmp"

// HardwareReading is what is asked for beside all else, since an answer may be long in coming: what the hardware tells
// of itself, drives and sensors, and what others on this host tell of it. The zero value says that nobody has asked.
type HardwareReading struct {
	Drives  Several[Drive]
	Sensors Several[Sensor]
	Logged  Several[LoggedErrors] // what the kernel's log holds against devices
	Time    TimeSource
	// TasksHung is of how many tasks the kernel's log has said since the boot that they hang.
	TasksHung Figure
}

// SilentHardware is the reading of hardware that tells nothing, and why.
func SilentHardware(why string) HardwareReading {
	return HardwareReading{
		Drives: Several[Drive]{Absent: why}, Sensors: Several[Sensor]{Absent: why},
		Logged: Several[LoggedErrors]{Absent: why}, Time: TimeSource{Absent: why}, TasksHung: Figure{Absent: why},
	}
}

// Several is what was read of things of one kind. The zero value means not measured.
type Several[T any] struct {
	All []T
	// Known says that somebody told, and Absent otherwise why not, without numbers that change.
	Known  bool
	Absent string
}

func (s Several[T]) absent() string {
	if s.Known {
		return ""
	}
	return cmp.Or(s.Absent, notYet)
}

// Drive is what a drive says of itself (SMART). What it does not tell is nil, or not there.
type Drive struct {
	Name   string `json:"name"` // as the kernel calls it: nvme0, sda
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	// Absent says why it tells nothing.
	Absent string `json:"absent,omitempty"`
	// Failed is its verdict on itself.
	Failed bool `json:"failed,omitempty"`
	// Warns says that it tells its critical warnings, as NVMe drives do; Warnings are those, as its log has the bits.
	Warns    bool  `json:"warns,omitempty"`
	Warnings uint8 `json:"warnings,omitempty"`
	// Spare is what is left of the blocks that stand in for worn ones, SpareLimit the least that is well, and Used how
	// much of its rated life is over, all in percent.
	Spare      *int `json:"spare,omitempty"`
	SpareLimit *int `json:"spareLimit,omitempty"`
	Used       *int `json:"used,omitempty"`
	// Errors are its counters of what it could not read or write as it should.
	Errors []DriveErrors `json:"errors,omitempty"`
}

// DriveErrors is one counter of a drive over its whole life.
type DriveErrors struct {
	Of string `json:"of"`
	N  uint64 `json:"n"`
}

// title names a drive so that a person finds it.
func (d Drive) title() string {
	if of := cmp.Or(d.Serial, d.Model); of != "" {
		return d.Name + " (" + of + ")"
	}
	return d.Name
}

// Sensor is one of the kernel's hardware monitors (hwmon).
type Sensor struct {
	Of    string // the device or the chip: nvme0, coretemp
	Label string // which one of its sensors
	// Drive says that it lies in one, and is a temperature; Limit is the highest that its maker allows, 0 if not told.
	Drive          bool
	Celsius, Limit float64
	// Alarm says that the chip itself finds the sensor beyond its limits, or broken.
	Alarm bool
}
