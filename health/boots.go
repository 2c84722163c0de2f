// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of boots.
const (
	BootLoop         Code = "BOOT_LOOP"
	UnexpectedReboot Code = "UNEXPECTED_REBOOT"
)

// BootLoopSpan and UnexpectedSpan are the spans over which boots are counted.
const (
	BootLoopSpan   = time.Hour
	UnexpectedSpan = 24 * time.Hour
)

const bootLoopLimit = 2 // an operator may boot twice for a repair

// checkBootLoop is the check of a machine that boots repeatedly.
var checkBootLoop = advice{
	name: "boot-loop", component: Machine,
	source: "the boots that quorumd recorded on this host's disk, by the wall clock",
	limit:  Limit{Of: "boots", Unit: "in the last hour", Enter: bootLoopLimit, Leave: bootLoopLimit},
	code:   BootLoop,
	title:  "The machine keeps rebooting.",
	meaning: "Each reboot stops etcd, which has to catch up afterwards. While etcd is down, the fault " +
		"tolerance of the cluster is lower by one.",
	remedy: "check 'journalctl --list-boots', the last log lines of each boot, and the event log of the BMC; " +
		"until the cause is fixed, run 'quorumctl maintenance on --reason …'",
	measure: exceeds(0, time.Minute, func(in Input) Figure { return in.Machine.Boots },
		withLimit("%.0f boots in the last hour, limit %.0f")),
}

// checkUnexpectedReboot is the check of a machine that went down without a shutdown.
var checkUnexpectedReboot = advice{
	name: "unexpected-reboot", component: Machine,
	source: "the boots that quorumd recorded on this host's disk, by the wall clock",
	limit:  Limit{Of: "unclean reboots", Unit: "in the last day"},
	code:   UnexpectedReboot,
	title:  "The machine rebooted without a clean shutdown.",
	meaning: "The agent was not stopped first: power was lost, the kernel panicked, or a watchdog or reset fired. A " +
		"drive that acknowledges writes before they are durable loses them in such a reboot.",
	remedy: "check 'journalctl -b -1 -e', 'last -x' and the event log of the BMC. The finding clears after a day " +
		"without another unclean reboot",
	measure: exceeds(0, time.Minute,
		func(in Input) Figure { return in.Machine.BootsUnexpected },
		func(n float64, l Limit) string {
			return fmt.Sprintf("%s in the last day, limit %.0f", plural(int(n), "unclean reboot"),
				l.Enter)
		},
	),
}
