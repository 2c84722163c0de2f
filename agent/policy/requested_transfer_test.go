// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// asksTransfer returns the view of n1, which leads three healthy voters and is to transfer leadership to n2.
func asksTransfer() View {
	v := restingVoter()
	v.Hosts[2].Role = RoleVoter
	v.Health.State = health.OK
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Leader = i == 0
	}
	v.TransferAsked = &TransferRequest{MemberID: 2, By: "root", Reason: "a test"}
	return v
}

// ledBy makes the member with that index the only leader.
func ledBy(n int) func(v *View) {
	return func(v *View) {
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Leader = i == n
		}
	}
}

func lockIsMine(v *View) {
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
}

func TestLeadershipIsTransferredOnRequestUnderTheLock(t *testing.T) {
	t.Parallel()
	asked := func(change func(r *TransferRequest)) func(v *View) {
		return func(v *View) {
			r := *v.TransferAsked
			change(&r)
			v.TransferAsked = &r
		}
	}
	both := func(list ...func(v *View)) func(v *View) {
		return func(v *View) {
			for _, change := range list {
				change(v)
			}
		}
	}
	play(t, asksTransfer, []scene{
		{"it takes the lock first", nil, StepTakeLock, ""},
		{"it has the lock, and transfers leadership", lockIsMine, StepTransferLeadership, ""},
		{"another voter may lead", both(lockIsMine, ledBy(2)), StepTransferLeadership, ""},
		{"the voter leads already", ledBy(1), StepNone, Idle},
		{"it releases the lock when the voter leads", both(lockIsMine, ledBy(1)), StepReleaseLock, ""},
		{"the request has expired", asked(func(r *TransferRequest) { r.Expired = true }), StepNone, Idle},
		{"the request names no member", asked(func(r *TransferRequest) { r.MemberID = 99 }), StepNone, Idle},
		{"the request names a learner", func(v *View) { v.Cluster.Members[1].Learner = true }, StepNone, Idle},
		{"a pause", func(v *View) { v.Pause = &Pause{By: "root"} }, StepNone, Idle},
		{"this host only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, Idle},
		{
			"another host holds the lock", func(v *View) {
				v.Lock = Lock{
					Known: true, Held: true, Holder: "n2",
				}
			}, StepNone,
			Idle,
		},
		{
			"an operation is in flight", func(v *View) {
				v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseBegun}
			}, StepNone, OperationInFlight,
		},
		{"the voter is down", func(v *View) { v.Cluster.Members[1].Live = false }, StepNone, VoterNotLive},
		{"the voter's host is slow", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, Idle},
		{"the voter's host is warm", func(v *View) { v.Hosts[1].Health = health.Warm }, StepNone, Idle},
		{
			"the health of the voter's host is unknown",
			func(v *View) { v.Hosts[1].Health = health.Unknown }, StepNone, Idle,
		},
		{"the voter is behind", func(v *View) { v.Cluster.Members[1].BehindFor = time.Hour }, StepNone, Idle},
		{"the voter's host is in an operation", func(v *View) { v.Hosts[1].InOperation = true }, StepNone, Idle},
		{"the voter's host is to be taken down", func(v *View) { v.Hosts[1].Wants = WorkReboot }, StepNone, Idle},
		{"a CORRUPT alarm is no veto", func(v *View) { v.Cluster.Intact = false }, StepTakeLock, ""},
	})
}

func TestARequestedTransferEndsWhenItsVoterLeadsOrItExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		ends   bool
		code   ReasonCode
		text   string
	}{
		"another leads":    {nil, false, "", ""},
		"it leads":         {ledBy(1), true, "", "leads"},
		"it is not listed": {func(v *View) { v.TransferAsked.MemberID = 99 }, true, OperationRejected, "not a voter"},
		"it expired": {
			func(v *View) { v.TransferAsked.Expired = true }, true, LeadershipNotTransferred, "it expired: ",
		},
		"the request expired during a pause": {func(v *View) {
			v.TransferAsked.Expired, v.Pause = true, &Pause{By: "root", Reason: "lunch"}
		}, true, Paused, "it expired: by root: lunch"},
		"the request expired while the voter is down": {func(v *View) {
			v.TransferAsked.Expired, v.Cluster.Members[1].Live = true, false
		}, true, VoterNotLive, "does not answer"},
		"etcd refused it": {func(v *View) {
			v.TransferAsked.Expired = true
			v.Failed = FailedStep{Kind: StepTransferLeadership, Text: "etcd timed out"}
		}, true, LeadershipNotTransferred, "etcd timed out"},
		"the cluster does not answer": {func(v *View) { v.Cluster = Cluster{} }, false, "", ""},
		"it expired, and the cluster does not answer": {func(v *View) {
			v.Cluster = Cluster{}
			v.TransferAsked.Expired = true
		}, true, ClusterUnreachable, "it expired"},
		"there is none": {func(v *View) { v.TransferAsked = nil }, false, "", ""},
	} {
		v := asksTransfer()
		if c.change != nil {
			c.change(&v)
		}
		got := Decide(v).Notes.Transfer
		if got.Ends != c.ends || got.Code != c.code || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestARequestedTransferIsRefusedWithItsRemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host   string
		change func(v *View)
		want   string // part of the refusal; empty if the request is accepted
		to     uint64
	}{
		"by name":    {"n2", nil, "", 2},
		"the best":   {"", func(v *View) { v.Hosts[1].Health = health.Warm }, "", 3},
		"the leader": {"n1", nil, "", 1},
		"unknown":    {"n9", nil, "no member has that name", 0},
		"no quorum":  {"n2", func(v *View) { v.Cluster.Reachable = false }, "cannot be reached", 0},
		"paused":     {"n2", func(v *View) { v.Pause = &Pause{By: "root"} }, "paused by root", 0},
		"observes":   {"n2", func(v *View) { v.Self.Mode = Observe }, "only observes", 0},
		"recovering": {"n2", func(v *View) { v.Recovery = &Recovery{} }, "a recovery plan", 2},
		"down":       {"n2", func(v *View) { v.Cluster.Members[1].Live = false }, "voter n2 does not answer", 2},
		"slow":       {"n2", func(v *View) { v.Hosts[1].Health = health.Slow }, "voter n2 is SLOW", 2},
		"behind": {
			"n2", func(v *View) { v.Cluster.Members[1].BehindFor = time.Hour }, "entries behind the leader",
			2,
		},
		"in operation": {"n2", func(v *View) { v.Hosts[1].InOperation = true }, "an operation of its own", 2},
		"retired": {"n2", func(v *View) {
			v.Retired = []Retired{{Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2}}
		}, "its host is retired", 2},
		"queued":    {"n2", func(v *View) { v.Hosts[1].Wants = WorkReboot }, "will be taken down", 2},
		"lock held": {"n2", func(v *View) { v.Lock = Lock{Known: true, Held: true, Holder: "n3"} }, "held by n3", 2},
		"operation": {"n2", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseBegun}
		}, "join of n9 is in phase begun", 2},
		"the only other voter is slow": {"", func(v *View) { v.Hosts[2].Health = health.Slow }, "", 2},
		"none is better": {"", func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Slow, health.Slow
		}, "no other voter is fit to lead now", 0},
		"a learner": {"n2", func(v *View) { v.Cluster.Members[1].Learner = true }, "n2 is not a voter", 0},
		"alone":     {"", func(v *View) { v.Cluster.Members = v.Cluster.Members[:1] }, "there is no other voter", 0},
	} {
		v := asksTransfer()
		v.TransferAsked = nil
		if c.change != nil {
			c.change(&v)
		}
		m, r := TransferTarget(v, c.host)
		switch {
		case c.want == "" && (r != nil || m.ID != c.to):
			t.Errorf("%s: member %d, refused with %+v", name, m.ID, r)
		case c.want != "" && (r == nil || !strings.Contains(r.Text, c.want) || r.Hint == ""):
			t.Errorf("%s: refused with %+v, want %q and a remedy", name, r, c.want)
		}
	}
}

func TestThePlanOfATransferIsOneStepThatKeepsTheFaultTolerance(t *testing.T) {
	t.Parallel()
	v := asksTransfer()
	steps, warnings := TransferPlan(v, v.Cluster.Members[1])
	if len(steps) != 1 || steps[0].Voters != 3 || steps[0].Tolerance != 1 || steps[0].Final || len(warnings) != 1 ||
		!strings.Contains(steps[0].Text, "from n1 to n2") || !strings.Contains(warnings[0], "retry") {
		t.Errorf("%+v, %v", steps, warnings)
	}
	if steps, warnings = TransferPlan(v, v.Cluster.Members[0]); len(steps)+len(warnings) != 0 {
		t.Errorf("the leader leads already: %+v, %v", steps, warnings)
	}
}
