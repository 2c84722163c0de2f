// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// The codes of the checks of resources that processes wait for, except memory.
const (
	CPUPressure Code = "CPU_PRESSURE"
	IOPressure  Code = "IO_PRESSURE"
)

const (
	waited, waitedLeave = 80, 50 // percent of a minute
	waitedFor           = 5 * time.Minute
)

// checkCPUPressure is the check of processes that wait for a CPU. Other workloads may wait while etcd does not. The
// check of CPU starvation shows whether the probe waits.
var checkCPUPressure = advice{
	name: "cpu-pressure", component: Machine, behind: []string{"cpu"},
	source: "some avg60 of /proc/pressure/cpu",
	limit:  Limit{Of: "time a process waited for a CPU", Unit: "%", Enter: waited, Leave: waitedLeave},
	code:   CPUPressure,
	title:  "The CPUs are overloaded.",
	meaning: "Most of the time, at least one runnable process waits for a CPU. Priorities decide which one: it may " +
		"be etcd.",
	remedy: "check 'top'; move other workloads off this host, or lower their priority",
	measure: exceeds(waitedFor, waitedFor, func(in Input) Figure { return in.Machine.ProcessorWaited },
		withLimit("a process waited for a CPU for %.0f %% of the last minute, limit %.0f %%")),
}

// checkIOPressure is the check of time in which nothing runs because all processes wait for the disks.
var checkIOPressure = advice{
	name: "io-pressure", component: Machine, behind: []string{fsyncName},
	source: "full avg60 of /proc/pressure/io",
	limit:  Limit{Of: "time stalled on disk I/O", Unit: "%", Enter: waited, Leave: waitedLeave},
	code:   IOPressure,
	title:  "The machine is stalled on disk I/O.",
	meaning: "Most of the time, no process runs, because all active processes are waiting for a disk, possibly " +
		"etcd's.",
	remedy: "check 'iostat -x' for the disk and 'iotop' for the writers; move them to another host or another time",
	measure: exceeds(waitedFor, waitedFor, func(in Input) Figure { return in.Machine.DiskWaited },
		withLimit("all processes stalled on disk I/O for %.0f %% of the last minute, limit %.0f %%")),
}
