// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// MachineReading is what the kernel reports, at one moment, about the machine except its disk. Boots and
// BootsUnexpected are from the agent's own records. The zero value means unknown.
type MachineReading struct {
	// MemoryAvailable is the percentage of memory that is available without swapping.
	MemoryAvailable Figure
	// MemoryStalled is the percentage of the last minute in which all processes waited for memory (PSI, full).
	MemoryStalled Figure
	// ProcessesKilled is how many processes the kernel has killed since the boot because memory ran out.
	ProcessesKilled Figure
	// MemoryCorrected and MemoryUncorrected are errors of the memory modules since the boot (EDAC).
	MemoryCorrected, MemoryUncorrected Figure
	// ClockError is the kernel's maximum error of the wall clock, in seconds. It grows while nothing corrects the
	// clock.
	ClockError Figure
	// Booted is the time of the boot by the wall clock, in seconds: it changes when the clock is set.
	Booted Figure
	// ClockSource is the kernel's clock source; empty if unknown.
	ClockSource string
	// Throttled is how many times a CPU was throttled for heat since the boot, on average over all CPUs.
	Throttled Figure
	// MachineChecks is 1 if a CPU has reported an uncorrectable error since the boot, and 0 otherwise.
	MachineChecks Figure
	// TasksHung is how many tasks have been blocked for minutes, counted since the boot.
	TasksHung Figure
	// ProcessorWaited is the percentage of the last minute in which some process waited for a CPU (PSI, some), and
	// DiskWaited the percentage in which all processes waited for the disk (PSI, full).
	ProcessorWaited, DiskWaited Figure
	// Segments are the TCP segments that this host has sent since the boot, and the part that it has retransmitted.
	Segments Part
	// Processor is the time of all CPUs since the boot, and the part that the hypervisor has given to other machines.
	Processor Part
	// Boots is how many times the machine was booted within BootLoopSpan, and BootsUnexpected how many boots within
	// UnexpectedSpan were not preceded by a stop of the agent.
	Boots, BootsUnexpected Figure
	// At is the time of the reading.
	At time.Duration
}

// Part is a pair of counters. Of counts a subset of what Among counts. The zero value means not measured.
type Part struct {
	Of, Among float64
	Known     bool
	Absent    string // why the counters are unknown, as a stable text
}
