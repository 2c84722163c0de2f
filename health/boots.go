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

const bootLoopLimit = 2 // a repair may need two

// declareBootLoop declares the check of a machine that boots repeatedly.
func declareBootLoop() declaration {
	limit := Limit{Of: "boots", Unit: "in the last hour", Enter: bootLoopLimit, Leave: bootLoopLimit}
	p := Problem{
		BootLoop, Machine, Warm, "The machine keeps rebooting.",
		"Each reboot takes its etcd down and makes it catch up afterwards. While it is down, the fault tolerance " +
			"of the cluster is lower by one.",
		"check 'journalctl --list-boots', the end of each boot, and the event log of the BMC; until it is fixed: " +
			"'quorumctl maintenance on'",
	}
	return advises("boot-loop", "the boots that quorumd recorded on this host's disk, by the wall clock", limit, p,
		func(at *track) evidence {
			return &level{
				spell: spell{code: BootLoop, track: at, wellFor: time.Minute}, limit: limit,
				of: func(in Input) Figure { return in.Machine.Boots },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("%.0f boots in the last hour, limit %.0f", f.Value, l.Enter)
				},
			}
		})
}

// declareUnexpectedReboot declares the check of a machine that went down without a shutdown.
func declareUnexpectedReboot() declaration {
	limit := Limit{Of: "unclean reboots", Unit: "in the last day"}
	p := Problem{
		UnexpectedReboot, Machine, Warm, "The machine rebooted without a clean shutdown.",
		"The agent was not stopped first: power was lost, the kernel panicked, or a watchdog or reset fired. A " +
			"drive that acknowledges writes before they are durable loses them in such a reboot.",
		"check 'journalctl -b -1 -e', 'last -x' and the event log of the BMC. The finding clears after a day " +
			"without another one",
	}
	return advises("unexpected-reboot", "the boots that quorumd recorded on this host's disk, by the wall clock",
		limit, p, func(at *track) evidence {
			return &level{
				spell: spell{code: UnexpectedReboot, track: at, wellFor: time.Minute}, limit: limit,
				of: func(in Input) Figure { return in.Machine.BootsUnexpected },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("%s in the last day, limit %.0f", plural(int(f.Value), "unclean reboot"),
						l.Enter)
				},
			}
		})
}
