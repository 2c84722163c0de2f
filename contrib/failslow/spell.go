// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// spell describes recurring periods in which a disk is slower although it has no fault: a backup, a scrub, a batch job
// or a burst of load.
type spell struct {
	name string
	// every is the time between two spells. If random is true, it is the mean of an exponential distribution. Otherwise
	// it is a fixed period, and each spell begins late by up to 1 % of the period, at most 2 minutes.
	every  time.Duration
	random bool
	// from and to bound how long a spell lasts.
	from, to time.Duration
	// low and high bound the factor by which a spell multiplies the duration of a write.
	low, high float64
	// shared spells happen on all hosts of a cluster at once.
	shared bool
}

// usual returns the spells of a typical host: a nightly backup and a weekly scrub, each host at its own time, bursts of
// load that all hosts share, and short random slowdowns.
func usual() []spell {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []spell{
		{name: "backup", every: 24 * h, from: 20 * m, to: 45 * m, low: 2.5, high: 5},
		{name: "scrub", every: 7 * 24 * h, from: 3 * h, to: 6 * h, low: 1.3, high: 1.9},
		bursts(),
		{name: "stray", every: 12 * h, random: true, from: 5 * s, to: 20 * s, low: 2, high: 6},
	}
}

// bursts returns the spell of load bursts, which all hosts share because all voters write the same entries.
func bursts() spell {
	return spell{
		name: "burst", every: 4 * time.Hour, random: true, from: 10 * time.Second, to: time.Minute, low: 1.5, high: 4,
		shared: true,
	}
}

// batch returns the spell of an hourly job of a few minutes.
func batch() spell {
	return spell{name: "batch", every: time.Hour, from: 2 * time.Minute, to: 4 * time.Minute, low: 2.2, high: 3.5}
}

// spells yields the occurrences of a spell one after another.
type spells struct {
	spell
	rng      *rand.Rand
	phase    time.Duration
	lasts    time.Duration // mean length of a periodic spell on this host
	by       float64       // mean factor of a periodic spell on this host
	from, to time.Duration // beginning and end of the current or next occurrence
	factor   float64       // factor of that occurrence
}

// newSpells returns the occurrences of a spell. habit is the random source of the time, mean length and mean factor,
// and rng the random source of the variation between occurrences.
func newSpells(s spell, habit, rng *rand.Rand) *spells {
	out := &spells{spell: s, rng: rng}
	out.phase = time.Duration(habit.Float64() * float64(s.every))
	out.lasts = between(habit, s.from, s.to)
	out.by = s.low + habit.Float64()*(s.high-s.low)
	return out
}

// at returns the factor by which the spell multiplies the duration of a write at the given time. The time must not go
// backwards from call to call.
func (s *spells) at(now time.Duration) float64 {
	for now >= s.to {
		s.next(now)
	}
	if now < s.from {
		return 1
	}
	return s.factor
}

// next draws the occurrence after the current one. The length and the factor of a periodic spell vary by up to a tenth
// around their means.
func (s *spells) next(now time.Duration) {
	if s.random {
		if s.to == 0 {
			s.to = now
		}
		s.from = s.to + time.Duration(s.rng.ExpFloat64()*float64(s.every))
		s.to = s.from + between(s.rng, s.spell.from, s.spell.to)
		s.factor = s.low + s.rng.Float64()*(s.high-s.low)
		return
	}
	since := max(now, s.from+s.every/2) - s.phase + s.every - 1
	if s.to == 0 { // the first occurrence may have begun before now
		since = now - s.phase
	}
	jitter := min(s.every/100, 2*time.Minute)
	s.from = s.phase + since - since%s.every + time.Duration(s.rng.Float64()*float64(jitter))
	s.to = s.from + time.Duration(float64(s.lasts)*(0.9+0.2*s.rng.Float64()))
	s.factor = 1 + (s.by-1)*(0.9+0.2*s.rng.Float64())
}

// between draws a duration uniformly between low and high.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Float64()*float64(high-low))
}
