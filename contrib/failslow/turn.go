// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// turn is the schedule of a lane. The lane rests like that of the real probe (disk/schedule.go): after several slow
// writes, or after one that is very slow, for ten times as long as they took, at most a minute.
type turn struct {
	interval, ended, took time.Duration
	jitter                float64
	owed                  time.Duration
	unpaid                int
}

const (
	slowWrite     = 100 * time.Millisecond
	restFactor    = 10
	restLimit     = time.Minute
	confirmations = 2
	confirmRest   = time.Second
	confirmLimit  = 3 * time.Second
)

// due returns when the lane writes next.
func (t *turn) due() time.Duration {
	rest := time.Duration(float64(t.interval) * t.jitter)
	switch {
	case t.took <= slowWrite:
	case t.unpaid <= confirmations && t.owed <= confirmLimit:
		rest = max(rest, confirmRest)
	default:
		rest = max(rest, restFactor*t.owed)
	}
	return t.ended + rest
}

// run records a write of the lane.
func (t *turn) run(start, end time.Duration, rng *rand.Rand) {
	rested, took := start-t.ended, end-start
	t.ended, t.jitter = end, 0.9+0.2*rng.Float64()
	if t.owed = max(0, t.owed-rested/restFactor); t.owed == 0 {
		t.unpaid = 0
	}
	if t.took = took; took > slowWrite {
		t.owed = min(t.owed+took, restLimit/restFactor)
		t.unpaid++
	}
}
