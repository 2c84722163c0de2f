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
	// All contains every other voter of the cluster once, including those that have published nothing. An entry
	// contains only figures from the record of the voter's own host.
	All []PeerWrites
}

// PeerWrites contains the figures that another voter's host publishes. The figures may be wrong, so a single record
// must not decide.
//
// With three or more records, the lower median counts, so one wrong record neither causes nor prevents a finding. With
// two records, the lower figure counts, unless the other figure and this host's usual time are each more than
// peersApart times as long. So one wrong record cannot prevent a finding if the other record is right. It can cause a
// finding only while a load or shared storage slows all voters down, and only if its figure is at least an eighth of
// this host's usual time. Without such a slowdown, a disk that is as fast as in its own past has no finding, whatever
// the other hosts publish.
type PeerWrites struct {
	Host string
	// P50 and P90 are percentiles of the voter's newest writes, as in [Writes], rounded to the nearest quarter of an
	// octave; 0 if its host has published none.
	P50, P90 time.Duration
	// Tails is the voter's number of slow episodes, as in [Writes].
	Tails int
	// Age is the time, on this host's clock, since this host first observed the measurement. Only a different
	// measurement restarts it.
	Age time.Duration
}

const (
	// peersFewest is how many other voters must have published. Of two figures the lower median is the lower one, so
	// this host compares itself with the faster of two voters.
	peersFewest = 2
	// peersOldest is the maximum age of a peer's measurement. A voter that is asked publishes again when the
	// measurement changes, and otherwise every 30 minutes; its record expires with its agent.
	peersOldest = 45 * time.Minute
	// peersApart is the factor beyond which the lower of two figures is not credible: the other figure and this host's
	// usual time are each more than that many times as long.
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

// young returns the plausible figures that are no older than the given age and than peersOldest.
func (r PeerWritesReading) young(oldest time.Duration) []PeerWrites {
	var young []PeerWrites
	for _, p := range r.All {
		if r.Known && p.plausible() && p.Age <= min(oldest, peersOldest) {
			young = append(young, p)
		}
	}
	return young
}

// credible returns the published figures that count. Of two figures, it drops the lower one if that is far below both
// the higher one and this host's usual time.
func credible(young []PeerWrites, usual time.Duration) []PeerWrites {
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
