// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// Every cluster is resized, among all other faults except quorum loss.
func TestNoFaultBreaksAPromiseWhileTheClusterIsResized(t *testing.T) {
	t.Parallel()
	for _, r := range runSeeds(t, 2*time.Hour, func(p *plan) { p.Resizes = true }) {
		t.Logf("resized %d times, %d retirements, %d of hosts lost in maintenance, %d changes: %s", r.Resized,
			r.Retired, r.Lost, r.Changes, r.Plan)
	}
}
