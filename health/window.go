// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// window keeps readings of a pair of counters over a span; the first counter is a part of the second.
type window struct {
	span time.Duration
	all  []moment // oldest first
}

// moment is one reading of both counters.
type moment struct {
	at        time.Duration
	of, among float64
}

// windowKept bounds the number of readings. If they come too often for that, a new reading replaces the newest one.
const windowKept = 64

// take adds a reading. An unknown reading, or a counter that has decreased, restarts the window.
func (w *window) take(at time.Duration, p Part) {
	if !p.Known {
		w.all = nil
		return
	}
	if n := len(w.all); n > 0 {
		last := w.all[n-1]
		switch {
		case p.Of < last.of || p.Among < last.among:
			w.all = nil
		case n > 1 && last.at-w.all[n-2].at < w.span/(windowKept-2):
			w.all = w.all[:n-1]
		}
	}
	w.all = append(w.all, moment{at, p.Of, p.Among})
	for len(w.all) > 2 && at-w.all[1].at >= w.span {
		w.all = slices.Delete(w.all, 0, 1)
	}
}

// grown returns how much both counters have grown.
func (w *window) grown() (of, among float64) {
	if len(w.all) == 0 {
		return 0, 0
	}
	first, last := w.all[0], w.all[len(w.all)-1]
	return last.of - first.of, last.among - first.among
}

// risen adds up the growth of counters between readings. A counter counts as unchanged if it is new or has fallen, as
// the mean over all CPUs does when a CPU is taken offline.
type risen struct {
	last map[string]float64
	by   float64
}

// figure adds the growth since the last values, and returns the sum.
func (r *risen) figure(now map[string]float64) Figure {
	for name, value := range now {
		if last, known := r.last[name]; known {
			r.by += max(0, value-last)
		}
	}
	r.last = now
	return Figure{Value: r.by, Known: true}
}

// share returns the growth of the part as a percentage of the growth of the whole. A whole below fewest counts as
// fewest, so that a single event among a few does not weigh too much.
func (w *window) share(fewest float64) float64 {
	of, among := w.grown()
	return 100 * of / max(among, fewest)
}
