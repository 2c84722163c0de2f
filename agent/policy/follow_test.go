// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestALearnerIsPromotedOnlyWhenItHasJustFollowedTheLeader(t *testing.T) {
	t.Parallel()
	still := func(still, written time.Duration) func(*View) {
		return func(v *View) {
			v.Cluster.Members[2].StillFor, v.Cluster.Members[2].StalledFor, v.Op.WrittenFor = still, still, written
		}
	}
	play(t, joinView, []scene{
		{"it has applied something in this round", still(0, time.Hour), StepPromote, ""},
		{"nothing was written for it to follow", still(time.Minute, time.Minute), StepSetPhase, ""},
		{"it has not followed yet", still(time.Minute, 0), StepNone, LearnerNotSteady},
		{"it still has not", still(time.Minute, 59*time.Second), StepNone, LearnerNotSteady},
		{"it is given up when it never does", still(6*time.Minute, 5*time.Minute), StepRollBack, ""},
		{"it is not given up over a write of this moment", still(6*time.Minute, 0), StepNone, LearnerNotSteady},
		{"it is not given up for want of writes", still(6*time.Minute, 6*time.Minute), StepSetPhase, ""},
		{"nothing is written while something else is in the way", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
		{"nor does a standby count as caught up before", func(v *View) {
			still(time.Minute, time.Minute)(v)
			v.Op.Target = RoleStandby
		}, StepSetPhase, ""},
		{"nor once the write is on its way", func(v *View) {
			still(time.Minute, time.Second)(v)
			v.Op.Target = RoleStandby
		}, StepNone, LearnerNotSteady},
	})
}

func TestALearnerIsPromotedOnlyWhenItsHostCanStartItWithoutAQuorum(t *testing.T) {
	t.Parallel()
	noted := func(id uint64) func(*View) { return func(v *View) { v.Self.MemberID = id } }
	play(t, joinView, []scene{
		{"its host has noted which member it is", noted(3), StepPromote, ""},
		{"it has not", noted(0), StepNone, LearnerNotSteady},
		{"it has noted another one", noted(2), StepNone, LearnerNotSteady},
	})
}
