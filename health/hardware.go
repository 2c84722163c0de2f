// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "cmp"

// HardwareReading contains readings that may take long: what drives and sensors report about themselves, and what other
// programs on this host report. The zero value means not read.
type HardwareReading struct {
	Drives  Several[Drive]
	Sensors Several[Sensor]
	Logged  Several[LoggedErrors] // errors of devices in the kernel log
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

// Drive is what a drive reports about itself (SMART). A value that it does not report is nil or missing.
type Drive struct {
	Name   string `json:"name"` // the kernel's name, such as nvme0 or sda
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	// Firmware is the revision of its firmware, and Hours is for how many hours it has been powered on.
	Firmware string `json:"firmware,omitempty"`
	Hours    *int   `json:"hours,omitempty"`
	// Absent is why the drive reports nothing.
	Absent string `json:"absent,omitempty"`
	// Failed means that the drive's own health assessment has failed.
	Failed bool `json:"failed,omitempty"`
	// Warns means that the drive has a bit field of critical warnings, as NVMe drives do; Warnings is that bit field.
	Warns    bool  `json:"warns,omitempty"`
	Warnings uint8 `json:"warnings,omitempty"`
	// Spare is the remaining percentage of spare blocks, SpareLimit the lowest acceptable percentage, and Used the used
	// percentage of the drive's rated life.
	Spare      *int `json:"spare,omitempty"`
	SpareLimit *int `json:"spareLimit,omitempty"`
	Used       *int `json:"used,omitempty"`
	// Errors are the drive's counters of failed reads and writes.
	Errors []DriveErrors `json:"errors,omitempty"`
	// HotMinutes is for how many minutes the drive was above its temperature limits, over its whole life.
	HotMinutes *int `json:"hotMinutes,omitempty"`
	// Capacitor is the drive's own test of the capacitors that complete its writes after a power cut. NVMe drives
	// report a failure in Warnings instead.
	Capacitor *CapacitorTest `json:"capacitor,omitempty"`
}

// CapacitorTest is the result of a SATA drive's test: the capacitors have failed if the value is not above the
// threshold.
type CapacitorTest struct {
	Value     int `json:"value"`
	Threshold int `json:"threshold"`
}

func (c CapacitorTest) failed() bool { return c.Value <= c.Threshold }

// DriveErrors is one counter of a drive over its whole life.
type DriveErrors struct {
	Of string `json:"of"`
	N  uint64 `json:"n"`
}

// title returns a name by which an operator can find the drive.
func (d Drive) title() string {
	if of := cmp.Or(d.Serial, d.Model); of != "" {
		return d.Name + " (" + of + ")"
	}
	return d.Name
}

// Sensor is one sensor of the kernel's hardware monitors (hwmon).
type Sensor struct {
	Of    string // device or chip, such as nvme0 or coretemp
	Label string // name of the sensor on that device or chip
	// Drive means that this is the temperature sensor of a drive; Limit is the highest temperature that the drive's
	// maker allows, 0 if unknown.
	Drive          bool
	Celsius, Limit float64
	// Alarm means that the chip reports that the sensor is broken or beyond its limits.
	Alarm bool
}
