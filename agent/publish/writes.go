// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

const (
	// writesEvery is how often an unchanged measurement is published again, because an old one is no evidence.
	writesEvery = 10 * time.Minute
	// writesSoonest is the minimum time before a changed measurement is published.
	writesSoonest = 10 * time.Second
	// writesBudget bounds how often a measurement is published in a row, and writesRefill is the time after which it
	// may be once more: the leader may be slow for hours.
	writesBudget = 10
	writesRefill = 5 * time.Minute
)

// writeMean is the mean duration of this host's writes, as last published.
type writeMean struct {
	at    time.Duration // since boot; 0 if none is published
	wall  time.Time
	level float64 // seconds

	spent    int           // of the budget
	refilled time.Duration // when a part of it was last given back
}

// publish adds a round's measurement to a host record, if it is requested and known.
func (w *writeMean) publish(h *record.Host, r *round.Round, asked bool) {
	h.WriteMean, h.WritesAt = 0, time.Time{}
	if !asked || !r.Assessment.Writes.Known() {
		w.at = 0
		return
	}
	if back := int((r.At - w.refilled) / writesRefill); back > 0 {
		w.spent, w.refilled = max(w.spent-back, 0), r.At
	}
	age := r.At - w.at
	level := halfOctave(r.Assessment.Writes.Most)
	changed := level > w.level || level < 0.6*w.level // the published level is an upper bound
	due := w.at == 0 || age >= writesEvery || changed && age >= writesSoonest
	if due && w.spent < writesBudget {
		w.at, w.wall, w.level, w.spent = r.At, r.Wall.UTC().Truncate(time.Second), level, w.spent+1
	}
	if w.at != 0 {
		h.WriteMean, h.WritesAt = w.level, w.wall
	}
}

// halfOctave returns a duration in seconds, rounded up to a microsecond times a power of √2.
func halfOctave(d time.Duration) float64 {
	steps := math.Ceil(2*math.Log2(float64(d)/float64(time.Microsecond)) - 1e-9)
	return math.Exp2(max(steps, 0)/2) / 1e6
}
