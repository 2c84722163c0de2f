// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// This file tests combinations of two conditions that hardly any other test covers.

func TestCornerCasesOfAJoin(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"no place is free, and another host would go first", func(v *View) {
			v.Target.Standbys = 0
			v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
			v.Hosts = append(v.Hosts, ready("n0", RoleSpare))
		}, StepNone, TargetMet},
		{"it is not ready, and another host would go first", func(v *View) {
			v.Backoff = time.Minute
			v.Hosts = append(v.Hosts, ready("n0", RoleSpare))
		}, StepNone, BackingOff},
	})
	v := restingVoter()
	v.Target.Voters = 5
	if PlaceFree(v) {
		t.Error("a place is free although the host already votes")
	}
}

func TestCornerCasesOfAHostInItsOperation(t *testing.T) {
	t.Parallel()
	play(t, askedView, []scene{
		{"etcd is down already, and maintenance is requested", func(v *View) {
			v.Unit.State = UnitInactive
		}, StepTakeLock, ""},
	})
	play(t, downView, []scene{
		{"a restart that was interrupted at once", func(v *View) {
			v.Asked.Work, v.Op.Phase = WorkRestart, PhaseBegun
		}, StepStartUnit, ""},
		{"etcd was to keep running, and has failed meanwhile", func(v *View) {
			v.Asked.Over, v.Asked.KeepRunning, v.Asked.Stopped, v.Unit.State = true, true, false, UnitFailed
		}, StepEndOp, ""},
		{"its operation was released, and an operator has started its etcd", func(v *View) {
			v.Asked.Released, v.Op, v.Lock, v.Unit.State = true, nil, Lock{Known: true}, UnitActive
			v.Cluster.Members[2].Live = true
		}, StepNone, Idle},
	})
	leading := func() View {
		v := turnView()
		v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
		return v
	}
	play(t, leading, []scene{
		{"it leads, and both others stop next", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[1].Wants = WorkReboot, WorkReboot
		}, StepTransferLeadership, ""},
		{"it leads, and has the fastest disk itself", func(v *View) { v.Hosts[2].P99 = 1 }, StepTransferLeadership, ""},
	})
	v := leading()
	v.Hosts[0].Health, v.Hosts[0].P99 = health.Failed, 1
	v.Hosts[1].Health = health.Warm
	if best, found := bestVoter(v, v.Self.PeerURL); !found || best.ID != 2 {
		t.Errorf("the best voter is %d next to a failed one", best.ID)
	}
	v.Hosts[1].Health = health.Failed
	if best, found := bestVoter(v, v.Self.PeerURL); found {
		t.Errorf("the best voter is %d if both have failed", best.ID)
	}
}

func TestCornerCasesOfALostMember(t *testing.T) {
	t.Parallel()
	play(t, restingVoter, []scene{
		{"its data belongs to an unlisted member", func(v *View) {
			v.Unit.State, v.Data.MemberID, v.Cluster.Members[0].Live = UnitInactive, 0x77, false
		}, StepNone, MemberLost},
	})
	v := restingVoter()
	if got := Remedy(v, VoterNotLive); !strings.Contains(got, "member remove NAME") {
		t.Errorf("no voter is down, and it reports: %s", got)
	}
	learner := func(n uint64, name string) Member {
		m := voter(n, name)
		m.Learner, m.Live = true, false
		return m
	}
	v.Cluster.Members = []Member{learner(7, "n7"), voter(1, "n1"), voter(2, "n2"), learner(8, "n8")}
	v.Cluster.Members[2].Live = false
	v.Self.PeerURL = peerPrefix + "n7"
	for code, want := range map[ReasonCode]string{
		VoterNotLive: "n2", LearnerPresent: "n8", MemberLost: "n7", QuorumAtRisk: "", Idle: "",
	} {
		if got := concernedMember(v, code); got != want {
			t.Errorf("%s is about %q, want %q", code, got, want)
		}
	}
}

func TestCornerCasesOfARemoval(t *testing.T) {
	t.Parallel()
	voting := func() View { // the host with the removal request is itself a voter
		v := removalView()
		v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
		v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3}
		v.Unit.State = UnitActive
		return v
	}
	play(t, voting, []scene{
		{"this host holds the lock, and a veto applies", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true}
			v.Cluster.Members[1].Live, v.Cluster.StableFor = false, 0
		}, StepReleaseLock, ""},
		{"another host's operation is in flight, and this host has the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true}
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown}
		}, StepNone, OperationInFlight},
	})
	elsewhere := func() View { // n1 observes the removal of n3
		v := removalView()
		inRemoval(&v, PhaseRemoving)
		v.Removal = nil
		v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
		v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		v.Unit = Unit{State: UnitActive, Since: time.Hour}
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 8}
		v.Op.OrphanedFor = time.Hour
		return v
	}
	play(t, elsewhere, []scene{
		{"the removal may have been sent to etcd, and the lock is held for something else", nil, StepReleaseLock, ""},
		{"no removal was sent to etcd", func(v *View) { v.Op.Phase = PhaseBegun }, StepEndOp, ""},
		{"the member is removed", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, StepEndOp, ""},
	})
}

func TestCornerCasesOfALeftoverLearner(t *testing.T) {
	t.Parallel()
	left := func() View {
		v := restingVoter()
		v.Cluster.Members[2] = Member{ID: 3, PeerURL: peerPrefix + "n3", Learner: true, DownFor: time.Hour}
		return v
	}
	play(t, left, []scene{
		{"a host is in its operation", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown}
		}, StepNone, OperationInFlight},
		{"no quorum answers, and the data is gone", func(v *View) {
			v.Cluster.Reachable, v.Cluster.Listed, v.Data = false, true, Data{State: DataEmpty}
		}, StepNone, NoQuorum},
	})
}
