// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// lostOn is the time since which a member is lost. The policy evaluates only whether it is set.
var lostOn = time.Unix(1, 0)

// markReached changes a report on a lost member: the member is reached again.
func markReached(r *record.Reachability) { r.LostSince, r.Peer = time.Time{}, record.PortAnswers }

func v36(patch int64) Version { return Version{3, 6, patch} }

func voter(n uint64, name string) Member {
	return Member{
		ID: n, Name: name, PeerURL: peerPrefix + name, Live: true, Leader: n == 1, Version: v36(16),
		LagKnown: true, LiveFor: time.Hour, SteadyFor: time.Hour,
	}
}

func ready(name string, role Role) Host {
	return Host{
		ID: name, Name: name, PeerURL: peerPrefix + name, Role: role, Health: health.OK, Qualified: true,
		Manage: true, Stores: true,
	}
}

func spareView() View {
	return View{
		Self:   Self{ID: "n3", Name: "n3", PeerURL: peerPrefix + "n3", Mode: Manage, Drives: true, Etcd: v36(16)},
		Target: Target{Voters: 3, Standbys: 1},
		Limits: Limits{
			Settle: 6 * time.Second, Cooldown: time.Minute, PromoteStable: time.Minute, SteadyLag: 30 * time.Second,
			PromoteLag:   100,
			LearnerStall: 5 * time.Minute, LearnerMax: 2 * time.Hour, OrphanGrace: 65 * time.Second,
			LockTTL:          30 * time.Second,
			TransferInterval: time.Minute,
			StartRetry:       6 * time.Second, ClockOffset: 5 * time.Second,
		},
		Unit:   Unit{State: UnitInactive, SinceStart: Never},
		Data:   Data{State: DataEmpty, Free: 100 << 30, FreeKnown: true},
		Health: Health{State: health.OK, Qualified: true, Text: "fsync p99 1 ms"},
		Clock:  Clock{Known: true}, IdleFor: time.Hour,
		Cluster: Cluster{
			Reachable: true, Intact: true, Roomy: true, ID: clusterID, StableFor: time.Hour, DBSize: 1 << 30,
			Members: []Member{voter(1, "n1"), voter(2, "n2")},
		},
		Hosts: []Host{ready("n1", RoleVoter), ready("n2", RoleVoter), ready("n3", RoleSpare)},
		Lock:  Lock{Known: true},
	}
}

func joinView() View {
	v := spareView()
	m := voter(3, "n3")
	m.Learner, m.ThinksLearner = true, true
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Hosts[2].Role = RoleJoining
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n3"}
	v.Op = &Op{
		Kind: KindJoin, Host: "n3", HostName: "n3", Target: RoleVoter, Phase: PhaseStarted, Token: 7,
		MemberID: 3, PeerURL: peerPrefix + "n3", SameBoot: true, Elapsed: 2 * time.Minute,
	}
	v.Unit = Unit{State: UnitActive, EnvReady: true, SinceStart: time.Minute}
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3, Free: 100 << 30, FreeKnown: true}
	v.Self.MemberID = 3
	return v
}

type scene struct {
	name   string
	change func(v *View)
	step   StepKind
	reason ReasonCode // the first reason; ignored if a step is expected
}

func play(t *testing.T, base func() View, scenes []scene) {
	t.Helper()
	checkGolden(t, base, scenes)
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := base()
			if s.change != nil {
				s.change(&v)
			}
			d := Decide(v)
			if d.Step.Kind != s.step {
				t.Fatalf("step is %q, want %q; reasons %v", d.Step.Kind, s.step, d.Reasons)
			}
			if s.step == StepNone && (len(d.Reasons) == 0 || d.Reasons[0].Code != s.reason) {
				t.Fatalf("reasons are %v, want %s first", d.Reasons, s.reason)
			}
		})
	}
}

func voterView() View {
	v := joinView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
	v.Lock = Lock{Known: true, Held: true, Holder: "n3", Token: 7}
	v.Data.MemberID = 1
	return v
}
