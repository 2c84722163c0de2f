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
		{"it has not followed for too long", still(6*time.Minute, 5*time.Minute), StepRollBack, ""},
		{"it has not followed a write of this moment", still(6*time.Minute, 0), StepNone, LearnerNotSteady},
		{"nothing was written for too long", still(6*time.Minute, 6*time.Minute), StepSetPhase, ""},
		{"a veto applies, so nothing is written", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
		{"a standby must follow a write as well", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Op.Target = RoleStandby
		}, StepSetPhase, ""},
		{"a standby has not followed the write yet", func(v *View) {
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
		{"its host has recorded none", noted(0), StepNone, LearnerNotSteady},
		{"its host has recorded a different one", noted(2), StepNone, LearnerNotSteady},
	})
}
