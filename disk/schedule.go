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
	// slow is the duration above which an operation is followed by a rest that is restFactor times as long, at most
	// restLimit, so that the probe adds little load to a disk in trouble.
	slow       = 100 * time.Millisecond
	restFactor = 10
	// restLimit is the longest rest that slow operations cause.
	restLimit = time.Minute
	// confirmations is how many slow operations are each followed by the usual rest, but at least confirmRest, to
	// distinguish a disk that stays slow from one that was slow once. After one more slow operation, or as soon as the
	// slow operations have taken longer than confirmLimit in total, the lane rests for all of them.
	confirmations = 2
	confirmRest   = time.Second
	confirmLimit  = 3 * time.Second
)

// task is a recurring operation of the child.
type task struct {
	// interval returns the rest between two runs. It is a function because a burst changes the rest while the task
	// waits.
	interval func(failed bool) time.Duration
	act      func() error

	ended, took time.Duration
	failed      bool
	jitter      float64

	owed   time.Duration // duration of slow operations for which the disk has not rested yet
	unpaid int           // their number
}

// due returns the start of the next run, on the clock of [Monotonic]. It counts from the end of the previous run, so
// runs never pile up.
func (t *task) due() time.Duration {
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

// settle updates the rest that is still due after slow operations. took is the duration of the last run, and rested is
// the rest before it.
func (t *task) settle(rested, took time.Duration) {
	if t.owed = max(0, t.owed-rested/restFactor); t.owed == 0 {
		t.unpaid = 0
	}
	if t.took = took; took > slow {
		t.owed = min(t.owed+took, restLimit/restFactor)
		t.unpaid++
	}
}

func (t *task) run() {
	begun := Monotonic()
	rested := begun - t.ended
	t.failed = t.act() != nil
	t.ended = Monotonic()
	t.settle(rested, t.ended-begun)
	t.jitter = 0.9 + 0.2*rand.Float64()
}

func earliest(tasks []*task) *task {
	return slices.MinFunc(tasks, func(a, b *task) int { return cmp.Compare(a.due(), b.due()) })
}
