// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// MachineReading is what the kernel tells of the machine beside its disk, at one moment. The zero value says that
// nothing is known.
type MachineReading struct {
	// MemoryAvailable is the part of the memory that may be had without swapping, in percent.
	MemoryAvailable Figure
	// MemoryStalled is the part of the last minute in which all processes waited for memory, in percent (PSI, full).
	MemoryStalled Figure
	// ProcessesKilled is how many processes the kernel has ended since the boot because there was no memory left.
	ProcessesKilled Figure
	// MemoryCorrected and MemoryUncorrected are errors of the memory modules since the boot (EDAC).
	MemoryCorrected, MemoryUncorrected Figure
	// ClockError is what the kernel thinks the wall clock may be off at most, in seconds. It grows while nobody
	// corrects it.
	ClockError Figure
}

// Silent is the reading of a machine that tells nothing, and why.
func Silent(why string) MachineReading {
	f := Figure{Absent: why}
	return MachineReading{f, f, f, f, f, f}
}
