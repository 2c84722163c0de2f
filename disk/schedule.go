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
	// slow is the shortest operation that is followed by a rest. The rest takes restFactor times as long: each lane
	// uses a disk in trouble for at most a tenth of the time.
	slow       = 100 * time.Millisecond
	restFactor = 10
	// restLimit bounds the rest, so that after one long stall the probe does not stop for ten times as long.
	restLimit = time.Minute
	// confirmations is how many slow operations are each followed by confirmRest only: this distinguishes a disk that
	// stays slow from one that was slow once. After one more, or once they have taken longer than confirmLimit in
	// total, the probe rests for all of them.
	confirmations = 2
	confirmRest   = time.Second
	confirmLimit  = 3 * time.Second
)

// turn is a recurring operation of the child.
type turn struct {
	// interval returns the rest between two turns as currently configured: a burst changes it while the turn is
	// waiting.
	interval func(failed bool) time.Duration
	act      func() error

	ended, took time.Duration
	failed      bool
	jitter      float64

	owed   time.Duration // duration of slow operations for which the disk has not rested yet
	unpaid int           // their number
}

// due returns the start of the next turn, on the clock of [Monotonic]. It counts from the end of the previous turn, so
// turns never pile up.
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

// settle updates the rest that is still due after slow operations: took is the duration of the last turn, rested is the
// rest before it.
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
