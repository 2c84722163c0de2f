// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"time"
)

// The codes of the checks of the wall clock's error and of the clock source.
const (
	ClockUnsynchronised Code = "CLOCK_UNSYNCHRONISED"
	ClockSourceSlow     Code = "CLOCK_SOURCE_SLOW"
)

// Every second without a correction, the kernel adds half a millisecond to the clock's maximum error (MAXFREQ of 500
// ppm). So the error exceeds one second after about half an hour without a time server's answer. At 16 s the kernel
// treats the clock as unsynchronised.
const (
	clockError, clockErrorLeave = 1.0, 0.5 // seconds
	clockFor                    = 10 * time.Minute
	clockSourceFor              = time.Minute
)

// checkClock is the check of the wall clock. It only advises: etcd does not depend on the wall clock, and a
// comparison with the members' clocks keeps a host with a wrong clock from joining.
var checkClock = advice{
	name: "clock", component: Machine, behind: []string{"time-source"},
	source: "maxerror and STA_UNSYNC of adjtimex(2)",
	limit:  Limit{Of: "maximum clock error", Unit: "s", Enter: clockError, Leave: clockErrorLeave},
	code:   ClockUnsynchronised,
	title:  "The clock is not synchronised.",
	meaning: "The kernel has received no time correction for a while. Certificate validation, log " +
		"timestamps and anything that compares times depend on the clock; etcd leases do not.",
	remedy: "check 'timedatectl' or 'chronyc tracking'; start chronyd or systemd-timesyncd and make sure " +
		"that it reaches its servers",
	measure: exceeds(clockFor, time.Minute, func(in Input) Figure { return in.Machine.ClockError },
		withLimit("maximum clock error %.1f s, limit %.0f s")),
}

// checkClockSource is the check of the kernel's clock source.
var checkClockSource = advice{
	name: "clock-source", component: Machine,
	source: "current_clocksource of the kernel",
	limit:  Limit{Of: "slow clock sources", Unit: "in use"},
	code:   ClockSourceSlow,
	title:  "The kernel uses a slow clock source.",
	meaning: "The kernel does not use the CPU's own counter (TSC), usually because it found the TSC unreliable. " +
		"Every read of the clock takes a microsecond or more, and etcd reads the clock often.",
	remedy: "check 'journalctl -k -g clocksource' for the cause; reboot, or try a newer firmware or kernel",
	measure: lists(clockSourceFor, clockSourceFor, listed{
		bad:  "the kernel uses a slow clock source",
		well: "the kernel uses a fast clock source",
		missing: func(in Input) string {
			if in.Machine.ClockSource != "" {
				return ""
			}
			return cmp.Or(in.Machine.Booted.absent(), "the kernel does not report its clock source")
		},
		look: func(in Input, _ bool) []string {
			source := in.Machine.ClockSource
			if !slices.Contains([]string{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"}, source) {
				return nil
			}
			return []string{"clock source " + source}
		},
	}),
}
