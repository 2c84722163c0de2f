// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// Writes describes how long the probe's writes take now, mainly by their mean, because that is how long clients of a
// leader wait. A median hides slow writes, and the slowest write of a minute is a matter of chance. There are means of
// two windows, so that neither a single burst nor the past makes one disk look slower than another.
type Writes struct {
	// Least and Most are the lower and the higher mean of the last minute and of the last five minutes; both 0 if
	// unknown. Least also considers the last 20 s, and the five minutes without them, because a burst of a few seconds
	// cannot raise both.
	Least, Most time.Duration
	// P50 and P90 are the median and the 90th percentile of the last 40 s; both 0 if unknown.
	P50, P90 time.Duration
	// LeastP90 is the lower 90th percentile of the last 40 s and of the last five minutes. After a slow write the probe
	// rests, so a few slow writes can be a tenth of the writes of the last 40 s. LeastP90 is 0 if unknown, or without a
	// finding about slow writes.
	LeastP90 time.Duration
	// Tails is the number of episodes of slow writes in the last two hours.
	Tails int
	// LeastTails is Tails if that is far more than usual and than on the other voters that publish, or during a finding
	// about slow episodes; otherwise 0.
	LeastTails int
}

// Known reports whether there are enough samples.
func (w Writes) Known() bool { return w.Most > 0 }

// writesFewest is how many samples a mean needs. With the default settings, even a probe outside of a burst takes more
// than sixty a minute.
const writesFewest = 5

// writes returns how long the writes of both lanes take now. It ignores contaminated samples.
func (f *fsync) writes() Writes {
	short := f.recent.since(f.now - max(f.pace.sharp, 2*writesFewest*f.limits.DirectInterval))
	long := f.recent.since(f.now - max(f.pace.settle, 2*writesFewest*f.limits.DirectInterval))
	if len(short) < writesFewest {
		return Writes{}
	}
	a, b := short.mean(), long.mean()
	w := Writes{Least: min(a, b), Most: max(a, b)}
	if f.track.State != OK || f.compared.track.State != OK {
		w.LeastP90 = long.spread().at(900)
	}
	newest := f.recent.since(f.now - max(f.pace.newest, writesFewest*f.limits.DirectInterval))
	for _, part := range []samples{newest, long[:max(0, len(long)-len(newest))]} {
		if len(part) >= writesFewest {
			w.Least = min(w.Least, part.mean())
		}
	}
	return w
}

// OnlySlowWrites reports whether there are findings with the given gate, and all of them are about slow writes, not
// about writes that hang or fail.
func (v Assessment) OnlySlowWrites(what Gate) bool {
	return v.only(what, DiskFsyncWarm, DiskFsyncSlow, DiskSlowerThanPeers)
}

// OnlyStalledRequests reports whether there is a finding with the given gate, and it is that etcd answers no requests.
func (v Assessment) OnlyStalledRequests(what Gate) bool { return v.only(what, EtcdStalled) }

// only reports whether there are findings with the given gate, and all of them have one of these codes.
func (v Assessment) only(what Gate, codes ...Code) bool {
	found := false
	for _, f := range v.Findings {
		if f.Gates&what == 0 {
			continue
		}
		if !slices.Contains(codes, f.Code) {
			return false
		}
		found = true
	}
	return found
}
