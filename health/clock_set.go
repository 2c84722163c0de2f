// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// The codes of the checks of steps of the wall clock and of its source.
const (
	ClockStepped    Code = "CLOCK_STEPPED"
	ClockSourceSlow Code = "CLOCK_SOURCE_SLOW"
)

const (
	clockStep     = 0.5 // seconds
	clockSpan     = time.Hour
	clockSettled  = 10 * time.Minute // how long after the boot a clock without a battery may be set
	clockUnstable = time.Minute
)

// checkSteps is the check of a wall clock that is stepped rather than slewed.
var checkSteps = advice{
	name: "clock-steps", component: Machine,
	source: "the wall clock compared with the monotonic clock, every 10 s",
	limit:  Limit{Of: "clock steps", Unit: "an hour"},
	code:   ClockStepped,
	title:  "The clock was stepped while the machine was running.",
	meaning: "It jumped by half a second or more. etcd leases are not affected; log timestamps, certificate " +
		"validation and anything that compares times are. Repeated steps usually mean that two services set the " +
		"clock.",
	remedy: "check 'journalctl -u chronyd -u systemd-timesyncd' and 'chronyc tracking' for the source; let only one " +
		"service set the clock, and configure it to slew",
	measure: func(a advice, at *track) evidence {
		s := &steps{}
		return grows(clockSpan,
			s.of,
			func(n float64, _ Limit) string {
				times := "once"
				if n != 1 {
					times = fmt.Sprintf("%.0f times", n)
				}
				return fmt.Sprintf("the clock was stepped %s in the last hour%s, limit 0", times, s.last())
			},
		)(a, at)
	},
}

// steps counts how many times the clock was stepped since the first reading.
type steps struct {
	begun  bool
	booted float64
	by     float64 // the size of the last step, in seconds
	n      float64
}

func (s *steps) of(in Input) Figure {
	booted := in.Machine.Booted
	if !booted.Known {
		return Figure{Absent: booted.absent()}
	}
	by := booted.Value - s.booted
	if s.begun && math.Abs(by) >= clockStep && in.Now >= clockSettled {
		s.n, s.by = s.n+1, by
	}
	s.begun, s.booted = true, booted.Value
	return Figure{Value: s.n, Known: true}
}

// last describes the size of the last step; empty if the step was before the agent started.
func (s *steps) last() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf(", last by %+.1f s", s.by)
}

// checkClockSource is the check of the kernel's clock source.
var checkClockSource = advice{
	name: "clock-source", component: Machine,
	source: "current_clocksource of the kernel",
	limit:  Limit{Of: "slow clock sources", Unit: "in use"},
	code:   ClockSourceSlow,
	title:  "The kernel uses a slow clock source.",
	meaning: "The kernel marked the CPU's own counter (TSC) as unreliable. Every read of the clock now takes a " +
		"microsecond or more, and etcd reads it often.",
	remedy: "check 'journalctl -k -g clocksource' for the cause; reboot, or try a newer firmware or kernel",
	measure: lists(clockUnstable, clockUnstable, listed{
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
