// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"
)

// ClockNoSource is the code of the check of whether chrony has somebody to take the time from.
const ClockNoSource Code = "CLOCK_NO_SOURCE"

// chrony asks its servers at least every 17 minutes by default, and remembers the last eight answers.
const (
	sourceSilent  = 2 * time.Hour
	sourceFor     = 5 * time.Minute
	sourceWellFor = time.Minute
)

// TimeSource is what chronyd says of whom it takes the time from. The zero value says that nobody has asked.
type TimeSource struct {
	Known bool
	// Absent says why it is not known, without numbers that change.
	Absent string
	// Synchronised says that it follows a clock, and Own that this is no other than the machine's.
	Synchronised, Own bool
	// Heard is how long ago it was when it last corrected the clock by what a source said.
	Heard time.Duration
}

// wrong returns what is wrong with whom the time is taken from; nothing when all is well.
func (s TimeSource) wrong() string {
	switch {
	case !s.Synchronised:
		return "chrony is not synchronised: no source selected"
	case s.Own:
		return "chrony uses only the machine's own clock"
	case s.Heard > sourceSilent:
		return fmt.Sprintf("last update from a time source %s ago, limit %s", show(s.Heard.Truncate(time.Minute)),
			show(sourceSilent))
	}
	return ""
}

// declareTimeSource declares the check of chrony's sources. The kernel's own word on the clock comes late: chrony goes
// on to correct by what it has learned before, and the kernel is told of an error that hardly grows.
func declareTimeSource() declaration {
	p := Problem{
		ClockNoSource, Machine, Warm, "chrony has no time source.",
		"No time server that it trusts has answered for a while. The clock runs free and drifts from the other " +
			"hosts; etcd leases do not depend on it.",
		"check 'chronyc sources -v' and 'chronyc ntpdata'; make its servers reachable (UDP port 123), or configure " +
			"others in chrony.conf",
	}
	limit := Limit{
		Of: "time since the last update from a source", Unit: "s", Enter: sourceSilent.Seconds(),
		Leave: sourceSilent.Seconds(),
	}
	return advises("time-source", "chronyd on 127.0.0.1, port 323, every minute", limit, p,
		func(at *track) evidence {
			return &listed{
				spell: spell{code: ClockNoSource, track: at, badFor: sourceFor, wellFor: sourceWellFor},
				sick:  "chrony has no reachable source", well: "chrony has a reachable source",
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
			}
		})
}
