// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"
	"time"
)

// pollInterval is short compared with everything that tests wait for.
const pollInterval = 10 * time.Millisecond

// Eventually checks cond every 10 ms until it holds. If that takes longer than bound, it ends the test with a message
// that contains what. Call it from the goroutine of the test.
func Eventually(t testing.TB, bound time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("did not happen in %v: %s", bound, what)
		}
	}
}
