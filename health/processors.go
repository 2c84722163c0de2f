// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// The codes of the checks of CPUs, except CPU starvation, and of hung tasks.
const (
	Throttled    Code = "CPU_THROTTLED"
	MachineCheck Code = "MACHINE_CHECK"
	TasksHung    Code = "TASKS_HUNG"
)

const (
	throttleSpan  = time.Hour
	throttleLimit = 10 // number of times in that span
	hungSpan      = time.Hour
)

// checkThrottling is the check of CPUs throttled for heat.
var checkThrottling = advice{
	name: "throttling", component: Machine,
	source: "the mean over all CPUs of the larger of core_throttle_count and package_throttle_count",
	limit:  Limit{Of: "thermal throttling events", Unit: "an hour", Enter: throttleLimit},
	code:   Throttled,
	title:  "The CPUs are thermally throttled.",
	meaning: "They run at reduced speed, often the lowest, until they have cooled down. Everything on this host " +
		"takes longer, including etcd.",
	remedy: "check fans, dust and airflow, and what else runs on this host; 'quorumctl health' lists sensor alarms",
	measure: func(a advice, at *track) evidence {
		r := risen{}
		return grows(throttleSpan,
			func(in Input) Figure {
				n := in.Machine.Throttled
				if !n.Known {
					return n
				}
				return r.figure(map[string]float64{"": n.Value})
			},
			withLimit("%.0f thermal throttling events in the last hour, limit %.0f"),
		)(a, at)
	},
}

// checkMachineChecks is the check of errors that a CPU reports about itself and the hardware near it.
var checkMachineChecks = advice{
	name: "machine-checks", component: Machine,
	source: "the machine-check flag in /proc/sys/kernel/tainted (x86)",
	limit:  Limit{Of: "machine checks", Unit: "since the boot"},
	code:   MachineCheck,
	title:  "The CPU reported an uncorrectable hardware error.",
	meaning: "A part, usually memory or a cache, returned wrong data. A process that used the data may have been " +
		"killed; the next error may stop the machine.",
	remedy: "find the part with 'ras-mc-ctl --errors' or 'journalctl -k -g mce'; replace it. A reboot clears the " +
		"finding",
	measure: lists(0, time.Minute, listed{
		bad:     "a machine check",
		well:    "no machine check",
		missing: func(in Input) string { return in.Machine.MachineChecks.absent() },
		look: func(in Input, _ bool) []string {
			if in.Machine.MachineChecks.Value == 0 {
				return nil
			}
			return []string{"at least 1 machine check since the boot, limit 0"}
		},
	}),
}

// HungUncounted is the reason for a missing figure if the kernel does not count hung tasks but logs them.
const HungUncounted = "the kernel has no hung-task counter: it is older than 6.13"

// hung returns how many tasks have hung since the boot, from the kernel's counter or else from its log.
func (in Input) hung() Figure {
	switch counted, logged := in.Machine.TasksHung, in.Hardware.TasksHung; {
	case counted.Known || counted.Absent != HungUncounted:
		return counted
	case logged.Known || logged.Absent == "":
		return logged
	default:
		return Figure{Absent: counted.Absent + "; kernel log: " + logged.Absent}
	}
}

// checkHung is the check of tasks that are blocked in the kernel for minutes.
var checkHung = advice{
	name: "hung-tasks", component: Machine,
	source: "/proc/sys/kernel/hung_task_detect_count, or the kernel log, which quorumd-kernel-log.service " +
		"scans every two minutes",
	limit: Limit{Of: "hung tasks", Unit: "an hour"},
	code:  TasksHung,
	title: "Tasks are hung in the kernel.",
	meaning: "They were blocked for two minutes, usually on a device or a lock, and could not be killed. If etcd is " +
		"one of them, it does not respond and cannot be stopped.",
	remedy: "check 'journalctl -k -g blocked' for the tasks and what each waits for, such as a drive or a network " +
		"file system",
	measure: grows(hungSpan,
		Input.hung,
		func(n float64, _ Limit) string {
			return plural(int(n), "hung task") + " in the last hour, limit 0"
		},
	),
}
