// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// ProcessesKilled is the code of the check of processes killed by the kernel.
const ProcessesKilled Code = "PROCESSES_KILLED"

const killsSpan = time.Hour

// checkKills is the check of processes that the kernel killed for lack of memory.
var checkKills = advice{
	name: "kills", component: Machine,
	source:  "oom_kill of /proc/vmstat",
	limit:   Limit{Of: "processes killed", Unit: "an hour"},
	code:    ProcessesKilled,
	title:   "The kernel killed processes because memory ran out.",
	meaning: "The machine, or a unit with a memory limit, ran out of memory. etcd may be killed next.",
	remedy:  "check 'journalctl -k -g oom' for the process; limit its memory or move it off this host",
	measure: grows(killsSpan,
		func(in Input) Figure { return in.Machine.ProcessesKilled },
		func(n float64, _ Limit) string {
			return plural(int(n), "OOM kill") + " in the last hour, limit 0"
		},
	),
}
