// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package diskrecord

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestThePublishedP99ChangesRarelyAndNotForNoise(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var p fsyncP99
	state := health.OK
	at := func(now, p99 time.Duration, want time.Duration) {
		t.Helper()
		if got := p.steady(now, p99, state); got != want.Seconds() {
			t.Errorf("after %s a p99 of %s is published as %.4f s, want %s", now, p99, got, want)
		}
	}
	at(0, 0, 0)                                  // the p99 is not measured yet
	at(time.Second, 3900*time.Microsecond, 4*ms) // published immediately
	at(time.Minute, 9*ms, 4*ms)                  // changed too recently
	at(p99Every, 4900*time.Microsecond, 4*ms)    // less than half above the upper limit of the level
	at(p99Every, 1600*time.Microsecond, 4*ms)    // less than 35 % below the lower limit of the level
	at(p99Every, 0, 4*ms)                        // not measured: the last p99 stays
	at(p99Every, 5900*time.Microsecond, 4*ms)
	at(2*p99Every, 6100*time.Microsecond, 8*ms)
	at(3*p99Every-time.Minute, ms, 8*ms)
	at(3*p99Every, ms, ms)
	state = health.Slow
	at(3*p99Every+time.Minute, 600*ms, 1024*ms) // published because the health state has changed
	at(3*p99Every+2*time.Minute, 300*ms, 1024*ms)
}
