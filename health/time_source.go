// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"
)

// ClockNoSource is the code of the check of chrony's time sources.
const ClockNoSource Code = "CLOCK_NO_SOURCE"

// chrony asks its servers at least every 17 minutes by default, and remembers the last eight answers.
const (
	sourceSilent  = 2 * time.Hour
	sourceFor     = 5 * time.Minute
	sourceWellFor = time.Minute
)

// TimeSource is what chronyd reports about its time source. The zero value means not read.
type TimeSource struct {
	Known bool
	// Absent is why the time source is unknown, as a stable text.
	Absent string
	// Synchronised means that chronyd follows a time source, and Own that this is the machine's own clock.
	Synchronised, Own bool
	// SinceUpdate is how long ago chronyd last corrected the clock after an answer of a source.
	SinceUpdate time.Duration
}

// wrong describes what is wrong with the time source; empty if nothing is.
func (s TimeSource) wrong() string {
	switch {
	case !s.Synchronised:
		return "chrony is not synchronised: no source selected"
	case s.Own:
		return "chrony uses only the machine's own clock"
	case s.SinceUpdate > sourceSilent:
		return fmt.Sprintf("last update from a time source %s ago, limit %s", show(s.SinceUpdate.Truncate(time.Minute)),
			show(sourceSilent))
	}
	return ""
}

// checkTimeSource is the check of chrony's sources. The kernel reports an unsynchronised clock late: chrony continues
// to correct the clock with its last estimate, and the error that it reports to the kernel hardly grows.
var checkTimeSource = advice{
	name: "time-source", component: Machine,
	source: "chronyd on 127.0.0.1, port 323, every minute",
	limit: Limit{
		Of: "time since the last update from a source", Unit: "s", Enter: sourceSilent.Seconds(),
		Leave: sourceSilent.Seconds(),
	},
	code:  ClockNoSource,
	title: "chrony has no time source.",
	meaning: "No acceptable time server has answered for a while. The clock runs free and drifts from those of " +
		"other hosts; etcd leases do not depend on it.",
	remedy: "check 'chronyc sources -v' and 'chronyc ntpdata'; make chrony's servers reachable (UDP port 123), or " +
		"configure others in chrony.conf",
	measure: lists(sourceFor, sourceWellFor, listed{
		bad:  "chrony has no reachable source",
		well: "chrony has a reachable source",
		missing: func(in Input) string {
			if s := in.Hardware.Time; !s.Known {
				return cmp.Or(s.Absent, notYet)
			}
			return ""
		},
		look: func(in Input, _ bool) []string {
			if wrong := in.Hardware.Time.wrong(); wrong != "" {
				return []string{wrong}
			}
			return nil
		},
	}),
}
