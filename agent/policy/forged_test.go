// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

// forgedView is n3, a standby, in whose name somebody has written a join that is to be taken back.
func forgedView() View {
	v := joinView()
	v.Cluster.Members[2].Standby = true
	v.Hosts[2].Role = RoleStandby
	v.Op.Phase, v.Op.SameBoot = PhaseRollback, false
	return v
}

func TestAStandbyIsNotTakenBackForAJoinThatItsHostHasNotBegun(t *testing.T) {
	t.Parallel()
	play(t, forgedView, []scene{
		{"the record goes, the learner stays", nil, StepEndOp, ""},
		{"also in any other phase", func(v *View) { v.Op.Phase = PhaseBegun }, StepEndOp, ""},
		{"also where the record names no member", func(v *View) { v.Op.MemberID, v.Op.PeerURL = 0, "" }, StepEndOp, ""},
		{"under the lock", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"a learner that joins is taken back", func(v *View) {
			v.Cluster.Members[2].Standby = false
		}, StepRemoveLearner, ""},
	})
	if d := Decide(forgedView()); d.Step.Outcome != Disowned || d.Role != RoleStandby {
		t.Errorf("it ends as %s, and the host calls itself a %s", d.Step.Outcome, d.Role)
	}
}

func TestNoOtherHostTakesAStandbyBack(t *testing.T) {
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
		{"the record goes, the learner stays", nil, StepEndOp, ""},
		{"whichever host the record names", func(v *View) { v.Op.Host = "n9" }, StepEndOp, ""},
		{"a learner that joins is taken back", func(v *View) {
			v.Cluster.Members[2].Standby = false
		}, StepRemoveLearner, ""},
		{"nothing is taken over that is written while another host holds the lock", func(v *View) {
			v.Op.Token, v.Op.OrphanedFor = 3, 0
		}, StepReleaseLock, ""},
	})
}

func TestTheEtcdOfAVoterIsNotStoppedForAJoinThatNamesItsHost(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := joinView()
		v.Cluster.Members[2].Learner, v.Hosts[2].Role = false, RoleVoter
		v.Op.Phase, v.Op.MemberID, v.Op.PeerURL = PhaseRollback, 0xdead, ""
		return v
	}, []scene{{"the record goes", nil, StepEndOp, ""}})
}
