// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of processors, beside the one of their being short, and of tasks that hang.
const (
	Throttled    Code = "CPU_THROTTLED"
	MachineCheck Code = "MACHINE_CHECK"
	TasksHung    Code = "TASKS_HUNG"
)

const (
	throttleSpan  = time.Hour
	throttleLimit = 10 // times in that
	hungSpan      = time.Hour
)

// declareThrottling declares the check of processors that are slowed down for heat.
func declareThrottling() declaration {
	limit := Limit{Of: "times a processor was slowed down", Unit: "an hour", Enter: throttleLimit}
	p := Problem{
		Throttled, Machine, Warm, "The processors are slowed down because they are hot.",
		"They run at a part of their speed, often the lowest, until they are cooler. Everything on this host takes " +
			"longer, etcd too.",
		"look at fans, dust and the air around the host, and at what else runs here; 'quorumctl health' shows " +
			"whether a sensor gives an alarm",
	}
	return advises("throttling", "core_throttle_count and package_throttle_count, the mean of all processors", limit, p,
		func(at *track) evidence {
			r := risen{}
			return &counted{
				code: Throttled, limit: limit, span: throttleSpan, track: at,
				of: func(in Input) Figure {
					n := in.Machine.Throttled
					if !n.Known {
						return n
					}
					return r.figure(map[string]float64{"": n.Value})
				},
				words: func(n float64, l Limit) string {
					return fmt.Sprintf("a processor was slowed down for heat %.0f times in the last hour, limit %.0f",
						n, l.Enter)
				},
			}
		})
}

// declareMachineChecks declares the check of errors that the processor reports of itself and of what is near it.
func declareMachineChecks() declaration {
	p := Problem{
		MachineCheck, Machine, Warm, "The processor has found an error that could not be corrected.",
		"A part of the machine, most often memory or a cache, gave something wrong. What it was used for is gone, a " +
			"process perhaps; the next one may stop the machine.",
		"look at 'ras-mc-ctl --errors' or 'journalctl -k -g mce' for which part; have it replaced. A boot ends this",
	}
	return advises("machine-checks", "the kernel's mark of a machine check in /proc/sys/kernel/tainted (x86)",
		Limit{Of: "machine checks", Unit: "since the boot"}, p, func(at *track) evidence {
			return &listed{
				spell: spell{code: MachineCheck, track: at, wellFor: time.Minute},
				sick:  "a machine check", well: "no machine check",
				missing: func(in Input) string { return in.Machine.MachineChecks.absent() },
				look: func(in Input, _ bool) []string {
					if in.Machine.MachineChecks.Value == 0 {
						return nil
					}
					return []string{"there was a machine check since the boot, limit 0"}
				},
			}
		})
}

// HungUncounted says why a kernel gives no number of tasks that hang, while it tells its log of each.
const HungUncounted = "the kernel does not count tasks that hang: it is older than 6.13"

// hung gives how many tasks hung since the boot, by the kernel's count or else by its log.
func (in Input) hung() Figure {
	switch counted, logged := in.Machine.TasksHung, in.Hardware.TasksHung; {
	case counted.Known || counted.Absent != HungUncounted:
		return counted
	case logged.Known || logged.Absent == "":
		return logged
	default:
		return Figure{Absent: counted.Absent + ", and its log does not tell: " + logged.Absent}
	}
}

// declareHung declares the check of tasks that do not run for minutes.
func declareHung() declaration {
	limit := Limit{Of: "tasks that hung", Unit: "an hour"}
	p := Problem{
		TasksHung, Machine, Warm, "Tasks hang in the kernel.",
		"They waited for two minutes without a chance to be ended, for a device or a lock as a rule. If etcd is one " +
			"of them it answers nobody, and cannot be stopped.",
		"look at 'journalctl -k -g blocked' for which, and what each waits for: a drive, a network file system",
	}
	const source = "/proc/sys/kernel/hung_task_detect_count, or the kernel's log, which quorumd-kernel-log.service " +
		"looks through every two minutes"
	return advises("hung-tasks", source, limit, p, func(at *track) evidence {
		return &counted{
			code: TasksHung, limit: limit, span: hungSpan, track: at,
			of: Input.hung,
			words: func(n float64, _ Limit) string {
				return fmt.Sprintf("%.0f tasks hung in the last hour, limit 0", n)
			},
		}
	})
}
