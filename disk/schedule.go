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
	// a disk in trouble is busy with each lane for a tenth of the time at most.
	slow       = 100 * time.Millisecond
	restFactor = 10
	// restLimit keeps one long stall from blinding the probe for ten times as long.
	restLimit = time.Minute
	// confirmations is how many slow operations are followed by another one soon, after confirmRest, so that a disk
	// that is slow from now on is told from one that was slow once. The rest that they owe comes after the last, and
	// none is put off for operations that have taken longer than confirmLimit together.
	confirmations = 2
	confirmRest   = time.Second
	confirmLimit  = 3 * time.Second
)

// turn is something the child does again and again.
type turn struct {
	// interval is the rest between two turns as configured, by now: a burst changes it while the turn is waiting.
	interval func(failed bool) time.Duration
	act      func() error

	ended, took time.Duration
	failed      bool
	jitter      float64

	owed   time.Duration // how long slow operations took for which the disk has not rested yet
	unpaid int           // how many there were since nothing was owed
}

// due is the moment to begin, on Monotonic. It counts from the end of the turn before, so turns never pile up.
func (t *turn) due() time.Duration {
	if t.ended == 0 {
		return 0
	}
	rest := time.Duration(float64(t.interval(t.failed)) * t.jitter)
	switch {
	case t.took <= slow:
	case t.unpaid <= confirmations && t.owed <= confirmLimit:
		rest = max(rest, confirmRest)
	default:
		rest = max(rest, restFactor*t.owed)
	}
	return t.ended + rest
}

// settle keeps the account of what the disk is owed.
func (t *turn) settle(rested, took time.Duration) {
	if t.owed = max(0, t.owed-rested/restFactor); t.owed == 0 {
		t.unpaid = 0
	}
	if t.took = took; took > slow {
		t.owed = min(t.owed+took, restLimit/restFactor)
		t.unpaid++
	}
}

func (t *turn) run() {
	begun := Monotonic()
	rested := begun - t.ended
	t.failed = t.act() != nil
	t.ended = Monotonic()
	t.settle(rested, t.ended-begun)
	t.jitter = 0.9 + 0.2*rand.Float64()
}

func earliest(turns []*turn) *turn {
	return slices.MinFunc(turns, func(a, b *turn) int { return cmp.Compare(a.due(), b.due()) })
}
