// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"math"
	"time"
)

// ClockStepped is the code of the check of steps of the wall clock.
const ClockStepped Code = "CLOCK_STEPPED"

const (
	clockStep    = 0.5 // seconds
	clockSpan    = time.Hour
	clockSettled = 10 * time.Minute // time after boot during which a clock without a battery may still be set
)

// checkSteps is the check of a wall clock that is stepped rather than slewed.
var checkSteps = advice{
	name: "clock-steps", component: Machine,
	source: "the wall clock compared with the monotonic clock, every 10 s",
	limit:  Limit{Of: "clock steps", Unit: "an hour"},
	code:   ClockStepped,
	title:  "The clock was stepped while the machine was running.",
	meaning: "The clock jumped by half a second or more. etcd leases are not affected; log timestamps, certificate " +
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

// steps counts the steps of the clock since the first reading, except those within clockSettled of the boot.
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

// last describes the size of the last step; empty if there was none since the agent started.
func (s *steps) last() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf(", most recently by %+.1f s", s.by)
}
