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
	limit := Limit{Of: "largest error of the clock", Unit: "s", Enter: clockError, Leave: clockErrorLeave}
	return declaration{
		Check: Check{
			Name: "clock", Component: Machine, Gates: Nothing, Behind: []string{"time-source"},
			Source: "maxerror and STA_UNSYNC of adjtimex(2)",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					ClockUnsynchronised, Machine, Warm, "Nobody corrects the clock.",
					"Nobody has told the kernel the time for a while. Certificates, logs and whoever compares times " +
						"go wrong with it; etcd's leases do not.",
					"look at 'timedatectl' or 'chronyc tracking'; start chronyd or systemd-timesyncd, and let it " +
						"reach its servers",
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
					return fmt.Sprintf("the clock may be off by %.1f s, limit %.0f s", f.Value, l.Enter)
				},
			}
		},
	}
}
