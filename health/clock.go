// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// ClockUnsynchronised is the code of the check of the wall clock.
const ClockUnsynchronised Code = "CLOCK_UNSYNCHRONISED"

// Every second without a correction, the kernel adds half a millisecond to the clock's maximum error (MAXFREQ of 500
// ppm): after half an hour without a time server's answer it exceeds one second. At 16 s the kernel treats the clock as
// unsynchronised.
const (
	clockError, clockErrorLeave = 1.0, 0.5 // seconds
	clockFor                    = 10 * time.Minute
)

// declareClock declares the check of the wall clock. It only advises: etcd does not depend on the wall clock, and a
// comparison with the members' clocks keeps a host with a wrong clock from joining.
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
