// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

// voterDies takes down the voter of n3, with its host.
func voterDies(v *View) {
	v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 2*time.Minute
	v.Hosts = v.Hosts[:2]
}

// restored registers the previous URL again.
func restored(v *View) {
	previous := v.Op.PeerURL
	v.Op.Phase, v.Self.PeerURL, v.Self.NewPeerURL = PhaseBegun, previous, newURL
	v.Cluster.Members[0].PeerURL, v.Hosts[0].PeerURL = previous, previous
}

func TestAReaddressThatADeadVoterBlocksRegistersThePreviousURLAgain(t *testing.T) {
	t.Parallel()
	blocked := func() View {
		v := readdressView()
		updated(&v)
		voterDies(&v)
		v.Limits.LockTTL, v.Op.WrittenFor = 30*time.Second, 2*time.Minute
		return v
	}
	play(t, blocked, []scene{
		{"the operation returns to its first phase", nil, StepSetPhase, ""},
		{"the voter has died just now", func(v *View) { v.Op.WrittenFor = time.Second }, StepNone, QuorumAtRisk},
		{"the previous URL is registered", func(v *View) { v.Op.Phase = PhaseBegun }, StepUpdateMember, ""},
		{"also if the voter is back", func(v *View) {
			v.Op.Phase = PhaseBegun
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = true, 0
		}, StepUpdateMember, ""},
		{"the operation ends, and the request waits", restored, StepEndOp, ""},
		{"the first update may still be applied", func(v *View) {
			restored(v)
			v.UpdatePending = true
		}, StepNone, Returning},
		{"the environment may have the new URL", func(v *View) {
			v.Op.Phase, v.Unit.EnvBegun = PhaseBegun, true
		}, StepNone, QuorumAtRisk},
		{"etcd was restarted, so it may listen at the new URL", func(v *View) {
			v.Op.Phase, v.Op.Restarted = PhaseBegun, true
		}, StepNone, QuorumAtRisk},
		{"the previous URL belongs to another member", func(v *View) {
			v.Op.Phase, v.Cluster.Members[1].PeerURL = PhaseBegun, peerPrefix+"n1"
		}, StepNone, QuorumAtRisk},
	})
}

func TestAReaddressThatHasRestartedEtcdIsVerifiedWhileAnotherVoterIsDown(t *testing.T) {
	t.Parallel()
	restarted := func() View {
		v := readdressView()
		updated(&v)
		voterDies(&v)
		v.Op.Restarted, v.Unit.EnvReady = true, true
		return v
	}
	play(t, restarted, []scene{
		{"etcd runs with the new environment", nil, StepSetPhase, ""},
		{"this agent has not written it", func(v *View) { v.Unit.EnvReady = false }, StepNone, QuorumAtRisk},
	})
}

func TestAReaddressContinuesAfterTheUpdateAlthoughEtcdCountsAnotherVoterAsInactive(t *testing.T) {
	t.Parallel()
	play(t, readdressView, []scene{
		{"before the update", func(v *View) { v.Hosts[0].Answered = false }, StepNone, HealthAwaited},
		{"after the update", func(v *View) {
			updated(v)
			v.Hosts[0].Answered = false
		}, StepTakeDown, ""},
		{"the previous URL is configured again", func(v *View) {
			updated(v)
			v.Hosts[0].Answered, v.Self.NewPeerURL = false, peerPrefix+"n1"
		}, StepUpdateMember, ""},
		{"after the update, before the other hosts' reports", func(v *View) {
			updated(v)
			v.Hosts[0].Answered, v.Hosts[1].Answered = false, false
		}, StepNone, HealthAwaited},
	})
}

func TestAReaddressWritesTheEnvironmentBeforeItStopsEtcd(t *testing.T) {
	t.Parallel()
	v := readdressView()
	updated(&v)
	if s := Decide(v).Step; s.Kind != StepTakeDown || !s.WriteEnv {
		t.Errorf("the step is %+v", s)
	}
	v.Asked.Work, v.Op.Work = WorkMaintenance, WorkMaintenance
	if s := Decide(v).Step; s.Kind != StepTakeDown || s.WriteEnv {
		t.Errorf("for maintenance, the step is %+v", s)
	}
}

func TestAReaddressThatAnOperatorEndsWaitsForALateUpdate(t *testing.T) {
	t.Parallel()
	ended := func() View {
		v := readdressView()
		v.Limits.LockTTL, v.UpdatePending = 30*time.Second, true
		v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, time.Second
		return v
	}
	play(t, ended, []scene{
		{"an update was not answered", nil, StepNone, Returning},
		{"none is pending", func(v *View) { v.UpdatePending = false }, StepEndOp, ""},
		{"an update has landed, and its URL is verified", func(v *View) { verifying(v) }, StepNone, Returning},
	})
}

func TestAnOperationRecordedForOtherWorkThanTheRequestEnds(t *testing.T) {
	t.Parallel()
	play(t, readdressView, []scene{
		{"a readdress was requested after maintenance", func(v *View) {
			v.Op.Work, v.Op.Phase = WorkMaintenance, PhaseBegun
		}, StepEndOp, ""},
		{"maintenance was requested after a readdress", func(v *View) {
			v.Asked.Work, v.Op.Phase = WorkMaintenance, PhaseBegun
			v.Self.NewPeerURL = ""
		}, StepEndOp, ""},
		{"a restart was requested after maintenance", func(v *View) {
			v.Asked.Work, v.Op.Work, v.Op.Phase = WorkRestart, WorkMaintenance, PhaseBegun
			v.Self.NewPeerURL = ""
		}, StepSetPhase, ""},
	})
}
