// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// retiredView returns the view of that host in a cluster of three voters with a ready spare, n4, after an operator has
// retired n1.
func retiredView(id string) View {
	v := resized()
	v.Cluster.Members, v.Hosts = v.Cluster.Members[:3], v.Hosts[:3]
	v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
	v.Target.Configured = 3
	v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1", MemberID: 1, By: "root", Reason: "old"}}
	v.Self.ID, v.Self.Name, v.Self.PeerURL = id, id, peerPrefix+id
	v.Self.MemberID, v.Data.MemberID = 0, 0
	for _, m := range v.Cluster.Members {
		if m.Name == id {
			v.Self.MemberID, v.Data.MemberID = m.ID, m.ID
		}
	}
	if v.Self.MemberID == 0 {
		v.Unit, v.Data = spareView().Unit, spareView().Data
	}
	v.PlaceFreeFor = time.Hour
	return v
}

// withReplacement adds n4 as a voter.
func withReplacement(v *View) {
	m := voter(4, "n4")
	m.Leader = false
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Hosts[3].Role = RoleVoter
}

func TestASpareJoinsBeforeARetiredHostsVoterLeaves(t *testing.T) {
	t.Parallel()
	play(t, func() View { return retiredView("n4") }, []scene{
		{"the spare joins although there are enough voters", nil, StepTakeLock, ""},
		{"no host is retired", func(v *View) { v.Retired = nil }, StepNone, TargetMet},
		{"the spare itself is retired", func(v *View) { v.Retired[0].Host = "n4" }, StepNone, HostRetired},
	})
	play(t, func() View { return retiredView("n1") }, []scene{
		{"the retired host's voter stays until the spare has joined", nil, StepNone, HostRetired},
		{"the retired host's voter leaves after that", withReplacement, StepTakeLock, ""},
		{"another voter is down", func(v *View) {
			withReplacement(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
	})
	play(t, func() View { return retiredView("n2") }, []scene{
		{"no other voter leaves in its place", func(v *View) {
			withReplacement(v)
			v.Target.ResizedFor = time.Hour
		}, StepNone, TooManyVoters},
		{"there are too many voters even without the retired one", func(v *View) {
			withReplacement(v)
			v.Target.Voters, v.Target.ResizedFor = 1, 100*time.Hour
			v.Target.WithoutSnapshot, v.IdleFor = true, 100*time.Hour
		}, StepTakeLock, ""},
	})
}

func TestARetirementConcernsOnlyItsOwnHost(t *testing.T) {
	t.Parallel()
	play(t, func() View { return retiredView("n4") }, []scene{
		{"a new host has the retired host's address", func(v *View) {
			v.Hosts[0].ID = "n1-new"
		}, StepNone, TargetMet},
		{"the agent of the retired host restarts", func(v *View) {
			v.Hosts = v.Hosts[1:]
		}, StepTakeLock, ""},
		{"the record of the retirement cannot be read", func(v *View) {
			v.Retired[0].PeerURL = ""
		}, StepNone, TargetMet},
	})
	play(t, func() View { return retiredView("n1") }, []scene{
		{"a new host at the same address stays", func(v *View) {
			v.Self.ID, v.Hosts[0].ID = "n1-new", "n1-new"
		}, StepNone, Idle},
		{"a voter with an unreadable retirement stays", func(v *View) {
			v.Retired[0].PeerURL = ""
		}, StepNone, HostRetired},
	})
}

func TestARetiredStandbyLeavesAtOnce(t *testing.T) {
	t.Parallel()
	standby := func() View {
		v := retiredView("n4")
		withReplacement(&v)
		v.Cluster.Members[3].Learner, v.Cluster.Members[3].Standby, v.Hosts[3].Role = true, true, RoleStandby
		v.Retired[0] = Retired{Host: "n4", PeerURL: peerPrefix + "n4", MemberID: 4, By: "root", Reason: "old"}
		v.Self.MemberID, v.Self.StandbyID, v.Data = 4, 4, resized().Data
		v.Data.MemberID, v.Unit.State = 4, UnitActive
		v.Target.Standbys = 1
		return v
	}
	play(t, standby, []scene{
		{"it takes the lock", nil, StepTakeLock, ""},
		{"it has the lock, and begins the leave", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginLeave, ""},
		{"its leave is in flight, and it removes its learner", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
			v.Op = &Op{
				Kind: KindLeave, Host: "n4", HostName: "n4", Phase: PhaseRemoving, Token: 7, MemberID: 4,
				SameBoot:   true,
				WrittenFor: time.Minute,
			}
			for i := range v.Hosts {
				v.Hosts[i].Answered = true
			}
		}, StepRemoveMember, ""},
		{"it stays if the retirement is undone", func(v *View) { v.Retired = nil }, StepNone, Idle},
	})
}

func TestARetiredLearnerLeavesAlthoughItsDataIsGone(t *testing.T) {
	t.Parallel()
	lost := func() View {
		v := retiredView("n4")
		withReplacement(&v)
		m := &v.Cluster.Members[3]
		m.Learner, m.Live, m.LiveFor, m.SteadyFor, m.DownFor = true, false, 0, 0, time.Hour // no data, so not a standby
		v.Hosts[3].Role = RoleStandby
		v.Retired[0] = Retired{Host: "n4", PeerURL: peerPrefix + "n4", MemberID: 4, By: "root", Reason: "old"}
		v.Self.MemberID, v.Self.StandbyID = 4, 4
		v.Unit.State, v.Unit.Since = UnitFailed, time.Hour
		return v
	}
	leaving := func(phase OpPhase) func(v *View) {
		return func(v *View) {
			underItsLock(v)
			v.Op = &Op{
				Kind: KindLeave, Host: "n4", HostName: "n4", Phase: phase, Token: 7, MemberID: 4, SameBoot: true,
				WrittenFor: time.Minute,
			}
			for i := range v.Hosts {
				v.Hosts[i].Answered = true
			}
		}
	}
	play(t, lost, []scene{
		{"it takes the lock", nil, StepTakeLock, ""},
		{"it has the lock, and begins the leave", underItsLock, StepBeginLeave, ""},
		{"its leave is in flight, and it removes its learner", leaving(PhaseRemoving), StepRemoveMember, ""},
		{"its learner is removed, and the operation ends", func(v *View) {
			leaving(PhaseRemoving)(v)
			v.Cluster.Members = v.Cluster.Members[:3]
		}, StepEndOp, ""},
		{"it is not retired, and reports the loss", func(v *View) { v.Retired = nil }, StepNone, MemberLost},
		{"it is a permanent learner", func(v *View) {
			v.Self.Learner, v.Cluster.Members[3].Permanent, v.Hosts[3].Learner = true, true, true
		}, StepTakeLock, ""},
	})
}

func TestARetirementIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	alone := func(v *View) {
		v.Cluster.Members, v.Hosts, v.Target.Voters = v.Cluster.Members[:1], v.Hosts[:1], 1
	}
	for _, c := range []struct {
		name, host string
		change     func(v *View)
		code       ReasonCode
		want, hint string // parts of the refusal's text and hint; want is empty if there is no refusal
	}{
		{"a voter with a spare", "n1", nil, "", "", ""},
		{
			"a voter without a spare", "n1", func(v *View) { v.Hosts = v.Hosts[:3] }, "",
			"no host is ready to replace it: without n1, 2 of 3 voters would be left",
			"bring another host to health OK",
		},
		{"a voter that exceeds the size", "n1", func(v *View) {
			v.Hosts, v.Target.Voters = v.Hosts[:3], 1
		}, "", "", ""},
		{"one of five", "n1", func(v *View) {
			v.Cluster.Members = append(v.Cluster.Members, voter(5, "n5"), voter(6, "n6"))
			v.Hosts, v.Target.Voters = v.Hosts[:3], 5
		}, "", "without n1, 4 of 5 voters would be left", "bring another host to health OK"},
		{"a second voter with only one spare", "n2", func(v *View) {
			v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1", MemberID: 1}}
		}, "", "no host is ready to replace it: without n2, 1 of 3 voters would be left", ""},
		{"a second voter with a spare for each", "n2", func(v *View) {
			v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1", MemberID: 1}}
			v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
		}, "", "", ""},
		{
			"the only voter", "n1", alone, "", "without n1, 0 of 1 voters would be left",
			"bring another host to health OK",
		},
		{"the only voter with a spare", "n1", func(v *View) {
			alone(v)
			v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
		}, "", "", ""},
		{"a spare", "n4", nil, "", "", ""},
		{"a spare that only observes", "n4", func(v *View) { v.Hosts[3].Manage = false }, "", "", ""},
		{"an unknown host", "n9", nil, "", "no host with that name", "quorumctl member remove NAME"},
		{"a host that is retired already", "n1", func(v *View) {
			v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1", MemberID: 1}}
			v.Hosts = v.Hosts[:3]
		}, "", "", ""},
		{"a host in an operation", "n2", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown}
		}, OperationInFlight, "n2 is in an operation", "quorumctl operation show"},
		{"a host that reports an operation", "n2", func(v *View) {
			v.Hosts[1].InOperation = true
		}, OperationInFlight, "n2 is in an operation", "quorumctl operation show"},
		{"a spare in an operation", "n4", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4", PeerURL: peerPrefix + "n4", MemberID: 9, Replaces: 8}
		}, OperationInFlight, "n4 is in an operation", ""},
		{"another host's operation", "n2", func(v *View) {
			v.Op = &Op{
				Kind: KindCycle, Host: "n3", HostName: "n3", Phase: PhaseDown, MemberID: 3, PeerURL: peerPrefix + "n3",
			}
		}, "", "", ""},
		{
			"a host that only observes", "n2", func(v *View) { v.Hosts[1].Manage = false }, ModeObserve,
			"quorumd on n2 only observes", "set mode: manage there",
		},
		{
			"during a pause", "n1", func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} }, Paused,
			"paused by root: testing", "quorumctl resume",
		},
		{
			"during a recovery", "n1", func(v *View) { v.Recovery = &Recovery{} }, Recovering,
			"a recovery plan is in progress", "quorumctl recover status",
		},
		{
			"without a quorum", "n1", func(v *View) { v.Cluster.Reachable = false }, ClusterUnreachable,
			"cannot be reached", "quorumctl explain",
		},
	} {
		v := retiredView("n2")
		v.Retired = nil
		if c.change != nil {
			c.change(&v)
		}
		switch r := AgainstRetire(v, c.host, ""); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || r.Code != c.code || !strings.Contains(r.Text, c.want) || r.Hint == "" ||
			!strings.Contains(r.Hint, c.hint)):
			t.Errorf("%s: %+v, want %q and the remedy %q", c.name, *r, c.want, c.hint)
		}
	}
}

func TestARetiredHostReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host   string
		change func(v *View)
		want   string
	}{
		"with a voter": {"n1", func(*View) {}, "retired by root: old; its voter leaves once another host has joined"},
		"with a learner": {
			"n1", func(v *View) { v.Cluster.Members[0].Learner = true }, "retired by root: old; its learner leaves",
		},
		"without a member": {
			"n4", func(v *View) { v.Retired[0].Host = "n4" }, "retired by root: old; it can be switched off",
		},
		"the second of two": {"n2", func(v *View) {
			v.Retired = append(v.Retired, Retired{
				Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2, By: "ann", Reason: "loud",
			})
		}, "retired by ann: loud; its voter leaves once another host has joined"},
		"another host is retired": {"n2", func(*View) {}, ""},
		"no host is retired":      {"n1", func(v *View) { v.Retired = nil }, ""},
	} {
		v := retiredView(c.host)
		c.change(&v)
		if text, is := retired(v); text != c.want || is != (c.want != "") {
			t.Errorf("%s: %t, %q", name, is, text)
		}
	}
}

func TestARetiredVoterCountsAsMissing(t *testing.T) {
	t.Parallel()
	v := retiredView("n2")
	withReplacement(&v)
	v.Retired = append(v.Retired, Retired{Host: "n9", PeerURL: peerPrefix + "n9", MemberID: 9}) // n9 has no member
	v.Cluster.Members = append(v.Cluster.Members, Member{ID: 7, PeerURL: peerPrefix + "n7", Learner: true})
	v.Retired = append(v.Retired, Retired{Host: "n7", PeerURL: peerPrefix + "n7", MemberID: 7}) // n7 has a learner
	if n := v.retiring(); n != 1 {
		t.Errorf("%d voters are on retired hosts", n)
	}
	for i, want := range []int{1, 0, 0, 0} {
		if m := v.Cluster.Members[i]; v.surplusVoters(m) != want {
			t.Errorf("for %s, %d voters are surplus", m.Name, v.surplusVoters(m))
		}
	}
}

func TestThePlanOfARetirementNamesTheReplacement(t *testing.T) {
	t.Parallel()
	const (
		joins  = " joins as a learner, catches up and becomes a voter"
		leaves = " leaves: proxies stop using it, its member is removed, etcd is stopped and its data is moved aside"
		out    = " stays out of the cluster until the retirement is undone, and can be switched off"
	)
	learner := func(role Role) func(v *View) {
		return func(v *View) {
			withReplacement(v)
			v.Cluster.Members[3].Learner, v.Hosts[3].Role = true, role
		}
	}
	gone := []PlanStep{
		{
			Text:   "n4 leaves: its learner is removed, etcd is stopped and its data is moved aside",
			Change: PlanLeaves, Host: "n4",
			Voters: 3, Tolerance: 1, Final: true,
		},
		{Text: "n4" + out, Voters: 3, Tolerance: 1},
	}
	for name, c := range map[string]struct {
		host   string
		change func(v *View)
		want   []PlanStep
	}{
		"the leader": {"n1", func(*View) {}, []PlanStep{
			{Text: "n4" + joins, Change: PlanJoins, Host: "n4", Voters: 4, Tolerance: 1},
			{
				Text:   "leadership is transferred from n1 to n2, then n1" + leaves,
				Change: PlanLeaves, Host: "n1", NewLeader: "n2", Voters: 3, Tolerance: 1, Final: true,
			},
			{Text: "n1" + out, Voters: 3, Tolerance: 1},
		}},
		"a follower": {"n2", func(*View) {}, []PlanStep{
			{Text: "n4" + joins, Change: PlanJoins, Host: "n4", Voters: 4, Tolerance: 1},
			{Text: "n2" + leaves, Change: PlanLeaves, Host: "n2", Voters: 3, Tolerance: 1, Final: true},
			{Text: "n2" + out, Voters: 3, Tolerance: 1},
		}},
		"no spare is ready": {"n2", func(v *View) { v.Hosts = v.Hosts[:3] }, []PlanStep{
			{
				Text: "another host" + joins, Change: PlanJoins, Voters: 4, Tolerance: 1,
				WaitsFor: "no host is ready; quorumctl explain on the hosts shows why",
			},
			{Text: "n2" + leaves, Change: PlanLeaves, Host: "n2", Voters: 3, Tolerance: 1, Final: true},
			{Text: "n2" + out, Voters: 3, Tolerance: 1},
		}},
		"there is one voter more than configured": {"n2", withReplacement, []PlanStep{
			{Text: "n2" + leaves, Change: PlanLeaves, Host: "n2", Voters: 3, Tolerance: 1, Final: true},
			{Text: "n2" + out, Voters: 3, Tolerance: 1},
		}},
		"a standby":       {"n4", learner(RoleStandby), gone},
		"a joining host":  {"n4", learner(RoleJoining), gone},
		"a spare":         {"n4", func(*View) {}, []PlanStep{{Text: "n4" + out, Voters: 3, Tolerance: 1}}},
		"an unknown host": {"n9", func(*View) {}, nil},
	} {
		v := retiredView("n3")
		v.Retired = nil
		c.change(&v)
		if got := RetirePlan(v, c.host, record.Successor{}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
