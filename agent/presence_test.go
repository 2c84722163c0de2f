// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"
)

func TestThePublishedP99ChangesSeldomAndNotForNoise(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var p presence
	at := func(now, p99 time.Duration, want time.Duration) {
		t.Helper()
		if got := p.steadyP99(now, p99); got != want.Seconds() {
			t.Errorf("after %s a p99 of %s is published as %.4f s, want %s", now, p99, got, want)
		}
	}
	at(0, 0, 0)                                  // not measured yet
	at(time.Second, 3900*time.Microsecond, 4*ms) // known at once
	at(time.Minute, 9*ms, 4*ms)                  // not so soon again
	at(time.Hour, 4900*time.Microsecond, 4*ms)   // within a quarter beyond its bound
	at(time.Hour, 1600*time.Microsecond, 4*ms)   // and below
	at(time.Hour, 0, 4*ms)                       // that it was not measured is told by the verdict
	at(time.Hour, 5100*time.Microsecond, 8*ms)
	at(time.Hour+9*time.Minute, ms, 8*ms)
	at(time.Hour+10*time.Minute, ms, ms)
}
