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
	writesEvery = time.Minute
	// writesSoonest is the minimum time before a changed measurement is published.
	writesSoonest = 10 * time.Second
)

// writeMean is the mean duration of this host's writes, as last published.
type writeMean struct {
	at    time.Duration // since boot; 0 if none is published
	wall  time.Time
	level float64 // seconds
}

// publish adds a round's measurement to a host record, if it is requested and known.
func (w *writeMean) publish(h *record.Host, r *round.Round, asked bool) {
	h.WriteMean, h.WritesAt = 0, time.Time{}
	if !asked || !r.Assessment.Writes.Known() {
		*w = writeMean{}
		return
	}
	age := r.At - w.at
	level := halfOctave(r.Assessment.Writes.Most)
	if w.at == 0 || age >= writesEvery || level != w.level && age >= writesSoonest {
		*w = writeMean{at: r.At, wall: r.Wall.UTC().Truncate(time.Second), level: level}
	}
	h.WriteMean, h.WritesAt = w.level, w.wall
}

// halfOctave returns a duration in seconds, rounded up to a microsecond times a power of √2.
func halfOctave(d time.Duration) float64 {
	steps := math.Ceil(2*math.Log2(float64(d)/float64(time.Microsecond)) - 1e-9)
	return math.Exp2(max(steps, 0)/2) / 1e6
}
