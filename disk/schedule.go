// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// slow is the length from which on an operation is followed by a rest in proportion, and restFactor the proportion:
	// a disk in trouble is busy with the probe for a tenth of the time at most.
	slow       = 100 * time.Millisecond
	restFactor = 10
	// restLimit keeps one long stall from blinding the probe for ten times as long.
	restLimit = time.Minute
)

// turn is something the child does again and again.
type turn struct {
	// interval is the rest between two turns as configured, by now: a burst changes it while the turn is waiting.
	interval func(failed bool) time.Duration
	act      func() error

	ended, took time.Duration
	failed      bool
	jitter      float64
}

// due is the moment to begin, on Monotonic. It counts from the end of the turn before, so turns never pile up.
func (t *turn) due() time.Duration {
	if t.ended == 0 {
		return 0
	}
	rest := time.Duration(float64(t.interval(t.failed)) * t.jitter)
	if t.took > slow {
		rest = max(rest, min(restFactor*t.took, restLimit))
	}
	return t.ended + rest
}

func (t *turn) run() {
	begun := Monotonic()
	t.failed = t.act() != nil
	t.ended = Monotonic()
	t.took = t.ended - begun
	t.jitter = 0.9 + 0.2*rand.Float64()
}

func earliest(turns []*turn) *turn {
	return slices.MinFunc(turns, func(a, b *turn) int { return cmp.Compare(a.due(), b.due()) })
}
