// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package diskrecord

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

const (
	// meanEvery is the interval at which an unchanged measurement is published again, because an old one does not show
	// the current state.
	meanEvery = 10 * time.Minute
	// meanSoonest is the minimum age of a published measurement before a changed one replaces it.
	meanSoonest = 10 * time.Second
	// A measurement is published at most meanBudget times in a row, and once more after each meanRefill, because the
	// leader may be slow for hours.
	meanBudget = 10
	meanRefill = 5 * time.Minute
)

// writeMean is the mean duration of this host's writes, as last published.
type writeMean struct {
	at    time.Duration // since boot; 0 if none is published
	wall  time.Time
	level float64 // seconds

	budget *rate.Limiter
}

// set sets the measurement in a host record, if it is requested and known.
func (w *writeMean) set(h *record.Host, now time.Duration, wall time.Time, writes health.Writes, asked bool) {
	h.WriteMean, h.WritesAt = 0, time.Time{}
	if !asked || !writes.Known() {
		w.at = 0
		return
	}
	age := now - w.at
	level := halfOctave(writes.Most)
	// The published level is an upper bound. A mean that exceeds it by up to 20 % may be chance.
	changed := writes.Most.Seconds() > 1.2*w.level || level < 0.6*w.level
	due := w.at == 0 || age >= meanEvery || changed && age >= meanSoonest
	if due && mayPublish(w.budget, now) {
		w.at, w.wall, w.level = now, wall.UTC().Truncate(time.Second), level
	}
	if w.at != 0 {
		h.WriteMean, h.WritesAt = w.level, w.wall
	}
}

// halfOctave returns a duration in seconds, rounded up to 1 µs times a power of √2.
func halfOctave(d time.Duration) float64 {
	steps := math.Ceil(2*math.Log2(float64(d)/float64(time.Microsecond)) - 1e-9)
	return math.Exp2(max(steps, 0)/2) / 1e6
}
