// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math"
	"slices"
	"time"
)

// Histogram counts events by their duration. The counts start at zero whenever the program that counts is started. The
// zero value means not read.
type Histogram struct {
	// Known means that the histogram was read; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
	// Bounds are the upper bounds of the buckets in seconds, ascending. Counts has one element more, for everything
	// above the last bound.
	Bounds []float64
	Counts []uint64
}

// Bucket is a range of latencies. If Upto is 0, it has no upper end.
type Bucket struct{ Over, Upto time.Duration }

// String describes the range.
func (b Bucket) String() string {
	switch {
	case b.Upto == 0:
		return "over " + show(b.Over)
	case b.Over == 0:
		return "at most " + show(b.Upto)
	}
	return "between " + show(b.Over) + " and " + show(b.Upto)
}

// Count returns the number of counted events.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Delta returns what was counted since an earlier reading, and false if that is unknown because a reading is missing or
// the counts restarted in between.
func (h Histogram) Delta(before Histogram) (Histogram, bool) {
	if !h.Known || !before.Known || !slices.Equal(h.Bounds, before.Bounds) || len(h.Counts) != len(before.Counts) {
		return Histogram{}, false
	}
	grown := Histogram{Known: true, Bounds: h.Bounds, Counts: slices.Clone(h.Counts)}
	for i, was := range before.Counts {
		if grown.Counts[i] < was {
			return Histogram{}, false
		}
		grown.Counts[i] -= was
	}
	return grown, true
}

// Quantile returns the bucket that contains the given quantile, in thousandths (990 for the 99th percentile), and false
// if nothing was counted.
func (h Histogram) Quantile(perMille int) (Bucket, bool) {
	n := h.Count()
	if n == 0 {
		return Bucket{}, false
	}
	rank := max(1, uint64(math.Ceil(float64(n)*float64(perMille)/1000)))
	for i, c := range h.Counts {
		if rank > c {
			rank -= c
			continue
		}
		var at Bucket
		if i > 0 {
			at.Over = seconds(h.Bounds[i-1])
		}
		if i < len(h.Bounds) {
			at.Upto = seconds(h.Bounds[i])
		}
		return at, true
	}
	return Bucket{}, false
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
