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
	// figuresEvery is the interval at which unchanged figures are published again while another host requests them.
	figuresEvery = 30 * time.Minute
	// figuresSoonest is the minimum age of published figures before changed figures replace them.
	figuresSoonest = 10 * time.Second
	// figuresChange and figuresP90Change are the factors by which the median and the 90th percentile must change to
	// count as changed. Smaller changes may be chance.
	figuresChange, figuresP90Change = 1.6, 2.1
	// Figures are published at most figuresBudget times in a row, the first answer included, and once more after each
	// figuresRefill. The limit is needed because all voters request figures if they share a load, and because a
	// requesting record may be forged.
	figuresBudget = 6
	figuresRefill = 20 * time.Minute
)

// writeFigures are the figures of this host's writes, as last published.
type writeFigures struct {
	at       time.Duration // since boot; 0 if none are published
	wall     time.Time
	p50, p90 float64 // seconds
	tails    int     // number of slow episodes

	budget *rate.Limiter
}

// set sets the figures in a host record, if they are requested and known.
func (w *writeFigures) set(h *record.Host, now time.Duration, wall time.Time, writes health.Writes, asked bool) {
	h.WriteP50, h.WriteP90, h.WriteTails, h.FiguresAt = 0, 0, 0, time.Time{}
	if !asked || writes.P50 <= 0 {
		w.at = 0
		return
	}
	age := now - w.at
	due := w.at == 0 || age >= figuresEvery || w.differ(writes) && age >= figuresSoonest
	if due && mayPublish(w.budget, now) {
		w.at, w.wall = now, wall.UTC().Truncate(time.Second)
		w.p50, w.p90, w.tails = quarterOctave(writes.P50), quarterOctave(writes.P90), writes.Tails
	}
	if w.at != 0 {
		h.WriteP50, h.WriteP90, h.WriteTails, h.FiguresAt = w.p50, w.p90, w.tails, w.wall
	}
}

// differ reports whether the figures have changed by more than chance explains.
func (w *writeFigures) differ(now health.Writes) bool {
	far := func(now time.Duration, was, factor float64) bool {
		ratio := now.Seconds() / was
		return ratio > factor || ratio < 1/factor
	}
	return far(now.P50, w.p50, figuresChange) || far(now.P90, w.p90, figuresP90Change) ||
		now.Tails >= 2*w.tails+4 || 2*now.Tails+4 <= w.tails
}

// quarterOctave returns a duration in seconds, rounded to the nearest level: 1 µs times a power of the fourth root of
// two. Rounding up would bias a comparison of disks.
func quarterOctave(d time.Duration) float64 {
	steps := math.Round(4 * math.Log2(float64(d)/float64(time.Microsecond)))
	return math.Exp2(max(steps, 0)/4) / 1e6
}
