// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// In every cluster, operators request interruptible maintenance, in addition to all other faults except quorum loss.
func TestNoFaultBreaksAPromiseDuringInterruptibleMaintenance(t *testing.T) {
	t.Parallel()
	recalled := 0
	for _, r := range runSeeds(t, 3*time.Hour, func(p *plan) { p.Recalls = true }) {
		t.Logf("called off %d times: %s", r.Recalled, r.Plan)
		recalled += r.Recalled
	}
	if recalled == 0 && !t.Failed() {
		t.Error("no maintenance was called off")
	}
}
