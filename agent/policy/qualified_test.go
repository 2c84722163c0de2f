// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

// The qualification of a host can end while its member is a learner: because it rebooted, or because its disk was slow
// for a while. A host with a member cannot pass a qualifying run, and no other host can join until the learner is
// promoted. So if the promotion required a second run, the cluster would stay below its target forever.
func TestALearnerNeedsNoSecondQualifyingRun(t *testing.T) {
	t.Parallel()
	play(t, standbyView, []scene{
		{"a standby that has rebooted", func(*View) {}, StepTakeLock, ""},
		{"a standby whose disk is slow", func(v *View) { v.Health.State = health.Slow }, StepNone, HealthBad},
		{"a standby whose disk is WARM", func(v *View) { v.Health.State = health.Warm }, StepNone, HealthBad},
		{"a standby whose health is unknown", func(v *View) {
			v.Health.State = health.Unknown
		}, StepNone, HealthUnknown},
		{"a spare", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
			v.Hosts[2].Role = RoleSpare
		}, StepNone, NotQualified},
	})
	play(t, joinView, []scene{
		{"a learner in its join", func(v *View) { v.Health.Qualified = false }, StepPromote, ""},
		{"a learner in its join with a slow disk", func(v *View) {
			v.Health = Health{State: health.Warm}
		}, StepNone, HealthBad},
		{"a joining host that was not added yet", func(v *View) {
			v.Health = Health{State: health.Qualifying}
			v.Cluster.Members, v.Op.MemberID, v.Unit.State, v.Data.State = v.Cluster.Members[:2], 0, UnitInactive,
				DataEmpty
		}, StepNone, NotQualified},
	})
}

// standbyView returns the view of a standby in a cluster that has two of three voters. The standby's host has not
// passed a qualifying run since it booted.
func standbyView() View {
	v := joinView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Hosts[2].Role = RoleStandby
	v.Health.Qualified = false
	return v
}
