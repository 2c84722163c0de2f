// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "cmp"

// HardwareReading is what is read separately because an answer may take long: what drives and sensors report about
// themselves, and what other programs on this host report about the hardware. The zero value means not read.
type HardwareReading struct {
	Drives  Several[Drive]
	Sensors Several[Sensor]
	Logged  Several[LoggedErrors] // the kernel log's errors of devices
	Time    TimeSource
	// TasksHung is the number of hung tasks in the kernel's log since the boot.
	TasksHung Figure
}

// Several is a reading of several items of one type. The zero value means not measured.
type Several[T any] struct {
	All []T
	// Known means that there was a reading; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
}

func (s Several[T]) absent() string {
	if s.Known {
		return ""
	}
	return cmp.Or(s.Absent, notYet)
}

// Drive is what a drive reports about itself (SMART). What it does not report is nil or missing.
type Drive struct {
	Name   string `json:"name"` // as the kernel calls it: nvme0, sda
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	// Absent is why it reports nothing.
	Absent string `json:"absent,omitempty"`
	// Failed is the drive's own health assessment.
	Failed bool `json:"failed,omitempty"`
	// Warns means that it reports its critical warnings, as NVMe drives do; Warnings are the bits of its log page.
	Warns    bool  `json:"warns,omitempty"`
	Warnings uint8 `json:"warnings,omitempty"`
	// Spare is the remaining percentage of spare blocks, SpareLimit the lowest that is acceptable, and Used the used
	// percentage of its rated life.
	Spare      *int `json:"spare,omitempty"`
	SpareLimit *int `json:"spareLimit,omitempty"`
	Used       *int `json:"used,omitempty"`
	// Errors are its counters of failed reads and writes.
	Errors []DriveErrors `json:"errors,omitempty"`
}

// DriveErrors is one counter of a drive over its whole life.
type DriveErrors struct {
	Of string `json:"of"`
	N  uint64 `json:"n"`
}

// title names a drive so that an operator can find it.
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
	// Drive means that it is a temperature sensor of a drive; Limit is the highest that its maker allows, 0 if unknown.
	Drive          bool
	Celsius, Limit float64
	// Alarm means that the chip itself reports the sensor beyond its limits, or broken.
	Alarm bool
}
