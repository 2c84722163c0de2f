// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

// forgedView returns the view of standby n3 while etcd holds a forged record of its join, in the rollback phase.
func forgedView() View {
	v := joinView()
	v.Cluster.Members[2].Standby = true
	v.Hosts[2].Role = RoleStandby
	v.Op.Phase, v.Op.SameBoot = PhaseRollback, false
	return v
}

func TestAStandbyIsNotRolledBackForAJoinThatItsHostHasNotBegun(t *testing.T) {
	t.Parallel()
	play(t, forgedView, []scene{
		{"the record is deleted, and the learner stays", nil, StepEndOp, ""},
		{"the record is in a different phase", func(v *View) { v.Op.Phase = PhaseBegun }, StepEndOp, ""},
		{"the record names no member", func(v *View) { v.Op.MemberID, v.Op.PeerURL = 0, "" }, StepEndOp, ""},
		{"this agent does not hold the lock", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"a joining learner is rolled back", func(v *View) {
			v.Cluster.Members[2].Standby = false
		}, StepRemoveLearner, ""},
	})
	if d := Decide(forgedView()); d.Step.Outcome != OperationRejected || d.Role != RoleStandby {
		t.Errorf("it ends as %s, and the host's role is %s", d.Step.Outcome, d.Role)
	}
}

func TestNoOtherHostRollsBackAStandby(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := forgedView()
		v.Self = Self{
			ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", Mode: Manage, Drives: true, Etcd: v36(16),
			MemberID: 1,
		}
		v.Data.MemberID, v.Op.OrphanedFor = 1, time.Hour
		return v
	}, []scene{
		{"the record is deleted, and the learner stays", nil, StepEndOp, ""},
		{"the record names a different host", func(v *View) { v.Op.Host = "n9" }, StepEndOp, ""},
		{"a joining learner is rolled back", func(v *View) {
			v.Cluster.Members[2].Standby = false
		}, StepRemoveLearner, ""},
		{"a record written while another host holds the lock is not adopted", func(v *View) {
			v.Op.Token, v.Op.OrphanedFor = 3, 0
		}, StepReleaseLock, ""},
	})
}

func TestAVotersEtcdIsNotStoppedForAForgedJoin(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := joinView()
		v.Cluster.Members[2].Learner, v.Hosts[2].Role = false, RoleVoter
		v.Op.Phase, v.Op.MemberID, v.Op.PeerURL = PhaseRollback, 0xdead, ""
		return v
	}, []scene{{"the record is deleted", nil, StepEndOp, ""}})
}
