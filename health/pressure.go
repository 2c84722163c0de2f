// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of resources that processes wait for, except memory.
const (
	CPUPressure Code = "CPU_PRESSURE"
	IOPressure  Code = "IO_PRESSURE"
)

const (
	waited, waitedLeave = 80, 50 // percent of a minute
	waitedFor           = 5 * time.Minute
)

// declareCPUPressure declares the check of processes that wait for a CPU. Other workloads may wait while etcd does not:
// the check of CPU starvation shows whether the probe waits.
func declareCPUPressure() declaration {
	limit := Limit{Of: "time a process waited for a CPU", Unit: "%", Enter: waited, Leave: waitedLeave}
	p := Problem{
		CPUPressure, Machine, Warm, "The CPUs are overloaded.",
		"Nearly all the time at least one runnable process waits for a CPU. Priorities decide which one: it may be " +
			"etcd.",
		"check 'top'; move other workloads off this host, or lower their priority",
	}
	return waits("cpu-pressure", "cpu", "some avg60 of /proc/pressure/cpu", limit, p,
		"a process waited for a CPU for %.0f %% of the last minute, limit %.0f %%",
		func(m MachineReading) Figure { return m.ProcessorWaited })
}

// declareIOPressure declares the check of time in which nothing runs because all processes wait for the disks.
func declareIOPressure() declaration {
	limit := Limit{Of: "time stalled on disk I/O", Unit: "%", Enter: waited, Leave: waitedLeave}
	p := Problem{
		IOPressure, Machine, Warm, "The machine is stalled on disk I/O.",
		"Nearly all the time no process runs because all that could wait for a disk, etcd's or another one.",
		"check 'iostat -x' for the disk and 'iotop' for the writers; move them to another host or another time",
	}
	return waits("io-pressure", "fsync", "full avg60 of /proc/pressure/io", limit, p,
		"all processes stalled on disk I/O for %.0f %% of the last minute, limit %.0f %%",
		func(m MachineReading) Figure { return m.DiskWaited })
}

// waits declares a check of pressure, behind the check of the resource itself.
func waits(
	name, behind, source string, limit Limit, p Problem, words string, of func(MachineReading) Figure,
) declaration {
	d := advises(name, source, limit, p, func(at *track) evidence {
		return &level{
			spell: spell{code: p.Code, track: at, badFor: waitedFor, wellFor: waitedFor}, limit: limit,
			of:    func(in Input) Figure { return of(in.Machine) },
			words: func(f Figure, l Limit) string { return fmt.Sprintf(words, f.Value, l.Enter) },
		}
	})
	d.Behind = []string{behind}
	return d
}
