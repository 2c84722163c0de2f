// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// PeerWritesReading is how long the writes of the other voters' disks take, as their hosts publish it. The zero value
// means not read.
type PeerWritesReading struct {
	Known  bool
	Absent string // why nothing is known, as a stable text
	Self   string // the name of this host
	// All has every other voter of the cluster, including those that have published nothing. Only what a voter's own
	// record contains may be here, at most once per member.
	All []PeerWrites
}

// PeerWrites is what another voter's host publishes. It may be wrong. Among three or more answers, one record neither
// causes a finding nor prevents one, because the lower median counts. With two answers, the lower figure counts, unless
// it is more than peersApart times below both the other one and this host's own past. So one record never prevents a
// finding of a disk whose other peer answers truthfully, and it causes one only while a load or a shared storage slows
// all voters down, and only if it is at least an eighth of that host's usual time. Without such a load, a disk that is
// as fast as in its own past has no finding, whatever the others publish.
type PeerWrites struct {
	Host string
	// P50 and P90 are of its newest writes, as in [Writes], rounded to the nearest quarter of an octave; 0 if it has
	// published none.
	P50, P90 time.Duration
	// Tails is its number of slow episodes, as in [Writes].
	Tails int
	// Age is the time, on this host's clock, since this host first observed the measurement. Only a different
	// measurement restarts it.
	Age time.Duration
}

const (
	// peersFewest is how many other voters must have published: the lower median of two is the lower one, so that a
	// single record cannot make this host look slow.
	peersFewest = 2
	// peersOldest is the maximum age of a peer's measurement. A voter that is asked publishes again when the
	// measurement changes, and otherwise every 30 minutes; its record expires with its agent.
	peersOldest = 45 * time.Minute
	// peersApart is how many times faster than both this host's past and the other voter one of two voters may be.
	peersApart = 8
	// writeLongest bounds a published latency; a longer one is refused.
	writeLongest = time.Hour
	// tailsMost bounds a published number of episodes: one every ten seconds for two hours.
	tailsMost = 720
)

// plausible reports whether a record's figures are possible.
func (p PeerWrites) plausible() bool {
	return p.P50 > 0 && p.P50 <= p.P90 && p.P90 <= writeLongest && p.Tails >= 0 && p.Tails <= tailsMost && p.Age >= 0
}

// young returns the plausible figures that are not older than the given age.
func (r PeerWritesReading) young(oldest time.Duration) []PeerWrites {
	var young []PeerWrites
	for _, p := range r.All {
		if r.Known && p.plausible() && p.Age <= min(oldest, peersOldest) {
			young = append(young, p)
		}
	}
	return young
}

// believed returns the figures that count, of those that were published: of two, not one that is far below both the
// other one and this host's usual time.
func believed(young []PeerWrites, usual time.Duration) []PeerWrites {
	if len(young) != peersFewest || usual == 0 {
		return young
	}
	fast, slow := 0, 1
	if young[slow].P50 < young[fast].P50 {
		fast, slow = slow, fast
	}
	if p50 := young[fast].P50; p50 < usual/peersApart && p50 < young[slow].P50/peersApart {
		return young[slow : slow+1]
	}
	return young
}

// lowerMedian returns the lower median of a figure; 0 for none.
func lowerMedian[T int | time.Duration](of []PeerWrites, figure func(PeerWrites) T) T {
	if len(of) == 0 {
		return 0
	}
	all := make([]T, len(of))
	for i, p := range of {
		all[i] = figure(p)
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}
