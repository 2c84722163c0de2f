// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// resized returns the view of n5, the last of five voters to have joined, after an operator has resized the cluster to
// three. The disk of n5 is the slowest.
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

// leavingNow returns the view of n5 while it leaves, with the record of its leave in that phase.
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
		{"it has the lock, and records that it leaves", holds, StepBeginLeave, ""},
		{
			"no operator has resized the cluster", func(v *View) { v.Target.Resized = false }, StepNone,
			TooManyVoters,
		},
		{"the size is met", func(v *View) { v.Target.Voters = 5 }, StepNone, Idle},
		{"it waits while the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root"} }, StepNone, Paused},
		{
			"it waits while another voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone,
			VoterNotLive,
		},
		{
			"it waits while another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone,
			TooManyVoters,
		},
		{"it waits while another operation is in flight", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown}
		}, StepNone, OperationInFlight},
		{
			"it waits while the CORRUPT alarm is raised", func(v *View) { v.Cluster.Intact = false }, StepNone,
			EtcdCorrupt,
		},
		{
			"it waits until the membership has settled", func(v *View) { v.Cluster.StableFor = time.Second }, StepNone,
			Idle,
		},
		{"it waits while a learner catches up", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, Member{ID: 6, PeerURL: "http://n6", Learner: true})
		}, StepNone, TooManyVoters},
		{"it only reports in observe mode", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"another program manages its etcd", func(v *View) { v.Self.Drives = false }, StepNone, TooManyVoters},
		{
			"an unhealthy voter leaves before it", func(v *View) { v.Hosts[0].Health = health.Slow }, StepNone,
			TooManyVoters,
		},
		{"a voter that shares its failure domain leaves before it", func(v *View) {
			v.Hosts[0].Domain, v.Hosts[1].Domain, v.Hosts[4].Domain = "a", "a", "b"
		}, StepNone, TooManyVoters},
		{"the leader leaves after it", func(v *View) { v.Hosts[0].P99 = time.Second }, StepTakeLock, ""},
		{"the first voter to leave has not acted for an hour", func(v *View) {
			v.Hosts[3].P99, v.Target.ResizedFor = time.Second, time.Hour
		}, StepTakeLock, ""},
		{
			"the first voter to leave has not acted yet",
			func(v *View) { v.Hosts[3].P99 = time.Second }, StepNone, TooManyVoters,
		},
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
		{"there is no snapshot", nil, StepNone, TooManyVoters},
		{"the snapshot is old", func(v *View) {
			v.Backup = Backup{HasSnapshot: true, Age: 2 * time.Hour}
		}, StepNone, TooManyVoters},
		{"the snapshot is recent", func(v *View) {
			v.Backup = Backup{HasSnapshot: true, Age: time.Minute}
		}, StepTakeLock, ""},
		{"an operator waives the snapshot", func(v *View) { v.Target.WithoutSnapshot = true }, StepTakeLock, ""},
	})
}

func TestAVoterLeavesInPhases(t *testing.T) {
	t.Parallel()
	gone := func(v *View) { v.Cluster.Members = v.Cluster.Members[:4] }
	play(t, leavingNow(PhaseBegun), []scene{
		{"it records that the removal begins", nil, StepSetPhase, ""},
		{
			"another voter's host has not reported again", func(v *View) { v.Hosts[2].Answered = false }, StepNone,
			HealthAwaited,
		},
		{"a leader transfers leadership first", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
		}, StepTransferLeadership, ""},
		{"the leadership transfer keeps failing", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "timed out"}
		}, StepEndOp, ""},
		{"it stays if another voter went down", func(v *View) { v.Cluster.Members[1].Live = false }, StepEndOp, ""},
		{"it stays if the cluster was resized back", func(v *View) { v.Target.Voters = 5 }, StepEndOp, ""},
		{"it stays if the record names another member", func(v *View) { v.Op.MemberID = 1 }, StepEndOp, ""},
	})
	play(t, leavingNow(PhaseRemoving), []scene{
		{"it removes its own member", nil, StepRemoveMember, ""},
		{"proxies may still have clients there", func(v *View) { v.Op.WrittenFor = time.Second }, StepNone, Settling},
		{"a new leader transfers leadership again", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[4].Leader = false, true
		}, StepTransferLeadership, ""},
		{
			"it rolls back if another voter went down", func(v *View) { v.Cluster.Members[1].Live = false },
			StepRollBack,
			"",
		},
		{
			"it rolls back if the removal has not succeeded for an hour", func(v *View) { v.Op.Elapsed = time.Hour },
			StepRollBack,
			"",
		},
		{"once removed, it stops its etcd", gone, StepStopUnit, ""},
		{"its etcd is stopped, and it moves its data aside", func(v *View) {
			gone(v)
			v.Unit.State, v.Unit.Since = UnitInactive, time.Minute
		}, StepMoveDataAside, ""},
		{"its data is aside, and it ends the operation", func(v *View) {
			gone(v)
			v.Unit.State, v.Unit.Since, v.Data.State = UnitInactive, time.Minute, DataEmpty
		}, StepEndOp, ""},
	})
	play(t, leavingNow(PhaseRollback), []scene{
		{"a rollback ends", nil, StepEndOp, ""},
		{"a removal may still take effect", func(v *View) { v.Op.WrittenFor = time.Second }, StepNone, Settling},
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
		{"the grace period is not over", func(v *View) {
			v.Op.OrphanedFor, v.Lock = time.Second, Lock{Known: true}
		}, StepNone, OperationInFlight},
		{
			"the rollback is recorded, and it ends the operation",
			func(v *View) { v.Op.Phase, v.Op.Token = PhaseRollback, 7 }, StepEndOp, "",
		},
	})
	play(t, orphaned, []scene{
		{"a removal may be pending", func(v *View) {
			v.Op.Phase, v.Op.Token, v.Op.WrittenFor = PhaseRollback, 7, 30*time.Second-1
		}, StepNone, Settling},
		{"no removal can take effect any more", func(v *View) {
			v.Op.Phase, v.Op.Token, v.Op.WrittenFor = PhaseRollback, 7, 30*time.Second
		}, StepEndOp, ""},
		{"the removal took effect", func(v *View) {
			without(v, 5)
			v.Op.Phase, v.Op.Token, v.Op.WrittenFor, v.Op.Reason = PhaseRollback, 7, time.Second, "four are enough"
		}, StepEndOp, ""},
	})
}

func TestALeaderWhoseLeadershipIsNotTransferredStays(t *testing.T) {
	t.Parallel()
	leads := func(phase OpPhase) func() View {
		return func() View {
			v := leavingNow(phase)()
			elect(&v, 5)
			v.Limits.TransferTimeout = 30 * time.Second
			return v
		}
	}
	failed := func(since time.Duration) func(v *View) {
		return func(v *View) {
			v.Failed, v.Op.WrittenFor = FailedStep{Kind: StepTransferLeadership, Text: "timed out"}, since
		}
	}
	unfit := func(v *View) {
		for i := range 4 {
			v.Hosts[i].Ungated = health.Maintenance
			v.Hosts[i].Health = health.Slow
		}
	}
	play(t, leads(PhaseBegun), []scene{
		{"it transfers leadership", nil, StepTransferLeadership, ""},
		{"another step has failed", func(v *View) {
			failed(time.Hour)(v)
			v.Failed.Kind = StepSetPhase
		}, StepTransferLeadership, ""},
		{"the transfer fails for the first time", failed(30 * time.Second), StepTransferLeadership, ""},
		{"the transfer keeps failing", failed(30*time.Second + 1), StepEndOp, ""},
		{"no other voter may lead", unfit, StepEndOp, ""},
	})
	play(t, leads(PhaseRemoving), []scene{
		{"it leads again", nil, StepTransferLeadership, ""},
		{"it leads again, and the transfer keeps failing", failed(time.Minute), StepRollBack, ""},
		{"it leads again, and no other voter may lead", unfit, StepRollBack, ""},
	})
}

func TestAVoterThatLeavesIsCheckedUntilItIsGone(t *testing.T) {
	t.Parallel()
	gone := func(v *View) { without(v, 5) }
	play(t, leavingNow(PhaseRemoving), []scene{
		{"no veto applies", func(v *View) { v.Op.Reason = "three are enough" }, StepRemoveMember, ""},
		{"the data may differ", func(v *View) { v.Cluster.Intact = false }, StepRollBack, ""},
		{"etcd has no space", func(v *View) { v.Cluster.Roomy = false }, StepRollBack, ""},
		{"the limit is reached", func(v *View) { v.Op.Elapsed = v.Limits.LearnerStall }, StepRemoveMember, ""},
		{"the limit is exceeded", func(v *View) { v.Op.Elapsed = v.Limits.LearnerStall + 1 }, StepRollBack, ""},
		{"the cluster was resized back", func(v *View) { v.Target.Voters = 5 }, StepRollBack, ""},
		{"the proxies have just had time", func(v *View) { v.Op.WrittenFor = v.Limits.Settle }, StepRemoveMember, ""},
		{"the proxies need a moment", func(v *View) {
			v.Op.WrittenFor = v.Limits.Settle - time.Second
		}, StepNone, Settling},
		{"another host has the lock", func(v *View) { v.Lock = Lock{Known: true, Held: true} }, StepNone, LockHeld},
		{"the lock has expired", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
	})
	play(t, leavingNow(PhaseRollback), []scene{
		{"it has left although it rolls back", gone, StepStopUnit, ""},
		{"its rollback names the reason", func(v *View) { v.Op.Outcome = QuorumAtRisk }, StepEndOp, ""},
	})
	idle := func(v *View) {
		gone(v)
		v.Unit.State, v.Unit.Since = UnitInactive, time.Minute
	}
	play(t, leavingNow(PhaseRemoving), []scene{
		{"etcd stops", func(v *View) { gone(v); v.Unit.State = UnitDeactivating }, StepNone, Stopping},
		{"something else manages etcd", func(v *View) { gone(v); v.Self.Drives = false }, StepEndOp, ""},
		{"the data is another member's", func(v *View) { idle(v); v.Data.MemberID = 9 }, StepEndOp, ""},
	})
}

func TestTheVotersThatLeaveAreRanked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   string
	}{
		"by their disks, the leader last":       {func(*View) {}, "n5 n4 n3 n2 n1"},
		"by their IDs, the newest first":        {evenDisks, "n5 n4 n3 n2 n1"},
		"the leader's disk is the slowest":      {func(v *View) { v.Hosts[0].P99 = time.Second }, "n5 n4 n3 n2 n1"},
		"another one leads":                     {func(v *View) { elect(v, 5) }, "n4 n3 n2 n1 n5"},
		"no voter is known to lead":             {func(v *View) { elect(v, 9) }, "n5 n4 n3 n2 n1"},
		"the disk of one is unknown":            {func(v *View) { v.Hosts[1].P99 = 0 }, "n2 n5 n4 n3 n1"},
		"an unhealthy voter leaves first":       {func(v *View) { v.Hosts[1].Health = health.Slow }, "n2 n5 n4 n3 n1"},
		"a WARM voter ranks like a healthy one": {func(v *View) { v.Hosts[1].Health = health.Warm }, "n5 n4 n3 n2 n1"},
		"an unhealthy leader before others":     {func(v *View) { v.Hosts[0].Health = health.Slow }, "n1 n5 n4 n3 n2"},
		"a retired host's voter before an unhealthy one": {func(v *View) {
			v.Hosts[1].Health = health.Slow
			v.Retired = []Retired{{Host: "n3", PeerURL: peerPrefix + "n3", MemberID: 3}}
		}, "n3 n2 n5 n4 n1"},
		"voters of the largest failure domain": {domains("a", "a", "", "", ""), "n2 n1 n5 n4 n3"},
		"voters of the larger failure domain":  {domains("a", "a", "a", "b", "b"), "n3 n2 n1 n5 n4"},
		"voters without a host record count for their domain": {func(v *View) {
			domains("a", "", "b", "b", "a")(v)
			v.Hosts = slices.Delete(v.Hosts, 0, 1)
			v.Cluster.Members[0].Domain, v.Cluster.Members[1].Domain = "a", "a"
		}, "n5 n4 n3 n2"},
		"a host in an operation is left out":    {func(v *View) { v.Hosts[4].InOperation = true }, "n4 n3 n2 n1"},
		"a host that only observes is left out": {func(v *View) { v.Hosts[4].Manage = false }, "n4 n3 n2 n1"},
		"a host without a voter is left out": {func(v *View) {
			v.Hosts = append(v.Hosts, ready("n6", RoleSpare))
			v.Cluster.Members[3].Learner = true
		}, "n5 n3 n2 n1"},
	} {
		v := resized()
		c.change(&v)
		var got []string
		for _, h := range leavers(v) {
			got = append(got, h.Name)
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s: %s, want %s", name, all, c.want)
		}
	}
}

func evenDisks(v *View) {
	for i := range v.Hosts {
		v.Hosts[i].P99 = time.Millisecond
	}
}

// elect makes the member with that ID the leader.
func elect(v *View, id uint64) {
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Leader = v.Cluster.Members[i].ID == id
	}
}

// domains sets the failure domains of the hosts.
func domains(names ...string) func(v *View) {
	return func(v *View) {
		for i, name := range names {
			v.Hosts[i].Domain = name
		}
	}
}

func TestAnotherVoterLeavesOnlyAfterTheFirstHasHadTime(t *testing.T) {
	t.Parallel()
	second := func() View {
		v := resized()
		v.Hosts[3].P99, v.Target.ResizedFor = time.Second, time.Hour
		return v
	}
	enough := patience(second(), 1)
	for name, c := range map[string]struct {
		change func(v *View)
		says   string
	}{
		"the first one": {func(v *View) { v.Hosts[3].P99, v.Target.ResizedFor, v.IdleFor = 1, 0, 0 }, ""},
		"long after":    {func(*View) {}, ""},
		"just in time":  {func(v *View) { v.Target.ResizedFor, v.IdleFor = enough, enough }, ""},
		"the size was recorded too recently": {
			func(v *View) { v.Target.ResizedFor = enough - 1 }, "n4 leaves first",
		},
		"an operation ended too recently": {func(v *View) { v.IdleFor = enough - 1 }, "n4 leaves first"},
		"the third one has to wait longer": {func(v *View) {
			v.Hosts[2].P99, v.Target.ResizedFor = 2*time.Second, enough
		}, "n3 leaves first"},
		"it only observes": {
			func(v *View) { v.Hosts[4].Manage = false }, "this host is in an operation, or its quorumd only observes",
		},
		"a standby waits for no voter": {
			func(v *View) { v.Cluster.Members[4].Learner, v.Target.ResizedFor = true, 0 }, "",
		},
	} {
		v := second()
		c.change(&v)
		if text, holds := notFirstToLeave(v); text != c.says || holds != (c.says != "") {
			t.Errorf("%s: %t, %q", name, holds, text)
		}
	}
}

func TestAVoterLeavesOnlyWhileTheSizeAllowsItAndAllOthersAreHealthy(t *testing.T) {
	t.Parallel()
	const unless = "no voter leaves unless all others are live and healthy: voter "
	for name, c := range map[string]struct {
		change func(v *View)
		says   string
	}{
		"all others are healthy":         {func(*View) {}, ""},
		"this host itself is unhealthy":  {func(v *View) { v.Hosts[4].Health = health.Failed }, ""},
		"its own member does not answer": {func(v *View) { v.Cluster.Members[4].Live = false }, ""},
		"another voter is unhealthy":     {func(v *View) { v.Hosts[1].Health = health.Slow }, unless + "n2 is SLOW"},
		"another voter does not answer": {
			func(v *View) { v.Cluster.Members[3].Live = false }, unless + "n4 does not answer a linearizable read",
		},
		"the number of voters is the size": {
			func(v *View) { v.Target.Voters = 5 }, "there are 5 voters, and the size is 5",
		},
		"there is one voter more than the size": {func(v *View) { v.Target.Voters = 4 }, ""},
		"no operator has resized the cluster": {
			func(v *View) { v.Target.Resized = false }, "there are 5 voters, and the size is 3",
		},
		"its own member is a standby": {
			func(v *View) { v.Cluster.Members[4].Learner, v.Hosts[1].Health = true, health.Failed }, "",
		},
		"another host's standby does not answer": {
			func(v *View) { v.Cluster.Members[3].Learner, v.Cluster.Members[3].Live = true, false }, "",
		},
	} {
		v := resized()
		c.change(&v)
		if text, holds := leaveAtRisk(v); text != c.says || holds != (c.says != "") {
			t.Errorf("%s: %t, %q", name, holds, text)
		}
	}
}

func TestAVoterLeavesOnlyOnceAnEarlierRemovalCannotTakeEffect(t *testing.T) {
	t.Parallel()
	for idle, says := range map[time.Duration]string{
		30*time.Second - 1: "the last operation ended 30s ago; its calls to etcd take effect within 30s or never",
		20 * time.Second:   "the last operation ended 20s ago; its calls to etcd take effect within 30s or never",
		30 * time.Second:   "",
		time.Hour:          "",
	} {
		v := resized()
		v.IdleFor, v.Limits.Cooldown = idle, v.Limits.Settle
		if text, pending := removalPending(v); text != says || pending != (says != "") {
			t.Errorf("after %s: %t, %q", idle, pending, text)
		}
		if _, leaves := leave(v); leaves != (says == "") {
			t.Errorf("after %s it leaves: %t", idle, leaves)
		}
	}
}

func TestAMemberLeavesOnlyIfThereAreTooMany(t *testing.T) {
	t.Parallel()
	standby := func(v *View) {
		v.Target.Voters = 5
		v.Hosts = append(v.Hosts, ready("n6", RoleStandby))
		m := voter(6, "n6")
		m.Learner, m.Standby = true, true
		v.Cluster.Members = append(v.Cluster.Members, m)
		v.Self.PeerURL = m.PeerURL
	}
	for name, c := range map[string]struct {
		change func(v *View)
		leaves bool
		why    string
	}{
		"a voter": {func(*View) {}, true, "the cluster has 5 voters, but an operator has resized it to 3"},
		"a voter if the size is met": {
			func(v *View) { v.Target.Voters = 5 }, false,
			"the cluster has 5 voters, but an operator has resized it to 5",
		},
		"a voter without a size": {
			func(v *View) { v.Target.Resized = false }, false,
			"the cluster has 5 voters, but an operator has resized it to 3",
		},
		"a standby": {standby, true, "it is a standby, but the configured number of standbys is 0"},
		"a standby that is configured": {
			func(v *View) { standby(v); v.Target.Standbys = 1 }, false,
			"it is a standby, but the configured number of standbys is 1",
		},
		"a standby without a size": {
			func(v *View) { standby(v); v.Target.Resized = false }, false,
			"it is a standby, but the configured number of standbys is 0",
		},
		"a standby while a voter is missing": {
			func(v *View) { standby(v); v.Target.Voters = 7 }, false,
			"it is a standby, but the configured number of standbys is 0",
		},
		"a standby while a retired voter is to be replaced": {func(v *View) {
			standby(v)
			v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1", MemberID: 1}}
		}, false, "it is a standby, but the configured number of standbys is 0"},
		"a learner that joins": {
			func(v *View) { standby(v); v.Cluster.Members[5].Standby = false }, false,
			"it is a standby, but the configured number of standbys is 0",
		},
		"a retired host's standby": {func(v *View) {
			standby(v)
			v.Target.Resized, v.Target.Standbys = false, 1
			v.Retired = []Retired{{Host: "n6", PeerURL: peerPrefix + "n6", MemberID: 6}}
		}, true, "its host is retired"},
		"a retired host's learner that joins": {func(v *View) {
			standby(v)
			v.Cluster.Members[5].Standby = false
			v.Retired = []Retired{{Host: "n6", PeerURL: peerPrefix + "n6", MemberID: 6}}
		}, false, "its host is retired"},
	} {
		v := resized()
		c.change(&v)
		m, _ := v.member()
		if leaves, why := v.leavesNow(m), v.leaveText(m); leaves != c.leaves || why != c.why {
			t.Errorf("%s: it leaves %t, because %q", name, leaves, why)
		}
		if d, decided := leave(v); decided && d.Step.Why != c.why {
			t.Errorf("%s: the step's reason is %q", name, d.Step.Why)
		}
	}
}

func TestTheReasonForTooManyVotersNamesTheNextOneToLeave(t *testing.T) {
	t.Parallel()
	two := func(v *View) {
		v.Target.Voters = 1
		v.Cluster.Members, v.Hosts = v.Cluster.Members[:2], v.Hosts[:2]
	}
	const noSnapshot = "no verified snapshot is younger than 1h, and with one voter a failed disk loses the data"
	snapshot := func(age time.Duration) func(v *View) {
		return func(v *View) { two(v); v.Backup = Backup{HasSnapshot: true, Age: age} }
	}
	for name, c := range map[string]struct {
		change func(v *View)
		want   string
	}{
		"no veto applies":                    {func(*View) {}, "n5 leaves next"},
		"the next voter is unhealthy itself": {func(v *View) { v.Hosts[4].Health = health.Slow }, "n5 leaves next"},
		"it does not answer":                 {func(v *View) { v.Cluster.Members[4].Live = false }, "n5 leaves next"},
		"another voter is unhealthy": {
			func(v *View) { v.Cluster.Members[1].Errors = true }, "n5 leaves next, but voter n2 reports errors",
		},
		"the cluster is paused": {
			func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} },
			paused(&Pause{By: "root", Reason: "testing"}).Text,
		},
		"only one host has an agent": {
			func(v *View) { v.Hosts = v.Hosts[4:] },
			"n5 leaves next, but voter n1 has no quorumd that reports its health state",
		},
		"no host has an agent": {
			func(v *View) { v.Hosts = nil }, "no voter's host runs quorumd in mode manage",
		},
		"there is no snapshot":                  {two, noSnapshot},
		"the snapshot is old":                   {snapshot(freshFor + 1), noSnapshot},
		"the snapshot is just recent enough":    {snapshot(freshFor), "n2 leaves next"},
		"its clock is ahead":                    {snapshot(-freshFor), "n2 leaves next"},
		"its clock is too far ahead":            {snapshot(-freshFor - 1), noSnapshot},
		"only an age is known, and no snapshot": {func(v *View) { two(v); v.Backup.Age = time.Minute }, noSnapshot},
		"an operator waives it": {
			func(v *View) { two(v); v.Target.WithoutSnapshot = true }, "n2 leaves next",
		},
		"no size is recorded":        {func(v *View) { two(v); v.Target.Resized = false }, "n2 leaves next"},
		"three voters are to remain": {func(v *View) { two(v); v.Target.Voters = 3 }, "n2 leaves next"},
		"five voters remain before":  {func(v *View) { v.Target.Voters = 1 }, "n5 leaves next"},
		"a retired host's voter was replaced first": {
			func(v *View) {
				two(v)
				v.Retired = []Retired{{Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2}}
			}, "n2 leaves next",
		},
	} {
		v := resized()
		c.change(&v)
		if got := v.nextToLeave(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestASurplusIsReportedOnceTheMembershipHasSettled(t *testing.T) {
	t.Parallel()
	v := resized()
	for since, want := range map[time.Duration]bool{v.Limits.Settle: true, v.Limits.Settle - 1: false} {
		v.Cluster.StableFor = since
		if text, reported := surplus(v); reported != want {
			t.Errorf("after %s: %t, %q", since, reported, text)
		}
	}
}
