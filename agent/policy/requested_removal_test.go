// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// removalView returns the view of spare n3 with a request to remove voter v3, which has not answered for an hour. There
// are three voters.
func removalView() View {
	v := spareView()
	v.Target.Standbys = 0 // so that the spare has nothing else to do
	dead := voter(9, "v3")
	dead.Live, dead.LiveFor, dead.SteadyFor, dead.DownFor = false, 0, 0, time.Hour
	v.Cluster.Members = append(v.Cluster.Members, dead)
	v.Removal = &Removal{MemberID: 9, By: "root", Reason: "scrapped"}
	return v
}

func aliveAgain(v *View) {
	m := &v.Cluster.Members[2]
	m.Live, m.LiveFor, m.DownFor = true, time.Hour, 0
	v.Hosts = append(v.Hosts, ready("v3", RoleVoter))
}

// inRemoval puts the removal in flight, with the lock held by this host.
func inRemoval(v *View, phase OpPhase) {
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 5}
	v.Op = &Op{
		Kind: KindRemove, Host: "n3", HostName: "n3", Phase: phase, Token: 5, MemberID: 9, SameBoot: true,
		Reason: "scrapped",
	}
}

func TestAMemberIsRemovedStepByStep(t *testing.T) {
	t.Parallel()
	v := removalView()
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Fatalf("at first %+v", d)
	}
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 5}
	if d := Decide(v); d.Step.Kind != StepBeginRemoval || d.Step.MemberID != 9 {
		t.Fatalf("under the lock %+v", d)
	}
	inRemoval(&v, PhaseBegun)
	if d := Decide(v); d.Step.Kind != StepSetPhase || d.Step.Phase != PhaseRemoving {
		t.Fatalf("when it has begun %+v", d)
	}
	inRemoval(&v, PhaseRemoving)
	if d := Decide(v); d.Step.Kind != StepRemoveMember || d.Step.MemberID != 9 {
		t.Fatalf("when the removal may be sent to etcd %+v", d)
	}
	v.Cluster.Members = v.Cluster.Members[:2]
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != Removed {
		t.Fatalf("when the member is removed %+v", d)
	}
}

func TestTheVetoesOfARemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   ReasonCode // empty if the member is removed
	}{
		"nothing":    {func(*View) {}, ""},
		"it answers": {aliveAgain, MemberLive},
		"it has only just stopped answering": {func(v *View) {
			v.Cluster.Members[2].DownFor = 3 * time.Second
		}, MemberLive},
		"it answers, and may be removed": {func(v *View) { aliveAgain(v); v.Removal.Live = true }, ""},
		"it answers, and another is down": {func(v *View) {
			aliveAgain(v)
			v.Removal.Live = true
			v.Cluster.Members[1].Live = false
		}, QuorumAtRisk},
		"it answers, and another is slow": {func(v *View) {
			aliveAgain(v)
			v.Removal.Live = true
			v.Hosts[1].Health = health.Slow
		}, QuorumAtRisk},
		"another voter is slow":         {func(v *View) { v.Hosts[1].Health = health.Slow }, ""},
		"another voter is down":         {func(v *View) { v.Cluster.Members[1].Live = false }, QuorumAtRisk},
		"another voter of five is down": {func(v *View) { v.Cluster.Members[1].Live = false; addVoters(v, 2) }, ""},
		"two more voters of five are down": {func(v *View) {
			v.Cluster.Members[0].Live, v.Cluster.Members[1].Live = false, false
			addVoters(v, 2)
		}, QuorumAtRisk},
		"it is a learner": {func(v *View) { aliveAgain(v); v.Cluster.Members[2].Learner = true }, ""},
		"it is a learner, a voter is down": {func(v *View) {
			v.Cluster.Members[2].Learner = true
			v.Cluster.Members[1].Live = false
		}, ""},
		"it is the only voter": {func(v *View) {
			aliveAgain(v)
			v.Removal.Live = true
			v.Cluster.Members = v.Cluster.Members[2:]
		}, QuorumAtRisk},
		"an operation is in flight": {func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4"}
		}, OperationInFlight},
		"another agent holds the lock":     {func(v *View) { v.Lock.Held, v.Lock.Holder = true, "n1" }, LockHeld},
		"the member list has just changed": {func(v *View) { v.Cluster.StableFor = time.Second }, Settling},
		"an operation has just ended":      {func(v *View) { v.IdleFor = 0 }, ""},
		"the cluster is paused":            {func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} }, Paused},
		"the agent only observes":          {func(v *View) { v.Self.Mode = Observe }, ModeObserve},
		"another host has this one's name": {func(v *View) { v.Self.Conflict = "n9" }, HostConflict},
		"this host has a request, too": {func(v *View) {
			v.Asked = &Asked{
				Request: Request{Work: WorkRestart, Begun: true},
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := removalView()
			c.change(&v)
			switch d := Decide(v); {
			case c.want == "" && d.Step.Kind != StepTakeLock:
				t.Errorf("it is not removed: %+v", d)
			case c.want != "" && (d.Step.Kind != StepNone || d.Reasons[0].Code != c.want):
				t.Errorf("got %+v, want %s", d, c.want)
			}
		})
	}
}

func addVoters(v *View, n uint64) {
	for i := range n {
		v.Cluster.Members = append(v.Cluster.Members, voter(20+i, fmt.Sprintf("w%d", i)))
	}
}

func TestARemovalEndsBeforeItIsSentIfConditionsHaveChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   ReasonCode
	}{
		"the voter answers again":      {aliveAgain, MemberLive},
		"another voter is down":        {func(v *View) { v.Cluster.Members[1].Live = false }, QuorumAtRisk},
		"its request has expired":      {func(v *View) { v.Removal.Expired = true }, Cancelled},
		"another removal is requested": {func(v *View) { v.Removal.MemberID = 2 }, OperationRejected},
		"it was not requested":         {func(v *View) { v.Removal = nil }, OperationRejected},
		"leadership cannot be transferred": {func(v *View) {
			leads(v)
			v.Failed.Kind, v.Op.WrittenFor = StepTransferLeadership, time.Hour
		}, LeadershipNotTransferred},
	} {
		v := removalView()
		inRemoval(&v, PhaseBegun)
		c.change(&v)
		if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != c.want {
			t.Errorf("%s: got %+v, want the end with %s", name, d, c.want)
		}
	}
}

func TestARemovalWaitsUntilAVoterIsSilentForLongEnough(t *testing.T) {
	t.Parallel()
	v := removalView()
	inRemoval(&v, PhaseBegun)
	v.Cluster.Members[2].DownFor = 3 * time.Second // a restart of this agent resets its durations
	d := Decide(v)
	if d.Step.Kind != StepNone || len(d.Reasons) != 1 || d.Reasons[0].Code != MemberLive {
		t.Fatalf("silent for 3 s: got %+v", d)
	}
	v.Cluster.Members[2].DownFor = v.Limits.LockTTL
	if d := Decide(v); d.Step.Kind != StepSetPhase {
		t.Fatalf("silent for the lock's time to live: got %+v", d)
	}
}

// leads makes the member to be removed live and the leader.
func leads(v *View) {
	aliveAgain(v)
	v.Removal.Live = true
	v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
}

func TestLeadershipIsTransferredFromAMemberBeforeItsRemoval(t *testing.T) {
	t.Parallel()
	v := removalView()
	inRemoval(&v, PhaseBegun)
	leads(&v)
	if d := Decide(v); d.Step.Kind != StepTransferLeadership || d.Step.MemberID == 9 || d.Step.MemberID == 0 {
		t.Errorf("got %+v", d)
	}
}

func TestARemovalThatEtcdMayHaveReceivedIsNotAbandoned(t *testing.T) {
	t.Parallel()
	v := removalView()
	inRemoval(&v, PhaseRemoving)
	aliveAgain(&v)
	v.Removal.Expired = true
	if d := Decide(v); d.Step.Kind != StepRemoveMember {
		t.Errorf("it answers again: %+v", d)
	}
	v.Cluster.Members[1].Live = false // without this voter, the member is needed for quorum
	if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != QuorumAtRisk {
		t.Errorf("the member is needed for quorum: %+v", d)
	}
}

func TestAnUnrequestedRemovalIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	v := removalView()
	inRemoval(&v, PhaseRemoving)
	v.Removal = nil
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != OperationRejected {
		t.Errorf("its own host, without a request on disk: %+v", d)
	}
}

func TestOnlyItsOwnHostContinuesARemovalThatEtcdMayHaveReceived(t *testing.T) {
	t.Parallel()
	v := removalView()
	inRemoval(&v, PhaseRemoving)
	v.Removal = nil
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
	v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
	v.Unit = Unit{State: UnitActive, Since: time.Hour}
	v.Lock, v.Op.OrphanedFor = Lock{Known: true}, time.Hour
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("the removal may have been sent: %+v", d)
	}
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 8}
	if d := Decide(v); d.Step.Kind != StepReleaseLock {
		t.Errorf("the removal may have been sent, and the lock is held for something else: %+v", d)
	}
	v.Op.Phase = PhaseBegun
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != Orphaned {
		t.Errorf("the removal was not sent: %+v", d)
	}
	v.Op.Phase, v.Cluster.Members = PhaseRemoving, v.Cluster.Members[:2]
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != Removed {
		t.Errorf("it is removed: %+v", d)
	}
	v.Lock, v.Op.OrphanedFor = Lock{Known: true}, 0
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("within the grace time: %+v", d)
	}
}

func TestARemovalRequestEndsWhenDoneOrReleasedOrExpired(t *testing.T) {
	t.Parallel()
	const released = "its operation was released, deleted or ended by another host, or etcd did not confirm that " +
		"it had begun"
	gone := func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }
	over := func(v *View) { v.Removal.Expired = true }
	begun := func(v *View) { v.Removal.Begun = true }
	for name, c := range map[string]struct {
		change []func(v *View)
		want   RemovalNote
	}{
		"it waits":            {nil, RemovalNote{}},
		"there is no request": {[]func(v *View){gone, func(v *View) { v.Removal = nil }}, RemovalNote{}},
		"it is removed": {
			[]func(v *View){gone}, RemovalNote{true, Removed, "it is no longer in the member list"},
		},
		"it is removed, and its request has expired": {
			[]func(v *View){gone, over, begun}, RemovalNote{true, Removed, "it is no longer in the member list"},
		},
		"its request has expired": {
			[]func(v *View){over}, RemovalNote{true, Cancelled, "it expired before it could begin"},
		},
		"its request has expired, and a veto holds": {
			[]func(v *View){over, func(v *View) { v.Pause = &Pause{By: "root", Reason: "lunch"} }},
			RemovalNote{true, Cancelled, "it expired before it could begin; PAUSED: by root: lunch"},
		},
		"its operation is gone": {[]func(v *View){begun}, RemovalNote{true, Cancelled, released}},
		"its operation is gone, and its request has expired": {
			[]func(v *View){begun, over}, RemovalNote{true, Cancelled, released},
		},
		"its operation is in flight": {
			[]func(v *View){begun, over, func(v *View) { inRemoval(v, PhaseBegun) }}, RemovalNote{},
		},
		"another host removes a member": {
			[]func(v *View){begun, func(v *View) { inRemoval(v, PhaseBegun); v.Op.Host = "n1" }},
			RemovalNote{true, Cancelled, released},
		},
		"this host joins": {
			[]func(v *View){begun, func(v *View) { inRemoval(v, PhaseBegun); v.Op.Kind = KindJoin }},
			RemovalNote{true, Cancelled, released},
		},
		"no voter answers": {
			[]func(v *View){over, begun, gone, func(v *View) { v.Cluster.Reachable = false }}, RemovalNote{},
		},
		"the observation was carried over": {
			[]func(v *View){over, begun, gone, func(v *View) { v.Cluster.Fresh = false }}, RemovalNote{},
		},
		"the operation is unreadable": {
			[]func(v *View){over, begun, gone, func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordOp}} }},
			RemovalNote{},
		},
		"another record is unreadable": {
			[]func(v *View){gone, func(v *View) { v.Unreadable = []Unreadable{{Kind: RecordHost}} }},
			RemovalNote{true, Removed, "it is no longer in the member list"},
		},
		"another cluster does not list it": {
			[]func(v *View){gone, func(v *View) { v.Cluster.ExpectedID = 9 }}, RemovalNote{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := removalView()
			v.Cluster.Fresh = true
			for _, change := range c.change {
				change(&v)
			}
			if got := Decide(v).Notes.Removal; got != c.want {
				t.Errorf("the note is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestARemovalWithoutItsOperationDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	v := removalView()
	v.Removal.Begun = true
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("it begins again: %+v", d)
	}
}

func TestAHostAcceptsARemovalOnlyIfItCouldBegin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(v *View)
		member  uint64
		bare    bool
		code    ReasonCode
		refusal string // part of the refusal; empty if the removal is accepted
	}{
		"a voter that is gone":    {member: 9},
		"on a host that observes": {func(v *View) { v.Self.Mode = Observe }, 9, false, ModeObserve, "only observes"},
		"no voter answers": {
			func(v *View) { v.Cluster.Reachable = false }, 9, false, ClusterUnreachable, "cannot be",
		},
		"another cluster answers": {
			func(v *View) { v.Cluster.ExpectedID = 1 }, 9, false, ClusterUnreachable, "cannot be",
		},
		"the cluster is paused": {
			func(v *View) { v.Pause = &Pause{"bob", "a move"} }, 9, false, Paused, "by bob: a move",
		},
		"this host's own member": {
			func(v *View) { v.Self.PeerURL = peerPrefix + "v3" }, 9, false, "", "own member",
		},
		"without a snapshot":               {liveAndStored, 9, false, SnapshotFirst, "no snapshot yet"},
		"without a snapshot, as requested": {liveAndStored, 9, true, "", ""},
	} {
		v := removalView()
		if c.change != nil {
			c.change(&v)
		}
		got := AgainstRemovals(v)
		if got == nil {
			got = AgainstRemoval(v, Removal{MemberID: c.member, Live: true}, c.bare)
		}
		if (got == nil) != (c.refusal == "") ||
			got != nil && (got.Code != c.code || !strings.Contains(got.Text, c.refusal)) {
			t.Errorf("%s: %+v, want %q", name, got, c.refusal)
		}
	}
}

func liveAndStored(v *View) { aliveAgain(v); v.Backup.HasStore = true }

func TestAnotherRemovalReplacesOnlyAnExpiredIdleOne(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		for _, runs := range []bool{false, true} {
			r := Removal{MemberID: 9, Expired: over}
			if r.Against(9, runs) != nil {
				t.Errorf("expired %t, in flight %t: a request for the same member is refused", over, runs)
			}
			if got := r.Against(2, runs) == nil; got != (over && !runs) {
				t.Errorf("expired %t, in flight %t: replaced %t", over, runs, got)
			}
		}
	}
}

func TestARemovalEndsWhenTheRetirementToWhichItBelongsIsUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		ends   bool
	}{
		"undone":              {func(*View) {}, true},
		"the host is retired": {func(v *View) { v.Retired = []Retired{{Host: "v3", PeerURL: "x"}} }, false},
		"the view may be older than the retirement": {
			func(v *View) { v.Removal.AskedFor = v.Limits.Settle - 1 }, false,
		},
		"it belongs to no retirement": {func(v *View) { v.Removal.Retires = "" }, false},
	} {
		v := removalView()
		v.Cluster.Fresh = true
		v.Removal.Retires, v.Removal.AskedFor = "v3", time.Minute
		c.change(&v)
		d := Decide(v)
		if note := d.Notes.Removal; note.Ends != c.ends || c.ends && note.Code != Cancelled {
			t.Errorf("%s: %+v", name, note)
		}
		if takes := d.Step.Kind == StepTakeLock; takes == c.ends {
			t.Errorf("%s: %+v", name, d.Step)
		}
		inRemoval(&v, PhaseBegun)
		if step := Decide(v).Step; (step.Kind == StepEndOp && step.Outcome == Cancelled) != c.ends {
			t.Errorf("%s, in flight: %+v", name, step)
		}
		inRemoval(&v, PhaseRemoving)
		if step := Decide(v).Step; step.Kind != StepRemoveMember {
			t.Errorf("%s, after it may have been sent: %+v", name, step)
		}
	}
}
