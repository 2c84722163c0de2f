// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// Operators change peer URLs in every cluster, among all other faults except quorum loss.
func TestNoFaultBreaksAPromiseWhilePeerURLsChange(t *testing.T) {
	t.Parallel()
	changed := 0
	for _, r := range runSeeds(t, 2*time.Hour, func(p *plan) { p.Readdresses = true }) {
		t.Logf("%d peer URLs changed in the member list: %s", r.Readdressed, r.Plan)
		changed += r.Readdressed
	}
	if changed == 0 && !t.Failed() {
		t.Error("no peer URL has changed")
	}
}
