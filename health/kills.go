// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// ProcessesKilled is the code of the check of what the kernel had to end.
const ProcessesKilled Code = "PROCESSES_KILLED"

const killsSpan = time.Hour

// declareKills declares the check of processes that the kernel has ended for want of memory.
func declareKills() declaration {
	limit := Limit{Of: "processes killed", Unit: "an hour"}
	return declaration{
		Check: Check{
			Name: "kills", Component: Machine, Gates: Nothing,
			Source: "oom_kill of /proc/vmstat",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					ProcessesKilled, Machine, Warm, "The kernel has killed processes for want of memory.",
					"There was no memory left, on the whole machine or within the bounds of a unit. The next one may " +
						"be etcd.",
					"look at 'journalctl -k -g oom' for which; bound it, or move it off this host",
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
					return fmt.Sprintf("%.0f killed in the last hour for want of memory, limit 0", n)
				},
			}
		},
	}
}
