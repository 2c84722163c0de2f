// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

// TestALearnerNeedsNoSecondQualifyingRun is about a host that has lost its qualification while it holds a learner, by a
// reboot or by a disk that was slow for a while. It can never pass another run as long as it is a member, and while it
// is one that does not become a voter, no other host can join: the cluster would stay below its target for ever.
func TestALearnerNeedsNoSecondQualifyingRun(t *testing.T) {
	t.Parallel()
	play(t, standbyView, []scene{
		{"a standby that has rebooted", func(*View) {}, StepTakeLock, ""},
		{"not while its disk is slow", func(v *View) { v.Health.State = health.Slow }, StepNone, HealthBad},
		{"not before it is quick again", func(v *View) { v.Health.State = health.Warm }, StepNone, HealthBad},
		{"not while nothing is known of its disk", func(v *View) {
			v.Health.State = health.Unknown
		}, StepNone, HealthUnknown},
		{"a spare", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
			v.Hosts[2].Role = RoleSpare
		}, StepNone, NotQualified},
	})
	play(t, joinView, []scene{
		{"in its join", func(v *View) { v.Health.Qualified = false }, StepPromote, ""},
		{"in its join, but not with a slow disk", func(v *View) {
			v.Health = Health{State: health.Warm}
		}, StepNone, HealthBad},
		{"before it was added", func(v *View) {
			v.Health = Health{State: health.Qualifying}
			v.Cluster.Members, v.Op.MemberID, v.Unit.State, v.Data.State = v.Cluster.Members[:2], 0, UnitInactive,
				DataEmpty
		}, StepNone, NotQualified},
	})
}

// standbyView is a standby beside two voters of three, whose host has not passed a qualifying run since it booted.
func standbyView() View {
	v := joinView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Hosts[2].Role = RoleStandby
	v.Health.Qualified = false
	return v
}
