// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// window keeps what two counters said over a span, of which one is a part of the other.
type window struct {
	span time.Duration
	all  []moment // oldest first
}

// moment is what they said at one.
type moment struct {
	at        time.Duration
	of, among float64
}

// windowKept bounds the moments: of those that come more often than the span has room for, the newest is kept.
const windowKept = 64

// take adds what the counters say, if that is new. A counter that has gone back begins anew.
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

// grown is by how much both have grown.
func (w *window) grown() (of, among float64) {
	if len(w.all) == 0 {
		return 0, 0
	}
	first, last := w.all[0], w.all[len(w.all)-1]
	return last.of - first.of, last.among - first.among
}

// risen adds up by how much counters have grown while they were looked at. One that is new, or has fallen, as the mean
// of the processors does when one is taken out, has not grown.
type risen struct {
	last map[string]float64
	by   float64
}

// figure returns the sum, with what they say now.
func (r *risen) figure(now map[string]float64) Figure {
	for name, value := range now {
		if last, known := r.last[name]; known {
			r.by += max(0, value-last)
		}
	}
	r.last = now
	return Figure{Value: r.by, Known: true}
}

// share is how much of the growth the one is of the other, in percent. That is taken for fewest at least, so that one
// of a few does not count for many.
func (w *window) share(fewest float64) float64 {
	of, among := w.grown()
	return 100 * of / max(among, fewest)
}
