// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of memory.
const (
	MemoryLow      Code = "MEMORY_LOW"
	MemoryPressure Code = "MEMORY_PRESSURE"
)

// The limits of the memory. Below a tenth, the kernel drops what etcd reads from the page cache. The percentage of time
// in which all processes wait for memory is the one at which systemd-oomd and others begin to act.
const (
	memoryLow, memoryLowLeave   = 10, 12 // percent
	memoryFull, memoryFullLeave = 5, 2   // percent of a minute
	memoryFor                   = time.Minute
)

// declareMemory declares the check of available memory. It only advises: etcd still works on such a machine, and the
// probe notices when it no longer does.
func declareMemory() declaration {
	limit := Limit{
		Of: "memory available", Unit: "%", Enter: memoryLow, Leave: memoryLowLeave, Below: true,
	}
	return declaration{
		Check: Check{
			Name: "memory", Component: Machine, Gates: Nothing,
			Source: "MemAvailable of /proc/meminfo",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					MemoryLow, Machine, Warm, "Memory is running low.",
					"Little memory is available without swapping. The kernel first drops the page cache of etcd's " +
						"database and finally kills processes, possibly etcd.",
					"check 'ps aux --sort=-rss'; move other workloads off this host, or limit their memory",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &level{
				spell: spell{code: MemoryLow, track: at, badFor: memoryFor, wellFor: memoryFor},
				limit: limit,
				of:    func(in Input) Figure { return in.Machine.MemoryAvailable },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("%.0f %% of the memory is available, limit %.0f %%", f.Value, l.Enter)
				},
			}
		},
	}
}

// declarePressure declares the check of time lost waiting for memory.
func declarePressure() declaration {
	limit := Limit{Of: "time stalled on memory", Unit: "%", Enter: memoryFull, Leave: memoryFullLeave}
	return declaration{
		Check: Check{
			Name: "pressure", Component: Machine, Gates: Nothing, Behind: []string{"memory"},
			Source: "full avg60 of /proc/pressure/memory",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					MemoryPressure, Machine, Warm, "The machine is stalled on memory.",
					"For part of every minute no process runs because all of them wait for memory. etcd misses its " +
						"heartbeats during that time.",
					"check 'vmstat 1' for swapping and 'ps aux --sort=-rss'; move other workloads off this host",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &level{
				spell: spell{code: MemoryPressure, track: at, wellFor: memoryFor},
				limit: limit,
				of:    func(in Input) Figure { return in.Machine.MemoryStalled },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("all processes stalled on memory for %.1f %% of the last minute, limit %.0f %%",
						f.Value, l.Enter)
				},
			}
		},
	}
}
