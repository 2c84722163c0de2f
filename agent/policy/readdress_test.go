// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/agent/record"
)

const newURL = "http://n1.new:2380"

// readdressView returns the view of n1 in its readdress, before the member list is updated.
func readdressView() View {
	v := voterView()
	n3 := voter(3, "n3")
	v.Cluster.Members = []Member{voter(1, "n1"), voter(2, "n2"), n3}
	v.Cluster.Members[0].Leader, v.Cluster.Members[1].Leader = false, true
	v.Hosts[2].Role = RoleVoter
	for i := range v.Hosts {
		v.Hosts[i].Answered, v.Hosts[i].Own = true, v.Hosts[i].ID == "n1"
	}
	v.Self.NewPeerURL, v.Self.ClusterID, v.Self.MemberID = newURL, clusterID, 1
	v.Unit = Unit{State: UnitActive, SinceStart: Never}
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: 20 * time.Second, Token: 7, Holder: "n1"}
	v.Limits.ReturnMax, v.Limits.ReturnStable, v.Limits.TransferTimeout = time.Minute, 10*time.Second, time.Minute
	v.Asked = &Asked{
		Request:   Request{Work: WorkReaddress, By: "root", Reason: "a test", Begun: true, Seen: true},
		RebootFor: Never, WaitedFor: time.Hour,
	}
	v.Op = &Op{
		Kind: KindCycle, Work: WorkReaddress, Host: "n1", HostName: "n1", Phase: PhaseReady, Token: 7, MemberID: 1,
		PeerURL: peerPrefix + "n1", SameBoot: true,
	}
	return v
}

// updated registers the new URL.
func updated(v *View) {
	v.Self.PeerURL, v.Self.NewPeerURL = newURL, ""
	v.Cluster.Members[0].PeerURL, v.Hosts[0].PeerURL = newURL, newURL
}

// verifying changes the view to the phase in which the other hosts are asked.
func verifying(v *View) {
	updated(v)
	v.Op.Phase, v.Op.Restarted, v.Unit.EnvReady = PhaseVerify, true, true
}

func TestAReaddressUpdatesTheMemberThenRestartsItAndVerifiesTheURL(t *testing.T) {
	t.Parallel()
	play(t, readdressView, []scene{
		{"the member list is updated first", nil, StepUpdateMember, ""},
		{"its own etcd is not connected to the others", func(v *View) {
			v.Hosts[0].Answered = false
		}, StepNone, HealthAwaited},
		{
			"another host has not reported its connections",
			func(v *View) { v.Hosts[2].Answered = false }, StepNone, HealthAwaited,
		},
		{"it leads", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[1].Leader = true, false
		}, StepTransferLeadership, ""},
		{"another voter is down", func(v *View) {
			v.Cluster.Members[2].Live = false
		}, StepNone, QuorumAtRisk},
		{"it does not have the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Holder: "n2", Token: 8}
		}, StepNone, LockHeld},
		{"the member list is updated", updated, StepTakeDown, ""},
		{"the member list is updated, and an operator has ended the request", func(v *View) {
			updated(v)
			v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, time.Second
		}, StepTakeDown, ""},
		{"an operator ends the request before the update", func(v *View) {
			v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, time.Second
		}, StepEndOp, ""},
		{"etcd is stopped", func(v *View) {
			updated(v)
			v.Asked.Stopped, v.Unit.State = true, UnitInactive
		}, StepSetPhase, ""},
		{"its environment is written", func(v *View) {
			updated(v)
			v.Asked.Stopped, v.Unit.State, v.Op.Phase = true, UnitInactive, PhaseDown
		}, StepWriteEnv, ""},
		{"etcd is stopped, and the member list is not updated", func(v *View) {
			v.Asked.Stopped, v.Unit.State, v.Op.Phase = true, UnitInactive, PhaseDown
		}, StepUpdateMember, ""},
		{"another program runs etcd", func(v *View) { v.Self.Drives = false }, StepEndOp, ""},
		{"another program has stopped etcd", func(v *View) {
			v.Self.Drives, v.Unit.State, v.Op.Phase = false, UnitInactive, PhaseDown
		}, StepEndOp, ""},
		{"etcd starts", func(v *View) {
			updated(v)
			v.Asked.Stopped, v.Unit.State, v.Unit.EnvReady, v.Op.Phase = true, UnitInactive, true, PhaseDown
		}, StepStartUnit, ""},
		{"the others are asked", func(v *View) { verifying(v); v.Op.Phase = PhaseBack }, StepSetPhase, ""},
		{"one has not answered", func(v *View) { verifying(v); v.Hosts[1].Answered = false }, StepNone, Returning},
		{"one has not answered for a long time", func(v *View) {
			verifying(v)
			v.Hosts[1].Answered, v.Op.WrittenFor = false, 2*time.Minute
		}, StepNone, NotBack},
		{"one has no agent", func(v *View) { verifying(v); v.Hosts = v.Hosts[:2] }, StepNone, Returning},
		{"all have answered", verifying, StepEndOp, ""},
		{"the URL is changed back", func(v *View) {
			verifying(v)
			v.Hosts[1].Answered, v.Self.NewPeerURL = false, peerPrefix+"n1"
		}, StepSetPhase, ""},
		{"the URL is changed back after an operator has ended the request", func(v *View) {
			verifying(v)
			v.Hosts[1].Answered, v.Self.NewPeerURL = false, peerPrefix+"n1"
			v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, time.Second
		}, StepSetPhase, ""},
		{"it is changed back, the request has ended, and etcd is stopped", func(v *View) {
			v.Self.NewPeerURL, v.Asked.Stopped, v.Unit.State, v.Op.Phase = "", true, UnitInactive, PhaseDown
			v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, time.Second
		}, StepWriteEnv, ""},
		{"a voter died meanwhile", func(v *View) {
			verifying(v)
			v.Hosts = v.Hosts[:2]
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 2*time.Minute
		}, StepEndOp, ""},
		{"only this host does not reach a voter", func(v *View) {
			verifying(v)
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 2*time.Minute
			v.Hosts[2].Answered = false
			v.Hosts[1].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortAnswers}}
		}, StepNone, Returning},
		{"a voter hangs", func(v *View) {
			verifying(v)
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, 2*time.Minute
			v.Hosts[2].Answered = false
			v.Hosts[1].Sees = []record.Reachability{{MemberID: 3, Peer: record.PortSilent, Client: record.PortSilent}}
		}, StepEndOp, ""},
		{"a voter does not answer for a moment", func(v *View) {
			verifying(v)
			v.Hosts = v.Hosts[:2]
			v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, time.Second
		}, StepNone, Returning},
		{"the agent was restarted long after the update", func(v *View) {
			verifying(v)
			v.Hosts[1].Answered, v.Op.WrittenFor, v.Unit.EnvReady = false, 2*time.Minute, false
		}, StepSetPhase, ""},
	})
}

func TestAChangedPeerURLIsAConflictUnlessARequestAppliesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   string // part of the conflict; empty for none
	}{
		"no request":      {func(v *View) { v.Asked = nil }, "→ quorumctl readdress n1"},
		"another request": {func(v *View) { v.Asked.Work = WorkRestart }, "→ quorumctl readdress n1"},
		"the request":     {func(*View) {}, ""},
		"a rollout will reach it": {func(v *View) {
			v.Asked, v.Rollout = nil, &Rollout{Work: WorkReaddress, Runs: true, Waiting: []string{"n1"}}
		}, ""},
		"a paused rollout": {func(v *View) {
			v.Asked, v.Rollout = nil, &Rollout{Work: WorkReaddress, Waiting: []string{"n1"}}
		}, "→ quorumctl readdress n1"},
		"another scheme, no request": {func(v *View) {
			v.Self.NewPeerURL, v.Asked = "https://n1.new:2380", nil
		}, "→ quorumctl readdress n1"},
		"another scheme": {func(v *View) { v.Self.NewPeerURL = "https://n1.new:2380" }, ""},
		"another member's": {func(v *View) {
			v.Self.NewPeerURL = peerPrefix + "n3"
		}, "which is the peer URL of member n3"},
	} {
		v := readdressView()
		c.change(&v)
		if got := Conflict(v); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: the conflict is %q, want %q", name, got, c.want)
		}
	}
}

func TestAMemberIsRecognizedByItsIDInTheSameCluster(t *testing.T) {
	t.Parallel()
	data := Data{State: DataMember, ClusterID: 1, MemberID: 7}
	noted := Self{ClusterID: 1, MemberID: 8}
	for name, c := range map[string]struct {
		data    Data
		cluster uint64
		want    uint64
	}{
		"by its data":                  {data, 1, 7},
		"data of another cluster":      {data, 2, 0},
		"no cluster answers":           {data, 0, 0},
		"by its disk until it is read": {Data{}, 1, 8},
		"no data":                      {Data{State: DataEmpty}, 1, 0},
	} {
		if got := RecognizedMember(c.data, noted, c.cluster); got != c.want {
			t.Errorf("%s: recognized %d, want %d", name, got, c.want)
		}
	}
	if !IsDefaultMember(defaultMemberID, defaultClusterID, defaultPeerURL) ||
		IsDefaultMember(defaultMemberID, defaultClusterID, newURL) {
		t.Error("a default cluster's first member is not detected, or one with a different URL is")
	}
}

func TestAReaddressIncludesOnlyHostsWithFittingURLs(t *testing.T) {
	t.Parallel()
	n1 := RolloutHost{ID: "n1", Name: "n1", Manage: true, Member: true, PeerURL: "http://a:1", NewPeerURL: "http://a:2"}
	n2 := RolloutHost{ID: "n2", Name: "n2", Manage: true, Member: true, PeerURL: "http://b:1", PeerTLS: PeerTLSReady}
	n3 := RolloutHost{
		ID: "n3", Name: "n3", Manage: true, Member: true, PeerURL: "http://c:1", NewClientURL: "http://c:9",
	}
	for name, c := range map[string]struct {
		change  func(n1, n2, n3 *RolloutHost)
		named   []string
		want    string
		refusal string
	}{
		"those with a change": {want: "n1 n3"},
		"a host without one":  {named: []string{"n2"}, want: "n2"},
		"another host's URL": {
			change: func(n1, _, _ *RolloutHost) { n1.NewPeerURL = "http://b:1" }, refusal: "n1 and n2",
		},
		"another host's change": {
			change: func(_, n2, _ *RolloutHost) { n2.NewPeerURL = "http://a:2" }, refusal: "n1 and n2",
		},
		"https, all have certificates": {
			change: func(n1, _, n3 *RolloutHost) { n1.NewPeerURL, n3.PeerTLS = "https://a:2", PeerTLSReady },
			want:   "n1 n3",
		},
		"https, one has none": {
			change:  func(n1, _, n3 *RolloutHost) { n1.NewPeerURL, n3.PeerTLS = "https://a:2", PeerTLSNone },
			refusal: "the running etcd on n3 was started without",
		},
		"https, one is unknown": {
			change:  func(n1, _, _ *RolloutHost) { n1.NewPeerURL = "https://a:2" },
			refusal: "it is unknown whether etcd on n3 runs with",
		},
		"https, its certificate is unsuitable": {
			change: func(n1, _, n3 *RolloutHost) {
				n1.NewPeerURL, n1.PeerTLSProblem, n3.PeerTLS = "https://a:2", "not valid for a", PeerTLSReady
			},
			refusal: "n1: not valid for a",
		},
		"no change": {
			change:  func(n1, _, n3 *RolloutHost) { n1.NewPeerURL, n3.NewClientURL = "", "" },
			refusal: "no host's configured peer or client URL differs",
		},
	} {
		all := []RolloutHost{n1, n2, n3}
		if c.change != nil {
			c.change(&all[0], &all[1], &all[2])
		}
		hosts, refusal := RolloutHosts(all, c.named, WorkReaddress, "")
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: includes %q, want %q", name, got, c.want)
		}
		if (refusal == nil) != (c.refusal == "") || refusal != nil && !strings.Contains(refusal.Text, c.refusal) {
			t.Errorf("%s: refused with %+v, want %q", name, refusal, c.refusal)
		}
	}
}

func TestAChangedClientURLIsReportedUntilItsReaddress(t *testing.T) {
	t.Parallel()
	v := readdressView()
	v.Self.NewPeerURL, v.Self.NewClientURL, v.Self.ClientURL = "", "http://n1.new:2379", "http://n1.old:2379"
	v.Asked, v.Op, v.Lock = nil, nil, Lock{Known: true}
	if d := Decide(v); !hasCode(d.Reasons, ClientURLDiffers) || !hasCode(d.Reasons, Idle) {
		t.Errorf("%+v", d.Reasons)
	}
	const want = "etcd.clientURL is http://n1.new:2379, but this host's member is registered with " +
		"http://n1.old:2379 → "
	if text, _ := clientURLDiffers(v); !strings.HasPrefix(text, want) {
		t.Error(text)
	}
	v.Rollout = &Rollout{Work: WorkReaddress, Runs: true, Waiting: []string{"n1"}}
	if d := Decide(v); hasCode(d.Reasons, ClientURLDiffers) {
		t.Errorf("a readdress is requested: %+v", d.Reasons)
	}
}

func TestThePlanOfAReaddressListsEachHostInOrder(t *testing.T) {
	t.Parallel()
	v := readdressView()
	v.Hosts[0].Wants = "" // a dry run comes before the request
	hosts := []RolloutHost{
		{
			ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", NewPeerURL: "http://n1.new:2380",
			NewClientURL: "http://n1.new:2379",
		},
		{ID: "n3", Name: "n3", PeerURL: peerPrefix + "n3"},
		{ID: "n2", Name: "n2", PeerURL: peerPrefix + "n2", NewClientURL: "http://n2.new:2379"},
	}
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Leader = v.Cluster.Members[i].ID == 1
	}
	var got []string
	for _, s := range ReaddressPlan(v, hosts) {
		if s.Voters != 3 || s.Tolerance != 1 || s.Final {
			t.Errorf("%+v", s)
		}
		got = append(got, s.Text)
	}
	const connected = ". The hosts of all other members report that their etcd has connected to it"
	want := []string{
		"n2: etcd restarts and registers the client URL http://n2.new:2379" + connected,
		"n3: etcd restarts; its URLs are unchanged" + connected,
		"leadership is transferred from n1 to another voter",
		"n1: the peer URL in the member list changes from " + peerPrefix + "n1 to http://n1.new:2380; from here on " +
			"the host completes the change",
		"n1: etcd restarts and registers the client URL http://n1.new:2379" + connected,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMembersWithoutAHostRecordAreNamed(t *testing.T) {
	t.Parallel()
	v := readdressView()
	if got := AbsentMembers(v); len(got) != 0 {
		t.Error(got)
	}
	v.Hosts = v.Hosts[:2]
	if got := AbsentMembers(v); len(got) != 1 || got[0] != "n3" {
		t.Error(got)
	}
}

func TestAnUndoWhileAnotherVoterIsDownUpdatesOnlyTheMemberList(t *testing.T) {
	t.Parallel()
	undo := func() View {
		v := readdressView()
		verifying(&v)
		v.Self.NewPeerURL, v.Hosts[1].Answered = "http://n1.old:2380", false
		return v
	}
	down := func(v *View) {
		v.Cluster.Members[2].Live, v.Cluster.Members[2].DownFor = false, time.Minute
	}
	play(t, undo, []scene{
		{"all voters are live: etcd is restarted with the URL", nil, StepSetPhase, ""},
		{"one is down: the others are asked again", down, StepSetPhase, ""},
		{"one is down: the member list is updated", func(v *View) {
			down(v)
			v.Op.Phase = PhaseBack
		}, StepUpdateMember, ""},
		{"it is verified without a restart", func(v *View) {
			down(v)
			v.Op.Phase, v.Self.NewPeerURL, v.Unit.EnvReady = PhaseBack, "", false
		}, StepSetPhase, ""},
		{"it waits until the others are connected", func(v *View) {
			down(v)
			v.Self.NewPeerURL, v.Unit.EnvReady, v.Op.WrittenFor = "", false, time.Hour
		}, StepNone, NotBack},
		{"the request ended before this host recorded it", func(v *View) {
			v.Asked.Seen, v.Asked.Over, v.Asked.Ended = false, true, true
			v.Hosts[1].Answered = true
		}, StepEndOp, ""},
	})
}

func TestAHostObservesAgainSoonWhileAReaddressAwaitsItsReport(t *testing.T) {
	t.Parallel()
	toLearner := func(v *View) { v.Cluster.Members[1].Learner, v.Cluster.Members[1].Leader = true, false }
	for name, c := range map[string]struct {
		change func(v *View)
		want   time.Duration
	}{
		"before the restart":                         {func(*View) {}, lookSoon},
		"after the restart":                          {func(v *View) { v.Op.Phase = PhaseVerify }, lookSoon},
		"it has published its report":                {func(v *View) { v.Hosts[1].Answered = true }, 0},
		"its etcd has not connected for a long time": {func(v *View) { v.Op.WrittenFor = v.Limits.TransferTimeout }, 0},
		"no report is awaited":                       {func(v *View) { v.Op.Phase = PhaseDown }, 0},
		"another kind of work":                       {func(v *View) { v.Op.Work = WorkRestart }, 0},
		"steps are paused":                           {func(v *View) { v.Pause = &Pause{} }, 0},
		"it waits for its own readdress": {func(v *View) {
			v.Asked = readdressView().Asked
			v.Asked.Begun, v.Asked.Seen = false, false
		}, lookSoon},
		"a learner, before": {toLearner, 0},
		"a learner, after":  {func(v *View) { toLearner(v); v.Op.Phase = PhaseVerify }, lookSoon},
	} {
		v := readdressView()
		v.Self.ID, v.Self.Name, v.Self.PeerURL, v.Self.NewPeerURL = "n2", "n2", peerPrefix+"n2", ""
		v.Asked, v.Lock = nil, Lock{Known: true, Held: true, Holder: "n1", Token: 7}
		v.Hosts[0].Own, v.Hosts[1].Own, v.Hosts[1].Answered = false, true, false
		c.change(&v)
		if d := Decide(v); d.Again != c.want {
			t.Errorf("%s: it observes again in %s, want %s: %v", name, d.Again, c.want, d.Reasons)
		}
	}
}

func TestAHostReturnsFromMaintenanceAlthoughItsConfiguredURLAwaitsAReaddress(t *testing.T) {
	t.Parallel()
	over := func() View {
		v := readdressView()
		v.Op.Work, v.Asked.Work, v.Op.Phase, v.Op.PeerURL = WorkMaintenance, WorkMaintenance, PhaseDown, ""
		v.Asked.Stopped, v.Asked.Ended, v.Asked.Over, v.Asked.OverFor = true, true, true, time.Minute
		v.Unit.State, v.Data = UnitInactive, Data{State: DataMember, MemberID: 1, ClusterID: clusterID}
		v.Self.Conflict = Conflict(v)
		return v
	}
	play(t, over, []scene{
		{"etcd starts at the registered URL", nil, StepStartUnit, ""},
		{"another host has the same name", func(v *View) {
			v.Hosts[1].Name = v.Self.Name
			v.Self.Conflict = Conflict(*v)
		}, StepNone, HostConflict},
		{"the operation is a readdress to the URL of another member", func(v *View) {
			v.Op.Work, v.Asked.Work = WorkReaddress, WorkReaddress
			v.Self.NewPeerURL = v.Cluster.Members[1].PeerURL
			v.Self.Conflict = Conflict(*v)
		}, StepNone, HostConflict},
		{"there is no operation in flight", func(v *View) { v.Op, v.Asked = nil, nil }, StepReleaseLock, ""},
	})
}

func TestALeaderTransfersLeadershipAlthoughItsConfiguredURLAwaitsAReaddress(t *testing.T) {
	t.Parallel()
	slow := func() View {
		v := slowLeader()
		v.Hosts[0].Own, v.Self.NewPeerURL = true, newURL
		v.Self.Conflict = Conflict(v)
		return v
	}
	if v := slow(); v.Self.Conflict == "" {
		t.Fatal("the configured URL is no conflict")
	}
	play(t, slow, []scene{
		{"only the URL differs", nil, StepLeaderStepsDown, ""},
		{"the URL is another member's", func(v *View) {
			v.Self.NewPeerURL = v.Cluster.Members[1].PeerURL
			v.Self.Conflict = Conflict(*v)
		}, StepLeaderStepsDown, ""},
		{"another host has the same name", func(v *View) {
			v.Hosts[1].Name = v.Self.Name
			v.Self.Conflict = Conflict(*v)
		}, StepNone, HostConflict},
	})
}

func TestAVoterEndsAnOrphanedOperationAlthoughItsConfiguredURLAwaitsAReaddress(t *testing.T) {
	t.Parallel()
	v := restingVoter()
	v.Lock, v.Self.NewPeerURL = Lock{Known: true}, newURL
	v.Op = &Op{
		Kind: KindJoin, Host: "gone", HostName: "gone", Phase: PhaseAdded, Token: 3, MemberID: 9,
		PeerURL: peerPrefix + "gone", OrphanedFor: 2 * v.Limits.OrphanGrace,
	}
	for i := range v.Hosts {
		v.Hosts[i].Own = v.Hosts[i].ID == v.Self.ID
	}
	if v.Self.Conflict = Conflict(v); v.Self.Conflict == "" {
		t.Fatal("the configured URL is no conflict")
	}
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Errorf("%s: %v", d.Step, d.Reasons)
	}
}

func TestAReaddressThatNeedsARestartWithTwoVotersStatesTheWayBack(t *testing.T) {
	t.Parallel()
	v := readdressView()
	v.Op.Phase, v.Op.WrittenFor, v.Op.PeerURL = PhaseVerify, v.Limits.ReturnMax+time.Second, v.Self.PeerURL
	v.Self.PeerURL, v.Self.NewPeerURL = newURL, ""
	v.Cluster.Members[0].PeerURL, v.Hosts[0].PeerURL = newURL, newURL
	v.Cluster.Members, v.Hosts = v.Cluster.Members[:2], v.Hosts[:2]
	v.Hosts[1].Answered = false
	d := Decide(v)
	if len(d.Reasons) == 0 || d.Step.Kind != StepNone ||
		!strings.HasSuffix(d.Reasons[0].Text, "set etcd.peerURL to the URL at which etcd listens, and reload quorumd") {
		t.Errorf("%s: %v", d.Step, d.Reasons)
	}
	v.Unit.EnvReady = true // this agent has started etcd with the new URL
	if d := Decide(v); len(d.Reasons) == 0 || strings.Contains(d.Reasons[0].Text, "→") {
		t.Errorf("after the restart: %s: %v", d.Step, d.Reasons)
	}
}

func TestAVoterRemovesAnUnhealthySurplusVoterAlthoughItsConfiguredURLAwaitsAReaddress(t *testing.T) {
	t.Parallel()
	pending := func(v View) View {
		for i := range v.Hosts {
			v.Hosts[i].Own = v.Hosts[i].ID == v.Self.ID
		}
		v.Self.NewPeerURL = newURL
		v.Self.Conflict = Conflict(v)
		return v
	}
	begin := func() View { return pending(deadOfFour()) }
	play(t, begin, []scene{
		{"it begins", nil, StepTakeLock, ""},
		{"another host has the same name", func(v *View) {
			v.Hosts[1].Name = v.Self.Name
			v.Self.Conflict = Conflict(*v)
		}, StepNone, HostConflict},
	})
	removing := func() View { return pending(removingSurplus(PhaseRemoving)()) }
	play(t, removing, []scene{
		{"it continues", nil, StepRemoveMember, ""},
		{
			"the operation is a replacement by this host",
			func(v *View) { v.Op.Target = RoleVoter }, StepNone, HostConflict,
		},
	})
}
