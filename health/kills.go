// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// ProcessesKilled is the code of the check of processes killed by the kernel.
const ProcessesKilled Code = "PROCESSES_KILLED"

const killsSpan = time.Hour

// declareKills declares the check of processes that the kernel killed for lack of memory.
func declareKills() declaration {
	limit := Limit{Of: "processes killed", Unit: "an hour"}
	return declaration{
		Check: Check{
			Name: "kills", Component: Machine, Gates: Nothing,
			Source: "oom_kill of /proc/vmstat",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					ProcessesKilled, Machine, Warm, "The kernel killed processes: out of memory.",
					"The machine, or a unit with a memory limit, ran out of memory. etcd may be killed next.",
					"check 'journalctl -k -g oom' for the process; limit its memory or move it off this host",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &counted{
				code: ProcessesKilled, limit: limit, span: killsSpan, track: at,
				of: func(in Input) Figure { return in.Machine.ProcessesKilled },
				words: func(n float64, _ Limit) string {
					return plural(int(n), "OOM kill") + " in the last hour, limit 0"
				},
			}
		},
	}
}
