// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// A clock that differs too much from the voters' keeps a host from joining and from replacing another.

func clockUnknown(v View) (string, bool) {
	if v.Clock.Known {
		return "", false
	}
	return "the clock has not been compared with the voters' yet", true
}

func clockSkew(v View) (string, bool) {
	if !v.Clock.Known || v.Clock.Offset.Abs() <= v.Limits.ClockOffset {
		return "", false
	}
	side := "ahead of"
	if v.Clock.Offset < 0 {
		side = "behind"
	}
	return fmt.Sprintf("this host's clock is %s %s the voters'; the limit is %s",
		durationfmt.Tenths(v.Clock.Offset.Abs()), side, durationfmt.Text(v.Limits.ClockOffset)), true
}
