// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// inMaintenanceLost returns the view of n2 while n1, a voter, is lost in maintenance.
func inMaintenanceLost() View {
	v := retiredView("n2")
	v.Retired = nil
	v.Hosts = v.Hosts[1:]
	v.Cluster.Members[0].Live, v.Cluster.Members[0].LiveFor = false, 0
	v.Cluster.Members[0].DownFor, v.Cluster.Members[0].AgentGoneFor = time.Hour, time.Hour
	v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown, MemberID: 1, PeerURL: peerPrefix + "n1"}
	return v
}

func TestAHostIsRetiredAsLostOnlyInMaintenanceAndWithoutItsAgent(t *testing.T) {
	t.Parallel()
	const notDown = "no operation has taken it down"
	for _, c := range []struct {
		name   string
		host   string
		change func(v *View)
		code   ReasonCode
		want   string // part of the refusal; empty if it is accepted
		hint   string
	}{
		{"a voter lost in maintenance", "n1", func(*View) {}, "", "", ""},
		{"a host without a member", "n1", func(v *View) {
			v.Cluster.Members = v.Cluster.Members[1:]
		}, "", "", ""},
		{"a host that is not in maintenance", "n3", func(*View) {}, "", notDown, "without --lost"},
		{"a host that joins", "n1", func(v *View) { v.Op.Kind = KindJoin }, "", notDown, "member remove"},
		{"without an operation", "n1", func(v *View) { v.Op = nil }, "", notDown, "without --lost"},
		{"a record that names a different member", "n1", func(v *View) {
			v.Op.PeerURL = peerPrefix + "n9"
		}, OperationRejected, "a member with a different peer URL", "operation release"},
		{"a learner that answers", "n1", func(v *View) {
			v.Cluster.Members[0].Learner, v.Cluster.Members[0].Live = true, true
		}, MemberLive, "its learner answers", "quorumctl explain"},
		{"a host that has an agent with a new ID", "n1", func(v *View) {
			h := ready("n1", RoleSpare)
			h.ID = "n1-new"
			v.Hosts = append(v.Hosts, h)
		}, "", "under a different host ID", "operation release"},
		{"a member whose host has an agent", "n1", func(v *View) {
			v.Cluster.Members[0].AgentGoneFor = 0
		}, "", "under a different host ID", "operation release"},
		{"a host whose agent runs", "n1", func(v *View) {
			v.Hosts = append(v.Hosts, ready("n1", RoleVoter))
		}, "", "quorumd runs on n1", "power it off"},
		{"this host", "n1", func(v *View) { v.Self.ID = "n1" }, "", "it is this host", "quorumctl maintenance off"},
		{"a voter that answers", "n1", func(v *View) {
			v.Cluster.Members[0].Live = true
		}, MemberLive, "answers", "quorumctl"},
		{"a voter without which there is no quorum", "n1", func(v *View) {
			v.Cluster.Members[1].Live = false
		}, QuorumAtRisk, "1 of the 2 remaining voters answer", "quorumctl"},
		{"a host record cannot be read", "n1", func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordHost, Key: "/hosts/n9", Why: "it is no JSON"}}
		}, RecordUnreadable, "a host record cannot be read", "quorumctl explain"},
		{"during a pause", "n1", func(v *View) { v.Pause = &Pause{By: "root"} }, Paused, "paused", "quorumctl resume"},
		{"during a recovery", "n1", func(v *View) {
			v.Recovery = &Recovery{}
		}, Recovering, "recovery plan", "quorumctl recover status"},
	} {
		v := inMaintenanceLost()
		c.change(&v)
		switch r := AgainstRetireLost(v, c.host); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || r.Code != c.code || !strings.Contains(r.Text, c.want) ||
			!strings.Contains(r.Hint, c.hint)):
			t.Errorf("%s: %+v, want %q and the remedy %q", c.name, *r, c.want, c.hint)
		}
	}
}

func TestThePlanOfALostHostRemovesItsMemberBeforeAnotherHostJoins(t *testing.T) {
	t.Parallel()
	const ends = "the operation of n1 ends without waiting for the host"
	const stays = "n1 stays out of the cluster until the retirement is undone"
	for name, c := range map[string]struct {
		change func(v *View)
		want   []PlanStep
	}{
		"a voter": {func(*View) {}, []PlanStep{
			{Text: ends, Voters: 3, Tolerance: 0},
			{
				Text:   "member n1 (1) is removed by n2",
				Change: PlanLeaves, Host: "n1", Voters: 2, Tolerance: 0, Final: true,
			},
			{
				Text:   "n4 joins as a learner, catches up and becomes a voter",
				Change: PlanJoins, Host: "n4", Voters: 3, Tolerance: 1,
			},
			{Text: stays, Voters: 3, Tolerance: 1},
		}},
		"a voter for which the spare waits": {func(v *View) { v.Hosts[2].Waiting = VoterNotLive }, []PlanStep{
			{Text: ends, Voters: 3, Tolerance: 0},
			{
				Text:   "member n1 (1) is removed by n2",
				Change: PlanLeaves, Host: "n1", Voters: 2, Tolerance: 0, Final: true,
			},
			{
				Text:   "n4 joins as a learner, catches up and becomes a voter",
				Change: PlanJoins, Host: "n4", Voters: 3, Tolerance: 1,
			},
			{Text: stays, Voters: 3, Tolerance: 1},
		}},
		"a host of the running rollout": {func(v *View) {
			v.Rollout, v.Cluster.Members, v.Target.Voters = &Rollout{Runs: true}, v.Cluster.Members[1:], 2
		}, []PlanStep{
			{Text: ends + ", and the rollout stops", Voters: 2, Tolerance: 0}, {Text: stays, Voters: 2, Tolerance: 0},
		}},
		"a voter, and no host is ready": {func(v *View) { v.Hosts[2].Waiting = "DISK_SLOW" }, []PlanStep{
			{Text: ends, Voters: 3, Tolerance: 0},
			{
				Text:   "member n1 (1) is removed by n2",
				Change: PlanLeaves, Host: "n1", Voters: 2, Tolerance: 0, Final: true,
			},
			{
				Text:   "another host joins as a learner, catches up and becomes a voter",
				Change: PlanJoins, Voters: 3, Tolerance: 1,
				WaitsFor: noHostReady,
			},
			{Text: stays, Voters: 3, Tolerance: 1},
		}},
		"a learner": {func(v *View) {
			v.Cluster.Members[0].Learner, v.Target.Voters = true, 2
		}, []PlanStep{
			{Text: ends, Voters: 2, Tolerance: 0},
			{
				Text:   "member n1 (1) is removed by n2",
				Change: PlanLeaves, Host: "n1", Voters: 2, Tolerance: 0, Final: true,
			},
			{Text: stays, Voters: 2, Tolerance: 0},
		}},
		"a host without a member": {func(v *View) {
			v.Cluster.Members, v.Target.Voters = v.Cluster.Members[1:], 2
		}, []PlanStep{{Text: ends, Voters: 2, Tolerance: 0}, {Text: stays, Voters: 2, Tolerance: 0}}},
	} {
		v := inMaintenanceLost()
		c.change(&v)
		if got := RetireLostPlan(v); !slices.Equal(got, c.want) {
			t.Errorf("%s: the plan is %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestTheRequestOfAHostWhoseMemberWasRemovedEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		ends   bool
	}{
		"a command":                            {func(v *View) { v.Asked.Work = WorkCommand }, true},
		"maintenance, which its operator ends": {func(*View) {}, false},
		"maintenance of a retired host": {func(v *View) {
			v.Retired = []Retired{{Host: v.Self.ID, PeerURL: v.Self.PeerURL}}
		}, true},
		"a command that runs": {func(v *View) {
			v.Asked.Work, v.Asked.Command.State = WorkCommand, HooksRunning
		}, false},
		"a command of a host whose peer URL was changed": {func(v *View) {
			v.Asked.Work = WorkCommand
			m := voter(1, "n1")
			m.PeerURL = peerPrefix + "old"
			v.Cluster.Members = append(v.Cluster.Members, m)
		}, false},
		"a command, and the endpoints belong to a different cluster": {func(v *View) {
			v.Asked.Work, v.Cluster.ID, v.Cluster.ExpectedID = WorkCommand, 1, 2
		}, false},
		"a command whose operation has never begun": {func(v *View) {
			v.Asked.Work, v.Asked.Seen = WorkCommand, false
		}, false},
	} {
		v := retiredView("n1")
		v.Retired, v.Op, v.Cluster.Members = nil, nil, v.Cluster.Members[1:]
		v.Self.MemberID, v.Unit.State, v.Cluster.Fresh = 1, UnitInactive, true
		v.Asked = &Asked{Request: Request{Work: WorkMaintenance, Begun: true, Seen: true, Stopped: true}}
		c.change(&v)
		if note := noteRequest(v, Step{}); (note.Change == RequestEnds) != c.ends {
			t.Errorf("%s: %+v", name, note)
		}
	}
}
