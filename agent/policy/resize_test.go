// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// resized returns the view of n5, the last of five voters to have joined, after an operator has resized the cluster to
// three. Its disk is the slowest.
func resized() View {
	v := voterView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Cluster.Members, v.Hosts = nil, nil
	for n, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		v.Cluster.Members = append(v.Cluster.Members, voter(uint64(n)+1, name))
		h := ready(name, RoleVoter)
		h.P99 = time.Duration(n+1) * time.Millisecond
		v.Hosts = append(v.Hosts, h)
	}
	v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.MemberID, v.Data.MemberID = "n5", "n5", peerPrefix+"n5", 5, 5
	v.Target = Target{Voters: 3, Resized: true, ResizedFor: time.Minute, Configured: 5}
	return v
}

// leavingNow returns the view of n5 in its leave, whose record is in that phase.
func leavingNow(phase OpPhase) func() View {
	return func() View {
		v := resized()
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n5"}
		v.Op = &Op{
			Kind: KindLeave, Host: "n5", HostName: "n5", Phase: phase, Token: 7, MemberID: 5, SameBoot: true,
			WrittenFor: time.Minute, Elapsed: 2 * time.Minute,
		}
		for i := range v.Hosts {
			v.Hosts[i].Answered = true
		}
		return v
	}
}

func TestTheVoterWithTheSlowestDiskLeavesAResizedCluster(t *testing.T) {
	t.Parallel()
	holds := func(v *View) { v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7} }
	play(t, resized, []scene{
		{"it takes the lock first", nil, StepTakeLock, ""},
		{"and then records that it leaves", holds, StepBeginLeave, ""},
		{"a configured number makes no voter leave", func(v *View) { v.Target.Resized = false }, StepNone, TooManyVoters},
		{"nor does a size that is met", func(v *View) { v.Target.Voters = 5 }, StepNone, Idle},
		{"it waits while the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root"} }, StepNone, Paused},
		{"it waits while another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, VoterNotLive},
		{
			"it waits while another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone,
			TooManyVoters,
		},
		{"it waits while another operation is in flight", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown}
		}, StepNone, OperationInFlight},
		{"it waits while the alarm CORRUPT is raised", func(v *View) { v.Cluster.Intact = false }, StepNone, EtcdCorrupt},
		{"it waits until the membership has settled", func(v *View) { v.Cluster.StableFor = time.Second }, StepNone, Idle},
		{"it waits while a learner catches up", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: 6, PeerURL: "http://n6", Learner: true})
		}, StepNone, TooManyVoters},
		{"it only reports in observe mode", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"an etcd that something else manages stays", func(v *View) { v.Self.Drives = false }, StepNone, TooManyVoters},
		{
			"an unhealthy voter leaves before it", func(v *View) { v.Hosts[0].Health = health.Slow }, StepNone,
			TooManyVoters,
		},
		{"a voter that shares its failure domain leaves before it", func(v *View) {
			v.Hosts[0].Domain, v.Hosts[1].Domain, v.Hosts[4].Domain = "a", "a", "b"
		}, StepNone, TooManyVoters},
		{"the leader leaves after it", func(v *View) { v.Hosts[0].P99 = time.Second }, StepTakeLock, ""},
		{"if the first one does not act, the next does", func(v *View) {
			v.Hosts[3].P99, v.Target.ResizedFor = time.Second, time.Hour
		}, StepTakeLock, ""},
		{"not at once", func(v *View) { v.Hosts[3].P99 = time.Second }, StepNone, TooManyVoters},
	})
}

func TestTheLastVoterButOneLeavesOnlyAfterASnapshot(t *testing.T) {
	t.Parallel()
	two := func() View {
		v := resized()
		v.Target.Voters = 1
		v.Cluster.Members = []Member{v.Cluster.Members[0], v.Cluster.Members[4]}
		v.Hosts = []Host{v.Hosts[0], v.Hosts[4]}
		return v
	}
	play(t, two, []scene{
		{"without one it stays", nil, StepNone, TooManyVoters},
		{"an old one does not count", func(v *View) {
			v.Backup = Backup{HasSnapshot: true, Age: 2 * time.Hour}
		}, StepNone, TooManyVoters},
		{"with a recent one it leaves", func(v *View) {
			v.Backup = Backup{HasSnapshot: true, Age: time.Minute}
		}, StepTakeLock, ""},
		{"or if an operator waives it", func(v *View) { v.Target.WithoutSnapshot = true }, StepTakeLock, ""},
	})
}

func TestAVoterLeavesInPhases(t *testing.T) {
	t.Parallel()
	gone := func(v *View) { v.Cluster.Members = v.Cluster.Members[:4] }
	play(t, leavingNow(PhaseBegun), []scene{
		{"it records that the removal begins", nil, StepSetPhase, ""},
		{"after all others have reported again", func(v *View) { v.Hosts[2].Answered = false }, StepNone, HealthAwaited},
		{"a leader transfers leadership first", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
		}, StepTransferLeadership, ""},
		{"and stays if that keeps failing", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "timed out"}
		}, StepEndOp, ""},
		{"it stays if another voter went down", func(v *View) { v.Cluster.Members[1].Live = false }, StepEndOp, ""},
		{"it stays if the cluster was resized back", func(v *View) { v.Target.Voters = 5 }, StepEndOp, ""},
		{"it stays if the record names another member", func(v *View) { v.Op.MemberID = 1 }, StepEndOp, ""},
	})
	play(t, leavingNow(PhaseRemoving), []scene{
		{"it removes its own member", nil, StepRemoveMember, ""},
		{"once proxies have moved their clients", func(v *View) { v.Op.WrittenFor = time.Second }, StepNone, Settling},
		{"a new leader transfers leadership again", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
		}, StepTransferLeadership, ""},
		{"it rolls back if another voter went down", func(v *View) { v.Cluster.Members[1].Live = false }, StepRollBack, ""},
		{"it rolls back if that has not succeeded for long", func(v *View) { v.Op.Elapsed = time.Hour }, StepRollBack, ""},
		{"once removed, it stops its etcd", gone, StepStopUnit, ""},
		{"then it moves its data aside", func(v *View) {
			gone(v)
			v.Unit.State, v.Unit.Since = UnitInactive, time.Minute
		}, StepMoveDataAside, ""},
		{"and ends the operation", func(v *View) {
			gone(v)
			v.Unit.State, v.Data.State = UnitInactive, DataEmpty
		}, StepEndOp, ""},
	})
	play(t, leavingNow(PhaseRollback), []scene{
		{"a rollback ends", nil, StepEndOp, ""},
		{"once no removal can take effect", func(v *View) { v.Op.WrittenFor = time.Second }, StepNone, Settling},
	})
}

func TestAVotersAgentEndsALeaveWhoseAgentIsGone(t *testing.T) {
	t.Parallel()
	orphaned := func() View {
		v := leavingNow(PhaseRemoving)()
		v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.MemberID, v.Data.MemberID = "n1", "n1", peerPrefix+"n1", 1, 1
		v.Op.Token, v.Op.OrphanedFor = 3, time.Hour
		return v
	}
	play(t, orphaned, []scene{
		{"it records the rollback", nil, StepRollBack, ""},
		{"not before the grace period", func(v *View) {
			v.Op.OrphanedFor, v.Lock = time.Second, Lock{Known: true}
		}, StepNone, OperationInFlight},
		{"and then ends it", func(v *View) { v.Op.Phase, v.Op.Token = PhaseRollback, 7 }, StepEndOp, ""},
	})
}

func TestAResizeIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		voters int
		change func(v *View)
		want   string // part of the text; empty if accepted
	}{
		{"a smaller cluster", 3, nil, ""},
		{"a larger one with enough hosts", 7, func(v *View) {
			v.Hosts = append(v.Hosts, ready("n6", RoleSpare), ready("n7", RoleSpare))
		}, ""},
		{"a larger one without them", 7, nil, "there are 5 hosts"},
		{"an even one", 4, nil, "tolerate no more failures than 3"},
		{"none", 0, nil, "not between 1 and 9"},
		{"too many", 11, nil, "not between 1 and 9"},
		{"during a pause", 3, func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} }, "paused"},
		{"without a quorum", 3, func(v *View) { v.Cluster.Reachable = false }, "cannot be reached"},
		{"in observe mode", 3, func(v *View) { v.Self.Mode = Observe }, "only observes"},
		{"to one voter without a store for snapshots", 1, nil, "tolerates no failure"},
		{"to one voter with a store", 1, func(v *View) { v.Backup.HasStore = true }, ""},
	} {
		v := resized()
		if c.change != nil {
			c.change(&v)
		}
		switch r := AgainstResize(v, c.voters, false); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || !strings.Contains(r.Text, c.want) || r.Hint == ""):
			t.Errorf("%s: %+v, want %q and a remedy", c.name, *r, c.want)
		}
	}
}

func TestThePlanOfAResizeIsWhatHostsThenDecide(t *testing.T) {
	t.Parallel()
	v := resized()
	steps, _ := ResizePlan(v, 1)
	if len(steps) != 4 {
		t.Fatalf("%d steps, want 4: %+v", len(steps), steps)
	}
	v.Target.Voters, v.Target.WithoutSnapshot = 1, true
	for n, step := range steps {
		list := leavers(v)
		if !strings.Contains(step.Text, list[0].Name+" leaves") || step.Voters != 4-n ||
			step.Tolerance != Tolerance(4-n, 4-n) || !step.Final {
			t.Errorf("step %d is %+v, and %s leaves next", n+1, step, list[0].Name)
		}
		_, v = nextLeave(v)
	}
	v = resized()
	v.Target.Voters = 5
	v.Hosts = append(v.Hosts, ready("n6", RoleSpare))
	steps, warnings := ResizePlan(v, 9)
	if len(steps) != 4 || !strings.HasPrefix(steps[0].Text, "n6 joins") || steps[0].WaitsFor != "" ||
		steps[1].WaitsFor == "" || len(warnings) != 1 {
		t.Errorf("%+v %v", steps, warnings)
	}
	if steps, _ = ResizePlan(resized(), 5); len(steps) != 0 {
		t.Errorf("five voters become five in %+v", steps)
	}
}

func TestARecordedSizeCountsInsteadOfTheConfiguredOne(t *testing.T) {
	t.Parallel()
	configured, five := Target{Voters: 3, Standbys: 1}, resized().Cluster
	for _, c := range []struct {
		name       string
		recorded   *Size
		unreadable bool
		want       Target
	}{
		{"without a record", nil, false, Target{Voters: 3, Standbys: 1, Configured: 3}},
		{"with one", &Size{Voters: 7}, false, Target{Voters: 7, Standbys: 1, Resized: true, Configured: 3}},
		{"an even one", &Size{Voters: 4}, false, Target{Voters: 3, Standbys: 1, Configured: 3}},
		{"a negative one", &Size{Voters: -1}, false, Target{Voters: 3, Standbys: 1, Configured: 3}},
		{"a huge one", &Size{Voters: 99}, false, Target{Voters: 3, Standbys: 1, Configured: 3}},
		{"an unreadable one", nil, true, Target{Voters: 5, Standbys: 1, Configured: 3}},
	} {
		if got := SizeOf(configured, c.recorded, c.unreadable, five); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAConfigurationThatDiffersFromTheSizeIsReported(t *testing.T) {
	t.Parallel()
	v := resized()
	v.Target.Voters = 5
	v.Target.Configured = 3
	if d := Decide(v); !hasCode(d.Reasons, SizeDiffers) || d.Step.Kind != StepNone {
		t.Errorf("%+v", d)
	}
	v.Target.Configured = 5
	if d := Decide(v); hasCode(d.Reasons, SizeDiffers) {
		t.Errorf("%+v", d.Reasons)
	}
}
