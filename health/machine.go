// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

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
	// Booted is when the machine was booted by the wall clock, in seconds: it changes when the clock is set.
	Booted Figure
	// ClockSource is what the kernel reads the time from; empty when it does not tell.
	ClockSource string
	// Throttled is how often a processor was slowed down for heat since the boot, on average over all.
	Throttled Figure
	// MachineChecks is 1 when the processor has found an error since the boot that it could not correct.
	MachineChecks Figure
	// TasksHung is how many tasks have waited for minutes without running since the boot.
	TasksHung Figure
	// ProcessorWaited and DiskWaited are the part of the last minute in which a process waited for the processor (PSI,
	// some), and all for the disk (PSI, full), in percent.
	ProcessorWaited, DiskWaited Figure
	// Segments are those that TCP has sent since the boot, and of them those that it has sent again.
	Segments Part
	// Processor is the time of all processors since the boot, and of it that which the host of a virtual machine has
	// taken for others.
	Processor Part
	// Boots is how often the machine was booted within BootLoopSpan, and BootsUnexpected how often within
	// UnexpectedSpan although the agent had not been told to end.
	Boots, BootsUnexpected Figure
	// At is the moment of the look.
	At time.Duration
}

// Silent is the reading of a machine that tells nothing, and why.
func Silent(why string) MachineReading {
	f, p := Figure{Absent: why}, Part{Absent: why}
	return MachineReading{
		MemoryAvailable: f, MemoryStalled: f, ProcessesKilled: f, MemoryCorrected: f, MemoryUncorrected: f,
		ClockError: f, Booted: f, Throttled: f, MachineChecks: f, TasksHung: f, ProcessorWaited: f, DiskWaited: f,
		Boots: f, BootsUnexpected: f, Segments: p, Processor: p,
	}
}

// Part are two counters of which one is a part of the other. The zero value means not measured.
type Part struct {
	Of, Among float64
	Known     bool
	Absent    string // why it is not known, without numbers that change
}

// advises declares a check of which the findings keep nothing from happening.
func advises(name, source string, limit Limit, p Problem, gather func(*track) evidence) declaration {
	return declaration{
		Check: Check{
			Name: name, Component: p.Component, Gates: Nothing, Source: source, Limits: []Limit{limit},
			Problems: []Problem{p}, Runbook: findingRunbook,
		},
		start: OK, gather: gather,
	}
}
