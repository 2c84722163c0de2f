// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// The codes of the checks of memory.
const (
	MemoryLow      Code = "MEMORY_LOW"
	MemoryPressure Code = "MEMORY_PRESSURE"
)

// With less than a tenth of the memory available, the kernel drops the page cache that etcd reads from. While all
// processes wait for memory, etcd waits, too.
const (
	memoryLow, memoryLowLeave   = 10, 12 // percent
	memoryFull, memoryFullLeave = 5, 2   // percent of a minute
	memoryFor                   = time.Minute
)

// checkMemory is the check of available memory. It only advises, because etcd still works on a machine with little
// memory, and the probe detects when disk writes become slow.
var checkMemory = advice{
	name: "memory", component: Machine,
	source: "MemAvailable of /proc/meminfo",
	limit: Limit{
		Of: "memory available", Unit: "%", Enter: memoryLow, Leave: memoryLowLeave, Below: true,
	},
	code:  MemoryLow,
	title: "Memory is running low.",
	meaning: "Little memory is available without swapping. The kernel first drops the page cache of etcd's " +
		"database and finally kills processes, possibly etcd.",
	remedy: "check 'ps aux --sort=-rss'; move other workloads off this host, or limit their memory",
	measure: exceeds(memoryFor, memoryFor, func(in Input) Figure { return in.Machine.MemoryAvailable },
		withLimit("%.0f %% of the memory is available, limit %.0f %%")),
}

// checkPressure is the check of time lost waiting for memory.
var checkPressure = advice{
	name: "pressure", component: Machine, behind: []string{"memory"},
	source: "full avg60 of /proc/pressure/memory",
	limit:  Limit{Of: "time stalled on memory", Unit: "%", Enter: memoryFull, Leave: memoryFullLeave},
	code:   MemoryPressure,
	title:  "The machine is stalled on memory.",
	meaning: "For part of every minute no process runs because all of them wait for memory. etcd misses its " +
		"heartbeats during that time.",
	remedy: "check 'vmstat 1' for swapping and 'ps aux --sort=-rss'; move other workloads off this host",
	measure: exceeds(0, memoryFor, func(in Input) Figure { return in.Machine.MemoryStalled },
		withLimit("all processes stalled on memory for %.1f %% of the last minute, limit %.0f %%")),
}
