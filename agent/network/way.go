// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"time"
)

const (
	// badAfter is how many probes in a row must fail before a port counts as not answering.
	badAfter = 3
	// wellAfter is how many in a row must then succeed.
	wellAfter = 6
	// lostAfter is how many probes in a row must find no connection before a member may be called lost, and missedEvery
	// is their interval. It is called lost early: one connection ends that, and what depends on it waits longer.
	lostAfter   = 2
	missedEvery = time.Second
	// connectsKept is how many connections the median is taken over: five minutes of them.
	connectsKept = 30
)

// way has the results for one port. The prober's lock protects it.
type way struct {
	shown Way
	times []time.Duration // of the last connections
	well  int             // answers in a row
	bad   int             // probes in a row without an answer

	missed   int           // probes in a row without a connection
	missedAt time.Duration // when the first of them began
	lookedAt time.Duration // when the last finished probe began

	busy    bool
	due     time.Duration
	largeAt time.Duration // when the last large request was sent
	asked   bool          // a large request was sent before
	suspect bool          // the last large request was not answered properly
	barred  bool          // etcd refuses the certificate, and logs that each time
}

// found records the result of one probe.
func (w *way) found(l look) {
	w.barred = l.barred
	if l.state != Unreachable && l.state != Refused {
		w.times = append(w.times, l.took)
		w.times = w.times[max(0, len(w.times)-connectsKept):]
		w.shown.RTT = median(w.times)
	}
	if l.state == Answers {
		w.shown.Sent, w.shown.Resent = w.shown.Sent+l.sent, w.shown.Resent+l.resent
	}
	if l.large {
		w.suspect = l.state != Answers
	}
	if l.state == Answers {
		w.well, w.bad = w.well+1, 0
		if w.shown.State == Unknown || w.well >= wellAfter {
			w.shown.State = Answers
		}
		return
	}
	w.well, w.bad = 0, w.bad+1
	if w.bad >= badAfter {
		w.shown.State = l.state
	}
}

// took records whether a probe that began at that time made a connection.
func (w *way) took(began time.Duration, l look) {
	if l.unsure {
		return
	}
	w.lookedAt = began
	if l.state.Takes() {
		w.missed = 0
		return
	}
	if w.missed++; w.missed == 1 {
		w.missedAt = began
	}
}

// large reports whether the next request should be larger than a packet: from time to time, and while the last large
// one was not answered.
func (w *way) large(now time.Duration) bool {
	return !w.asked || w.suspect || w.shown.State == LargeLost || now-w.largeAt >= largeEvery
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
