// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// simulatedDisk generates the writes of the probe to one host's disk, as package disk makes them: two lanes, one
// write at a time, and a rest after slow writes.
type simulatedDisk struct {
	family
	rng    *rand.Rand
	spells []*spells
	fault  active

	body    float64 // median write time of this disk in ns: drives of a family differ a little
	minute  time.Duration
	drifted float64 // logarithm of the factor by which the median has drifted in this minute
	scale   float64 // factor on the median in this minute
	leads   bool    // this host is the leader and serves clients, which slows its writes down
	burden  float64 // factor by which leading multiplies the duration of a write

	lanes   [2]turn
	pending write // the write in flight, if any
	samples []disk.Sample
	bases   []time.Duration // for each sample, how long the write would have taken on a follower
	last    time.Duration   // when a write last completed
}

// write is one write of the probe.
type write struct {
	lane         disk.Lane
	start, end   time.Duration
	base         time.Duration
	contaminated bool
}

// newDisk returns a disk at the given time. Its first write is due a second later. habit is the random source of the
// disk's own properties, and rng the random source of its writes.
func newDisk(f family, own []*spells, habit, rng *rand.Rand, at time.Duration) *simulatedDisk {
	d := &simulatedDisk{family: f, rng: rng, spells: own, minute: -1, scale: 1}
	d.body = float64(f.median) * math.Exp(0.05*habit.NormFloat64())
	d.burden = 1.05 + 0.15*habit.Float64()
	d.drifted = f.drift * rng.NormFloat64()
	d.lanes[disk.LaneDirect] = turn{interval: time.Second, ended: at, jitter: 1}
	d.lanes[disk.LaneWAL] = turn{interval: 10 * time.Second, ended: at, jitter: 1}
	d.last = at
	return d
}

// advance makes the writes that are due before the given time, and adds the completed ones to d.samples.
func (d *simulatedDisk) advance(until time.Duration) {
	for {
		if d.pending.end == 0 {
			lane := disk.LaneDirect
			if d.lanes[disk.LaneWAL].due() < d.lanes[lane].due() {
				lane = disk.LaneWAL
			}
			start := max(d.lanes[lane].due(), d.last)
			if start >= until {
				return
			}
			d.pending = d.draw(lane, start)
		}
		if d.pending.end > until {
			return
		}
		d.complete()
	}
}

// complete ends the write in flight.
func (d *simulatedDisk) complete() {
	w := d.pending
	d.pending = write{}
	d.last = w.end
	d.lanes[w.lane].run(w.start, w.end, d.rng)
	d.samples = append(d.samples, disk.Sample{
		Lane: w.lane, End: w.end, Latency: w.end - w.start, Contaminated: w.contaminated,
	})
	d.bases = append(d.bases, w.base)
}

// draw returns a write that starts now.
func (d *simulatedDisk) draw(lane disk.Lane, now time.Duration) write {
	took, base, contaminated := d.took(now, lane == disk.LaneWAL, d.rng)
	return write{lane: lane, start: now, end: now + max(took, time.Microsecond), base: base, contaminated: contaminated}
}

// took draws how long a write that starts now takes. base is how long it would take on a follower.
func (d *simulatedDisk) took(
	now time.Duration, log bool, rng *rand.Rand,
) (took, base time.Duration, contaminated bool) {
	if minute := now / time.Minute; minute > d.minute {
		d.drift(minute)
	}
	body := d.body * d.scale * math.Exp(d.spread*rng.NormFloat64())
	for _, s := range d.spells {
		body *= s.at(now)
	}
	if log {
		body *= d.log
	}
	if rng.Float64() < d.tails {
		body *= d.tailLow * math.Pow(d.tailHigh/d.tailLow, rng.Float64())
	}
	contaminated = d.starved > 0 && rng.Float64() < d.starved
	base, spoiled := d.fault.change(now, time.Duration(body), rng)
	took = base
	if d.leads {
		took = time.Duration(float64(base) * d.burden)
	}
	return took, base, contaminated || spoiled
}

// drift draws the drift of a minute, which is correlated with the last one drawn, and sets the scale.
func (d *simulatedDisk) drift(minute time.Duration) {
	const keeps = 0.9
	d.minute = minute
	d.drifted = keeps*d.drifted + math.Sqrt(1-keeps*keeps)*d.family.drift*d.rng.NormFloat64()
	hour := float64(minute%(24*60)) / 60
	d.scale = math.Exp(d.drifted) * (1 + d.daily*math.Sin(2*math.Pi*(hour-9)/24))
}

// reading returns what the probe reports at the given time. Call d.advance first.
func (d *simulatedDisk) reading(now time.Duration) health.DiskReading {
	r := health.DiskReading{Samples: d.samples, Alive: true}
	if d.pending.end != 0 {
		r.InFlight, r.InFlightOp, r.LastCompletion = now-d.pending.start, "fdatasync", d.last
		return r
	}
	r.NextIn = min(d.lanes[0].due(), d.lanes[1].due()) - now
	return r
}

// forget drops the samples, which the judge has received.
func (d *simulatedDisk) forget() { d.samples, d.bases = d.samples[:0], d.bases[:0] }
