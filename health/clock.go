// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
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

// checkClock is the check of the wall clock. It only advises: etcd does not depend on the wall clock, and a
// comparison with the members' clocks keeps a host with a wrong clock from joining.
var checkClock = advice{
	name: "clock", component: Machine, behind: []string{"time-source"},
	source: "maxerror and STA_UNSYNC of adjtimex(2)",
	limit:  Limit{Of: "maximum clock error", Unit: "s", Enter: clockError, Leave: clockErrorLeave},
	code:   ClockUnsynchronised,
	title:  "The clock is not synchronised.",
	meaning: "The kernel has received no time correction for a while. Certificate validation, log " +
		"timestamps and anything that compares times drift with it; etcd leases do not.",
	remedy: "check 'timedatectl' or 'chronyc tracking'; start chronyd or systemd-timesyncd and make sure " +
		"that it reaches its servers",
	measure: exceeds(clockFor, time.Minute, func(in Input) Figure { return in.Machine.ClockError },
		says("maximum clock error %.1f s, limit %.0f s")),
}
