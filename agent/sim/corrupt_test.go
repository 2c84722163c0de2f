// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// A voter's data becomes corrupt again and again, among all other faults except quorum loss.
func TestNoFaultBreaksAPromiseWhileDataBecomesCorrupt(t *testing.T) {
	t.Parallel()
	corrupted, replaced := 0, 0
	for _, r := range runSeeds(t, 2*time.Hour, func(p *plan) {
		p.Hosts, p.Voters, p.Corrupts, p.Unhealthy, p.Dead, p.PerDay = 5, 3, true, 5*time.Minute, 5*time.Minute, 9
	}) {
		t.Logf("the data of %d voters became corrupt, %d voters were replaced: %s", r.Corrupted, r.Replaced, r.Plan)
		corrupted += r.Corrupted
		replaced += r.Replaced
	}
	if corrupted == 0 && !t.Failed() {
		t.Error("no data became corrupt")
	}
}
