// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// pace estimates the remaining time from the progress since an earlier point in time.
type pace struct {
	what  string // the text and the unit, which identify what is being counted
	since time.Time
	first float64
}

// paceAfter is how long pace observes the progress before the first estimate.
const paceAfter = 3 * time.Second

// left returns the remaining time at the observed pace, or false while there is no estimate. The text identifies what
// is being counted, so it must not contain numbers.
func (p *pace) left(at time.Time, text string, counted *policy.Progress) (time.Duration, bool) {
	if counted == nil {
		*p = pace{}
		return 0, false
	}
	text += " " + string(counted.Unit)
	far := math.Abs(counted.Goal - counted.Now)
	if p.what != text || far > math.Abs(counted.Goal-p.first) {
		*p = pace{text, at, counted.Now} // something else is being counted, or the count has moved away from its goal
		return 0, false
	}
	done, took := math.Abs(counted.Now-p.first), at.Sub(p.since)
	if done == 0 || took < paceAfter {
		return 0, false
	}
	const most = float64(1000 * 24 * time.Hour)
	return time.Duration(min(most, far/done*float64(took))), true
}

// amount describes a progress in bytes. It returns "" for other units, because the text of the reason contains their
// amounts.
func amount(counted *policy.Progress) string {
	if counted == nil || counted.Unit != policy.CountBytes {
		return ""
	}
	return display.Size(counted.Now) + " of " + display.Size(counted.Goal)
}
