// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// The last host has the role learner. All faults may occur except quorum loss, the loss of hosts, permanently slow
// disks and resizes.
func TestNoFaultBreaksAPromiseNextToAPermanentLearner(t *testing.T) {
	t.Parallel()
	for _, r := range runSeeds(t, time.Hour, func(p *plan) {
		p.Voters, p.Hosts, p.Standbys, p.Learner = 3, 6, 1, true
		p.LostAt, p.Dead, p.Unhealthy, p.Resizes = 0, 0, 0, false
	}) {
		t.Logf("%d changes: %s", r.Changes, r.Plan)
	}
}
