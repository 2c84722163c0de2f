// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// leaderlessView is downView of an interruptible maintenance after the quorum was lost: n1 answers, but has no leader.
func leaderlessView() View {
	v := downView()
	v.Asked.Interruptible, v.Asked.Seen = true, true
	v.Op, v.Lock = nil, Lock{}
	v.Cluster = Cluster{
		Fresh: true, ExpectedID: clusterID, Error: "n1 answers; n2 does not",
		Leaderless: "n1 answers, but has no leader", LeaderlessFor: v.Limits.Settle,
	}
	return v
}

// fiveView is downView of an interruptible maintenance in a cluster of five voters, while one more voter is down.
func fiveView() View {
	v := downView()
	v.Asked.Interruptible, v.Asked.Seen = true, true
	v.Cluster.Fresh = true
	v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"), voter(5, "n5"))
	v.Hosts = append(v.Hosts, ready("n4", RoleVoter), ready("n5", RoleVoter))
	v.Cluster.Members[3].Live, v.Cluster.Members[3].DownFor = false, v.Limits.Settle
	return v
}

func TestWorkIsCalledOffOnlyOnEvidenceThatTheClusterNeedsTheHost(t *testing.T) {
	t.Parallel()
	play(t, leaderlessView, []scene{
		{name: "without a quorum", reason: Recalled},
		{name: "without a quorum for less than the settle time", reason: InMaintenance, change: func(v *View) {
			v.Cluster.LeaderlessFor--
		}},
		{name: "no member answers", reason: InMaintenance, change: func(v *View) { v.Cluster.Leaderless = "" }},
		{name: "the work is not interruptible", reason: InMaintenance, change: func(v *View) {
			v.Asked.Interruptible = false
		}},
		{name: "the work is not interruptible, and overdue", reason: MaintenanceOverdue, change: func(v *View) {
			v.Asked.Interruptible, v.Asked.Overdue = false, true
		}},
		{name: "in observe mode", reason: InMaintenance, change: func(v *View) { v.Self.Mode = Observe }},
		{name: "another host has this host's name", reason: InMaintenance, change: func(v *View) {
			v.Self.Conflict = "host n4 has the same name, n3"
		}},
		{name: "it was called off already", step: StepStartUnit, change: calledOff},
		{name: "it was called off, and the data was not read since", reason: DataNotKnown, change: func(v *View) {
			calledOff(v)
			v.Data.Age = time.Minute
		}},
		{name: "a reboot that was not requested yet", step: StepStartUnit, change: func(v *View) {
			v.Asked.Work, v.Asked.Interruptible = WorkReboot, false
		}},
		{name: "a reboot that was requested", reason: RebootAwaited, change: func(v *View) {
			v.Asked.Work, v.Asked.Interruptible, v.Asked.RebootFor = WorkReboot, false, 0
		}},
	})
	play(t, fiveView, []scene{
		{name: "with five voters and a fault tolerance of 0", reason: Recalled},
		{
			name: "the other voter is down for less than the settle time", reason: InMaintenance,
			change: func(v *View) { v.Cluster.Members[3].DownFor-- },
		},
		{name: "another host reaches the other voter", reason: InMaintenance, change: func(v *View) {
			v.Hosts[1].Sees = []record.Reachability{{MemberID: 4, Peer: record.PortAnswers}}
		}},
		{name: "no other host reaches the other voter", reason: Recalled, change: func(v *View) {
			v.Hosts[1].Sees = []record.Reachability{{MemberID: 4, LostSince: lostOn}}
		}},
		{name: "this host's data is not the member's", reason: InMaintenance, change: func(v *View) {
			v.Data.MemberID = 9
		}},
		{name: "the cluster was observed in an earlier round", reason: InMaintenance, change: func(v *View) {
			v.Cluster.Fresh = false
		}},
		{name: "only this host is down", reason: InMaintenance, change: func(v *View) {
			v.Cluster.Members[3] = voter(4, "n4")
		}},
		{name: "this host does not reach the others", reason: InMaintenance, change: func(v *View) {
			for i := range v.Cluster.Members {
				v.Cluster.Members[i].Live, v.Cluster.Members[i].DownFor = false, time.Hour
			}
		}},
		{name: "a reboot", reason: Recalled, change: func(v *View) {
			v.Asked.Work, v.Asked.Interruptible = WorkReboot, false
		}},
		{name: "a reboot by another program", reason: RebootAwaited, change: func(v *View) {
			v.Asked.Work, v.Asked.External = WorkReboot, true
		}},
		{name: "it was called off already", step: StepStartUnit, change: calledOff},
	})
}

func calledOff(v *View) {
	v.Asked.Recalled, v.Asked.Over, v.Asked.OverFor = "no quorum: n1 answers, but has no leader", true, time.Second
	v.Data.Age = 0
}

func TestAnOutageCountsOnlyBeyondThePlannedWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, live int
		want         bool
	}{
		{3, 2, false},
		{3, 1, false}, // impossible after a linearizable read; NoQuorumWithout covers the loss of the quorum
		{5, 4, false},
		{5, 3, true},
		{5, 2, false},
		{7, 6, false},
		{7, 5, false},
		{7, 4, true},
		{4, 3, false},
		{1, 0, false},
	} {
		if got := outagePastWork(c.voters, c.live); got != c.want {
			t.Errorf("%d of %d voters are live: %t", c.live, c.voters, got)
		}
	}
}

func TestAHostRecordsThatItsWorkIsCalledOff(t *testing.T) {
	t.Parallel()
	want := RequestNote{RequestRecalled, Recalled, "no quorum: n1 answers, but has no leader", GuardUnchanged}
	if got := Decide(leaderlessView()).Notes.Request; got != want {
		t.Errorf("without a quorum: %+v", got)
	}
	want.Text = "fault tolerance 0: n4 has not answered"
	if got := Decide(fiveView()).Notes.Request; got != want {
		t.Errorf("with a fault tolerance of 0: %+v", got)
	}
}

func TestAnOperationEndsAsRecalledIfItsWorkWasCalledOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		work   Work
		ended  bool
		out    ReasonCode
		change RequestChange
	}{
		{WorkMaintenance, false, Recalled, RequestEnding},
		{WorkMaintenance, true, Recalled, RequestEnding},
		{WorkReboot, false, Recalled, RequestRetried},
		{WorkReboot, true, Cancelled, RequestEnding},
	} {
		v := backView()
		v.Asked.Work, v.Asked.Interruptible, v.Asked.Ended = c.work, c.work == WorkMaintenance, c.ended
		v.Asked.Recalled, v.Asked.Over, v.Asked.Seen = "no quorum", true, true
		if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != c.out || d.Notes.Request.Change != c.change {
			t.Errorf("%+v: %+v, %+v", c, d.Step, d.Notes.Request)
		}
		v.Op, v.Lock, v.Cluster.Fresh = nil, Lock{Known: true}, true
		v.Asked.Seen = false
		if got := Decide(v).Notes.Request; got.Change != RequestEnds || got.Code != Recalled {
			t.Errorf("%+v: without its record: %+v", c, got)
		}
	}
	v := backView()
	v.Asked.Work, v.Asked.Recalled, v.Asked.Begun = WorkReboot, "", false
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != Recalled {
		t.Errorf("a reboot whose disk no longer shows that it was called off: %+v", d.Step)
	}
	v.Asked.Recalled, v.Op.SameBoot = "no quorum", false
	if d := Decide(v); d.Step.Kind != StepEndOp || d.Step.Outcome != Cycled {
		t.Errorf("a reboot that happened after it was called off: %+v", d.Step)
	}
	v = backView()
	v.Cluster.Members[2].LiveFor = 0
	v.Asked.Recalled, v.Asked.Over = "no quorum", true
	if d := Decide(v); d.Reasons[0].Code != Returning || !hasCode(d.Reasons, Recalled) {
		t.Errorf("while it comes back: %v", d.Reasons)
	}
}

func TestOnlyRebootsAndInterruptibleMaintenanceAreCalledOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request Request
		want    bool
	}{
		{Request{Work: WorkMaintenance, Interruptible: true, Stopped: true}, true},
		{Request{Work: WorkMaintenance, Stopped: true}, false},
		{Request{Work: WorkMaintenance, Interruptible: true}, false},
		{Request{Work: WorkMaintenance, Interruptible: true, Stopped: true, Ended: true}, false},
		{Request{Work: WorkReboot, Stopped: true}, true},
		{Request{Work: WorkCommand, Stopped: true}, false},
	} {
		got := c.request.CalledOff("why")
		if (got.Recalled != "") != c.want || got.Done() != (c.want || c.request.Ended) {
			t.Errorf("%+v became %+v", c.request, got)
		}
	}
	off := Request{Work: WorkMaintenance, Interruptible: true, Stopped: true}.CalledOff("why")
	if _, valid := off.StopsEtcd(); valid {
		t.Error("etcd is stopped for work that was called off")
	}
	if _, refused := off.Renewed(Request{Work: WorkMaintenance}); refused == nil {
		t.Error("work that was called off is renewed")
	}
	if off.OutlastsReboot() || off.GivenUp().Recalled != "" {
		t.Errorf("%+v", off)
	}
	again, refused := Request{Work: WorkMaintenance, Interruptible: true}.Renewed(Request{Work: WorkMaintenance})
	if refused != nil || again.Interruptible {
		t.Errorf("the last request does not decide whether the work is interruptible: %+v, %v", again, refused)
	}
	begun := Request{Work: WorkMaintenance, Begun: true}
	if _, refused := begun.Renewed(Request{Work: WorkMaintenance, Interruptible: true}); refused == nil {
		t.Error("work that has begun is made interruptible")
	}
	begun.Interruptible = true
	if next, refused := begun.Renewed(Request{Work: WorkMaintenance}); refused != nil || next.Interruptible {
		t.Errorf("work that has begun stays interruptible: %+v, %v", next, refused)
	}
}

func TestOnlyMaintenanceThatStopsEtcdIsInterruptible(t *testing.T) {
	t.Parallel()
	v := askedView()
	v.Asked = nil
	if refused := AgainstRequest(v, false, Request{Work: WorkMaintenance, Interruptible: true}, true); refused != nil {
		t.Error(refused)
	}
	for _, r := range []Request{
		{Work: WorkReboot, Interruptible: true}, {Work: WorkMaintenance, KeepRunning: true, Interruptible: true},
	} {
		if refused := AgainstRequest(v, false, r, true); refused == nil || refused.Kind != Wrong {
			t.Errorf("%+v: %+v", r, refused)
		}
	}
	v.Self.Drives = false
	r := Request{Work: WorkMaintenance, Interruptible: true}
	if refused := AgainstRequest(v, false, r, true); refused == nil || refused.Code != EtcdExternal {
		t.Errorf("with an external etcd: %+v", refused)
	}
}
