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

// BootLoopSpan and UnexpectedSpan are over which boots are counted.
const (
	BootLoopSpan   = time.Hour
	UnexpectedSpan = 24 * time.Hour
)

const bootLoopLimit = 2 // a repair may take two

// declareBootLoop declares the check of a machine that is booted again and again.
func declareBootLoop() declaration {
	limit := Limit{Of: "boots", Unit: "in the last hour", Enter: bootLoopLimit, Leave: bootLoopLimit}
	p := Problem{
		BootLoop, Machine, Warm, "The machine is booted again and again.",
		"Each time its etcd goes down, and has to catch up afterwards. While it is down the cluster has one voter " +
			"less to lose.",
		"look at 'journalctl --list-boots' and the end of each boot, and at the event log of the machine's " +
			"management controller; until it is mended: 'quorumctl maintenance on'",
	}
	return advises("boot-loop", "the boots that quorumd has noted on this host's disk, by the wall clock", limit, p,
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

// declareUnexpectedReboot declares the check of a machine that has stopped without a word.
func declareUnexpectedReboot() declaration {
	limit := Limit{Of: "reboots without a word", Unit: "in the last day"}
	p := Problem{
		UnexpectedReboot, Machine, Warm, "The machine has stopped without a word, and was booted again.",
		"Nobody told the agent to end before: it was a loss of power, a panic of the kernel, a watchdog or a reset. " +
			"A drive that acknowledges before it is durable loses writes then.",
		"look at 'journalctl -b -1 -e', at 'last -x', and at the event log of the machine's management controller. A " +
			"day without another ends this",
	}
	return advises("unexpected-reboot", "the boots that quorumd has noted on this host's disk, by the wall clock",
		limit, p, func(at *track) evidence {
			return &level{
				spell: spell{code: UnexpectedReboot, track: at, wellFor: time.Minute}, limit: limit,
				of: func(in Input) Figure { return in.Machine.BootsUnexpected },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("%.0f times in the last day the machine was booted although the agent had not "+
						"been told to end, limit %.0f", f.Value, l.Enter)
				},
			}
		})
}
