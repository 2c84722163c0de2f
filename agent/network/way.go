// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"time"
)

const (
	// badAfter is how often in a row a port must be found otherwise before it is said not to answer.
	badAfter = 3
	// wellAfter is how often in a row it must answer again.
	wellAfter = 6
	// lostAfter is how often in a row it must take no connection before a member may be called lost, missedEvery how
	// soon it is looked at again until then. That is said early: one connection ends it, and whoever acts on it waits.
	lostAfter   = 2
	missedEvery = time.Second
	// connectsKept are the connections by whose median the way is measured: five minutes of them.
	connectsKept = 30
)

// way remembers what was found on the way to one port. It belongs to the prober's lock.
type way struct {
	shown Way
	times []time.Duration // that the newest connections took
	well  int             // answers in a row
	bad   int             // looks in a row with no answer

	missed   int           // looks in a row in which it took no connection
	missedAt time.Duration // when the first of them began
	lookedAt time.Duration // when the last look that has ended began

	busy    bool
	due     time.Duration
	largeAt time.Duration // when the last question larger than a packet was asked
	asked   bool          // one was
	suspect bool          // the last one was not answered as it should be
	barred  bool          // etcd refuses the certificate, and writes that to its log each time
}

// found takes in what one look has found.
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

// took takes in whether a look that began at that time was given a connection.
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

// large tells whether the next question should be larger than a packet: every now and then, and as long as the last one
// was not answered.
func (w *way) large(now time.Duration) bool {
	return !w.asked || w.suspect || w.shown.State == LargeLost || now-w.largeAt >= largeEvery
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
