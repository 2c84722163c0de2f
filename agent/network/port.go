// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

const (
	// failAfter is how many probes in a row must fail before a port counts as not answering.
	failAfter = 3
	// recoverAfter is how many probes in a row must then succeed before the port counts as answering again.
	recoverAfter = 6
	// lostAfter is how many probes in a row must fail to connect, on each port, before a member is lost. Two are
	// enough: the first connection ends the state, and the policy waits longer before it acts. missedEvery is the
	// interval between probes after the first failure.
	lostAfter   = 2
	missedEvery = time.Second
	// keptConnections is the number of connections used for the median: those of the last five minutes.
	keptConnections = 30
)

// portProbe holds the results for one port. The prober's lock protects it.
type portProbe struct {
	published    Port
	connectTimes []time.Duration // the last times to connect
	successes    int             // answers in a row
	failures     int             // probes in a row without an answer

	missed   int           // probes in a row without a connection
	missedAt time.Duration // when the first of the probes counted in missed began
	lookedAt time.Duration // when the last conclusive probe began

	probing     bool
	due         time.Duration // when the next probe should begin
	largeAt     time.Duration // when the last large request was sent
	largeSent   bool          // a large request has been sent
	largeFailed bool          // the last large request was not answered
	certRefused bool          // etcd refuses the certificate, and logs every attempt
}

// record updates the state with the result of one probe.
func (w *portProbe) record(l result) {
	w.certRefused = l.certRefused
	if l.state != record.PortUnreachable && l.state != record.PortRefused {
		w.connectTimes = append(w.connectTimes, l.took)
		w.connectTimes = w.connectTimes[max(0, len(w.connectTimes)-keptConnections):]
		w.published.RTT = median(w.connectTimes)
	}
	if l.state == record.PortAnswers {
		w.published.Sent, w.published.Resent = w.published.Sent+l.sent, w.published.Resent+l.resent
	}
	if l.large {
		w.largeFailed = l.state != record.PortAnswers
	}
	if l.state == record.PortAnswers {
		w.successes, w.failures = w.successes+1, 0
		if w.published.State == record.PortUnknown || w.successes >= recoverAfter {
			w.published.State = record.PortAnswers
		}
		return
	}
	w.successes, w.failures = 0, w.failures+1
	if w.failures >= failAfter {
		w.published.State = l.state
	}
}

// recordConnection records whether the probe that began at that time connected.
func (w *portProbe) recordConnection(began time.Duration, l result) {
	if l.unsure {
		return
	}
	w.lookedAt = began
	if l.state.Accepts() {
		w.missed = 0
		return
	}
	if w.missed++; w.missed == 1 {
		w.missedAt = began
	}
}

// large reports whether the next request should be larger than a packet: every largeEvery, and until a large request is
// answered again.
func (w *portProbe) large(now time.Duration) bool {
	return !w.largeSent || w.largeFailed || w.published.State == record.PortLargeLost || now-w.largeAt >= largeEvery
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
