// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

// forgottenDetail is a detail of an observation that worlds do not keep in some states.
type forgottenDetail struct {
	name string
	// alter changes the detail, and reports whether the worlds drop it in this state.
	alter func(s *observation) bool
	// relevant changes the detail, and reports whether the worlds keep it in this state. There it must change some
	// decision; otherwise the test proves nothing.
	relevant func(s *observation) bool
}

func forgottenDetails() []forgottenDetail {
	stopped := func(s *observation) bool {
		return compareAndSet(&s.unit, failed, inactive) || compareAndSet(&s.unit, inactive, failed)
	}
	runs := func(s *observation) bool { return s.unit == starting || s.unit == active }
	missed := func(s *observation) bool {
		return compareAndSet(&s.sinceWrite, 1, 2) || compareAndSet(&s.sinceWrite, 2, 1)
	}
	follows := func(s *observation) bool { return s.op != 0 && s.joins(int(s.self)) && s.hosts[s.self].list == learner }
	settles := func(s *observation) bool { return compareAndSet(&s.stable, 0, 1) || compareAndSet(&s.stable, 1, 0) }
	later := func(s *observation) bool {
		return s.op != 0 && (s.opPhase == phaseAdded || s.opPhase == phaseRollback) && (s.data != old || !runs(s))
	}
	return []forgottenDetail{
		{
			"whether an etcd without a member's data has exited or was stopped",
			func(s *observation) bool { return s.data != current && s.recorded|s.work == 0 && stopped(s) },
			func(s *observation) bool { return s.data == current && stopped(s) },
		},
		{
			"whether a learner that does not answer has missed a write",
			func(s *observation) bool { return follows(s) && s.hosts[s.self].live == 0 && missed(s) },
			func(s *observation) bool { return follows(s) && s.hosts[s.self].live != 0 && missed(s) },
		},
		{
			"whether a learner that is rolled back follows",
			func(s *observation) bool {
				s.learnerMoved = 1 - s.learnerMoved
				return follows(s) && s.opPhase == phaseRollback
			},
			func(s *observation) bool {
				s.learnerMoved = 1 - s.learnerMoved
				return follows(s) && s.opPhase != phaseRollback
			},
		},
		{
			"whether the member list has settled, if no decision depends on it",
			func(s *observation) bool { return s.reachable != 0 && later(s) && settles(s) },
			func(s *observation) bool { return s.reachable != 0 && !later(s) && settles(s) },
		},
	}
}

// sameEffect reports whether two decisions differ at most in their explanations.
func sameEffect(a, b *[ranks]choice) bool {
	for r := range ranks {
		x, y := a[r], b[r]
		x.reason, x.why, y.reason, y.why = "", "", "", ""
		if x != y {
			return false
		}
	}
	return true
}

func TestForgottenDetailsDecideNothing(t *testing.T) {
	t.Parallel()
	forgot, decided := make([]int, len(forgottenDetails())), make([]int, len(forgottenDetails()))
	second := func(sc Scenario, class Faults) Scenario {
		sc.Faults, sc.Budget, sc.Liveness = class, 1, false
		return sc
	}
	for _, sc := range []Scenario{
		smallScenarios()[2], smallCycles()[0], second(smallReplacements()[0], HostCrash|LateCall),
		second(smallReplacements()[1], AllFaults), smallUnhealthy()[2],
	} {
		x := newExplorer(sc, rules{}, 1)
		if r := x.run(t.Context()); !r.Complete {
			t.Fatal(r)
		}
		m := x.workers[0].machine
		for _, s := range slices.Collect(maps.Keys(m.cache)) {
			for i, b := range forgottenDetails() {
				if other := s; b.alter(&other) {
					forgot[i]++
					if was, is := *m.decide(&s), *m.decide(&other); !sameEffect(&was, &is) {
						t.Fatalf("%s, %s: the decision is\n%+v\nor\n%+v\n%s\n%+v", sc.Name, b.name, was, is,
							s.text(), s)
					}
				}
				if other := s; b.relevant(&other) && !sameEffect(m.decide(&s), m.decide(&other)) {
					decided[i]++
				}
			}
		}
	}
	for i, b := range forgottenDetails() {
		t.Logf("%s: forgotten in %d observations, relevant in %d", b.name, forgot[i], decided[i])
		if forgot[i] == 0 || decided[i] == 0 {
			t.Errorf("%s: forgotten in %d observations, relevant in %d; want both above 0", b.name, forgot[i],
				decided[i])
		}
	}
}

func TestAHostThatMayStillGoDownKeepsItsStartGuard(t *testing.T) {
	t.Parallel()
	w := smallReplacements()[1].initial()
	w.hosts[3].data, w.hosts[3].startGuard = old, 1
	for _, c := range []struct {
		what   string
		faults Faults
		spent  uint8
		down   uint8
		keeps  uint8
	}{
		{"a host may go down", HostCrash, 0, 0, 1},
		{"no host may go down", AgentCrash, 0, 0, 0},
		{"the fault budget is spent", HostCrash, 1, 0, 0},
		{"the host is down", HostCrash, 1, 1, 1},
	} {
		m := newMachine(Scenario{Hosts: 4, Target: policy.Target{Voters: 3}, Faults: c.faults, Budget: 1}, rules{})
		after := w
		after.faults, after.hosts[3].down = c.spent, c.down
		if m.forgetStartGuards(&after); after.hosts[3].startGuard != c.keeps {
			t.Errorf("%s: start guard: %d", c.what, after.hosts[3].startGuard)
		}
	}
}
