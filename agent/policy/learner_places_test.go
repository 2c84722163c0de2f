// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestAStandbyThatBecomesAPermanentLearnerReportsThatItTakesTheOnlyPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   string // part of the text; empty if nothing is reported
	}{
		"etcd's default": {
			func(v *View) { limited(v, 1) },
			"one more learner than the permanent ones (n9), --max-learners must be at least 2, and the same on every " +
				"member: 1 on n1",
		},
		"a place is left":  {func(*View) {}, ""},
		"one is smaller":   {func(v *View) { v.Cluster.Members[1].MaxLearners = 1 }, "on every member: 1 on n2"},
		"one is larger":    {func(v *View) { v.Cluster.Members[1].MaxLearners = 3 }, "differ, from 2 to 3"},
		"one is not known": {func(v *View) { v.Cluster.Members[1].MaxLearners = 0 }, ""},
		"none is known":    {func(v *View) { limited(v, 0) }, ""},
		"no permanent one": {func(v *View) { v.Self.Learner, v.Cluster.Members[3].Permanent = false, false }, ""},
		"etcd 3.5 on one":  {func(v *View) { v.Cluster.Members[0].Version = Version{3, 5, 35} }, "1 on n1"},
		"the endpoints belong to a different cluster": {func(v *View) { limited(v, 1); v.Cluster.ExpectedID = 5 }, ""},
	} {
		v := permanentView()
		c.change(&v)
		text, taken := learnerPlacesTaken(v)
		if taken != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, %t", name, text, taken)
		}
	}
	for _, v := range []View{permanentView(), seenBy(permanentView(), 1, "n1")} {
		if limited(&v, 1); v.Self.ID == "n1" {
			v.Self.Learner, v.Self.StandbyID = false, 0
		}
		d := Decide(v)
		if len(d.Reasons) < 2 || d.Reasons[0].Code != Idle || !hasCode(d.Cautions(), LearnerLimit) {
			t.Errorf("%s: %+v", v.Self.ID, d.Reasons)
		}
	}
}

// lowering returns the view of n1, which is to be readdressed, in a cluster with two learners.
func lowering(limit int) func() View {
	return func() View {
		v := readdressView()
		withPermanent(&v)
		withStandby(&v, 8, "n8")
		for i := range v.Hosts {
			v.Hosts[i].Answered = true
		}
		limited(&v, 3)
		v.Self.MaxLearners = limit
		return v
	}
}

func TestAReaddressDoesNotLowerTheLimitBelowTheListedLearners(t *testing.T) {
	t.Parallel()
	before := func(v *View) {
		v.Op, v.IdleFor, v.Lock, v.Asked.Begun, v.Asked.Seen = nil, time.Hour, Lock{Known: true}, false, false
	}
	stopped := func(v *View) {
		v.Asked.Stopped, v.Unit.State, v.Op.Phase, v.Self.NewPeerURL = true, UnitInactive, PhaseDown, ""
	}
	play(t, lowering(1), []scene{
		{"before it begins", before, StepNone, LearnerLimit},
		{"when it has begun", func(v *View) { v.Op.Phase = PhaseBegun }, StepEndOp, ""},
		{"before etcd is stopped", nil, StepNone, LearnerLimit},
		{"the operation makes way after a while", func(v *View) { v.Op.WrittenFor = time.Hour }, StepSetPhase, ""},
		{"after etcd was stopped", stopped, StepNone, LearnerLimit},
		{"an ordinary restart keeps the environment", func(v *View) {
			before(v)
			v.Asked.Work, v.Self.NewPeerURL = WorkRestart, ""
		}, StepTakeLock, ""},
	})
	play(t, lowering(2), []scene{
		{"the limit suffices before it begins", before, StepTakeLock, ""},
		{"the limit suffices", nil, StepUpdateMember, ""},
		{"the limit suffices after etcd was stopped", stopped, StepWriteEnv, ""},
	})
	v := lowering(0)()
	if text, holds := restartLowersLimit(v); holds {
		t.Errorf("the limit is unknown: %s", text)
	}
	v = lowering(1)()
	v.Op, v.Asked, v.Self.NewPeerURL = nil, nil, ""
	v.Lock = Lock{Known: true}
	if d := Decide(v); d.Step.Kind != StepNone || !hasCode(d.Cautions(), LearnerLimit) {
		t.Errorf("it is reported at rest: %+v", d)
	}
}

func TestNoRestartBeginsIfTheEnvironmentFileAllowsFewerLearnersThanAreListed(t *testing.T) {
	t.Parallel()
	restart := func(next int) func() View {
		return func() View {
			v := lowering(3)()
			v.Op, v.IdleFor, v.Lock = nil, time.Hour, Lock{Known: true}
			v.Asked.Work, v.Asked.Begun, v.Asked.Seen, v.Self.NewPeerURL = WorkRestart, false, false, ""
			v.Self.NextLearners, v.Self.NextLearnersFrom = next, "/etc/etcd.env"
			return v
		}
	}
	began := func(v *View) {
		*v = lowering(3)()
		v.Op.Work, v.Asked.Work, v.Self.NewPeerURL, v.Op.PeerURL = WorkRestart, WorkRestart, "", ""
		v.Self.NextLearners, v.Self.NextLearnersFrom = 1, "/etc/etcd.env"
	}
	play(t, restart(1), []scene{
		{"a restart", nil, StepNone, LearnerLimit},
		{"maintenance", func(v *View) { v.Asked.Work = WorkMaintenance }, StepNone, LearnerLimit},
		{"maintenance while etcd keeps running", func(v *View) {
			v.Asked.Work, v.Asked.KeepRunning = WorkMaintenance, true
		}, StepTakeLock, ""},
		{"before etcd is stopped", began, StepNone, LearnerLimit},
		{"before the operation is ready", func(v *View) { began(v); v.Op.Phase = PhaseBegun }, StepEndOp, ""},
		{"one learner is listed", func(v *View) { v.Cluster.Members = v.Cluster.Members[:4] }, StepTakeLock, ""},
	})
	for name, next := range map[string]int{"the file suffices": 2, "the file is unknown": 0} {
		v := restart(next)()
		if text, holds := restartLowersLimit(v); holds {
			t.Errorf("%s: %s", name, text)
		}
	}
	v := restart(1)()
	const want = "2 learners are listed, but /etc/etcd.env limits the next start of etcd to --max-learners 1: etcd " +
		"would not start again → set it there to the value of the other members, at least 2"
	if text, _ := restartLowersLimit(v); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if v.Asked.Hurried = true; func() bool { _, holds := restartLowersLimit(v); return holds }() {
		t.Error("a machine that goes down in any case is delayed")
	}
}
