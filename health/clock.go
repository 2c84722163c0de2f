// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// ClockUnsynchronised is the code of the check of the wall clock.
const ClockUnsynchronised Code = "CLOCK_UNSYNCHRONISED"

// The kernel adds half a millisecond to what it thinks the clock is off at most in every second in which nobody
// corrects it (MAXFREQ of 500 ppm): it passes a second after half an hour without an answer of a time server. It
// gives the clock up at 16 s.
const (
	clockError, clockErrorLeave = 1.0, 0.5 // seconds
	clockFor                    = 10 * time.Minute
)

// declareClock declares the check of the wall clock. It advises only: etcd does not hang on it, and a host whose clock
// is off from the members' is kept from joining by what is measured against them.
func declareClock() declaration {
	limit := Limit{Of: "maximum clock error", Unit: "s", Enter: clockError, Leave: clockErrorLeave}
	return declaration{
		Check: Check{
			Name: "clock", Component: Machine, Gates: Nothing, Behind: []string{"time-source"},
			Source: "maxerror and STA_UNSYNC of adjtimex(2)",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					ClockUnsynchronised, Machine, Warm, "The clock is not synchronised.",
					"The kernel has received no time correction for a while. Certificate validation, log " +
						"timestamps and anything that compares times drift with it; etcd leases do not.",
					"check 'timedatectl' or 'chronyc tracking'; start chronyd or systemd-timesyncd and make sure " +
						"that it reaches its servers",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &level{
				spell: spell{code: ClockUnsynchronised, track: at, badFor: clockFor, wellFor: time.Minute},
				limit: limit,
				of:    func(in Input) Figure { return in.Machine.ClockError },
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("maximum clock error %.1f s, limit %.0f s", f.Value, l.Enter)
				},
			}
		},
	}
}
