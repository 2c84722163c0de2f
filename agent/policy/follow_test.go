// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestALearnerIsPromotedOnlyIfItHasJustFollowedTheLeader(t *testing.T) {
	t.Parallel()
	still := func(still, written time.Duration) func(*View) {
		return func(v *View) {
			v.Cluster.Members[2].StillFor, v.Cluster.Members[2].StalledFor, v.Op.WrittenFor = still, still, written
		}
	}
	play(t, joinView, []scene{
		{"it has applied something in this round", still(0, time.Hour), StepPromote, ""},
		{"nothing was written that it could follow", still(time.Minute, time.Minute), StepSetPhase, ""},
		{"it has not followed yet", still(time.Minute, 0), StepNone, LearnerNotSteady},
		{"it still has not followed", still(time.Minute, 59*time.Second), StepNone, LearnerNotSteady},
		{"it is rolled back if it never does", still(6*time.Minute, 5*time.Minute), StepRollBack, ""},
		{"it is not rolled back over a write of this moment", still(6*time.Minute, 0), StepNone, LearnerNotSteady},
		{"it is not rolled back for lack of writes", still(6*time.Minute, 6*time.Minute), StepSetPhase, ""},
		{"nothing is written while a veto holds", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
		{"nor does a standby count as caught up before", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Op.Target = RoleStandby
		}, StepSetPhase, ""},
		{"nor once the write is in flight", func(v *View) {
			still(time.Minute, time.Second)(v)
			v.Op.Target = RoleStandby
		}, StepNone, LearnerNotSteady},
	})
}

func TestALearnerIsPromotedOnlyIfItsHostCanStartItWithoutAQuorum(t *testing.T) {
	t.Parallel()
	noted := func(id uint64) func(*View) { return func(v *View) { v.Self.MemberID = id } }
	play(t, joinView, []scene{
		{"its host has recorded its member", noted(3), StepPromote, ""},
		{"it has recorded none", noted(0), StepNone, LearnerNotSteady},
		{"it has recorded another one", noted(2), StepNone, LearnerNotSteady},
	})
}
