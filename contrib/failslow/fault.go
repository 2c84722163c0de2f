// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// fault describes how a fault changes the writes of a host's disk. The zero value changes nothing.
type fault struct {
	factor float64       // factor on the duration of each write; 0: none
	plus   time.Duration // added to the duration of each write
	// tails is the share of writes whose duration is instead drawn log-uniformly between tailFrom and tailTo.
	tails            float64
	tailFrom, tailTo time.Duration
	// stall is how long the disk completes no write, once in each period of length every.
	stall time.Duration
	// lasts is how long the fault is active in each period of length every; 0: all the time.
	lasts, every time.Duration
	starved      float64 // share of writes spoiled by CPU starvation
	// The fault ends for good after a time between onceFrom and onceTo; 0: never.
	onceFrom, onceTo time.Duration
	// growth is the factor by which the duration grows in a week.
	growth float64
}

// active is a fault on one host: when it began, and when it ends.
type active struct {
	fault
	begin, end time.Duration
}

// activate starts a fault.
func (f fault) activate(at time.Duration, rng *rand.Rand) active {
	a := active{fault: f, begin: at, end: math.MaxInt64}
	if f.onceTo > 0 {
		a.end = at + between(rng, f.onceFrom, f.onceTo)
	}
	return a
}

// holds reports whether the fault is active at the given time.
func (a *active) holds(at time.Duration) bool {
	if at < a.begin || at >= a.end {
		return false
	}
	return a.lasts == 0 || (at-a.begin)%a.every < a.lasts
}

// change returns how long a write takes that would have taken d without the fault, and whether CPU starvation spoils
// it.
func (a *active) change(at, d time.Duration, rng *rand.Rand) (time.Duration, bool) {
	if !a.holds(at) {
		return d, false
	}
	if a.factor > 0 {
		d = time.Duration(float64(d) * a.factor)
	}
	if a.growth > 0 {
		weeks := (at - a.begin).Hours() / (7 * 24)
		d = time.Duration(float64(d) * math.Pow(a.growth, weeks))
	}
	d += a.plus
	if a.tails > 0 && rng.Float64() < a.tails {
		d = logUniform(rng, a.tailFrom, a.tailTo)
	}
	if a.stall > 0 {
		if since := (at - a.begin) % a.every; since < a.stall {
			d += a.stall - since
		}
	}
	return d, a.starved > 0 && rng.Float64() < a.starved
}

// logUniform draws a duration from a log-uniform distribution.
func logUniform(rng *rand.Rand, low, high time.Duration) time.Duration {
	return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), rng.Float64()))
}
