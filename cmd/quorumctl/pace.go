// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// pace tells from two looks at a progress how long it still takes.
type pace struct {
	of    string // what is said beside it, and its unit; another one has another pace
	since time.Time
	first float64
}

// paceAfter is how long a count is looked at before anything is said of it.
const paceAfter = 3 * time.Second

// left tells how long it takes from now on, as long as it goes on as it did; false while nobody can know. Said is the
// text without its numbers.
func (p *pace) left(at time.Time, said string, how *control.Progress) (time.Duration, bool) {
	if how == nil {
		*p = pace{}
		return 0, false
	}
	said += " " + how.Unit
	far := math.Abs(how.Goal - how.Now)
	if p.of != said || far > math.Abs(how.Goal-p.first) {
		*p = pace{said, at, how.Now} // something else, or it has fallen back
		return 0, false
	}
	done, took := math.Abs(how.Now-p.first), at.Sub(p.since)
	if done == 0 || took < paceAfter {
		return 0, false
	}
	const most = float64(1000 * 24 * time.Hour)
	return time.Duration(min(most, far/done*float64(took))), true
}

// amount says how far something is that counts bytes; what counts anything else says it in its text.
func amount(how *control.Progress) string {
	if how == nil || how.Unit != control.UnitBytes {
		return ""
	}
	return display.Size(how.Now) + " of " + display.Size(how.Goal)
}
