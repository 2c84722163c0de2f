// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

// blur is a detail that worlds forget, as a host sees it.
type blur struct {
	name string
	// alter changes the detail in a sight, if the worlds forget it there.
	alter func(s *observation) bool
	// beyond changes the detail where the worlds keep it. There it must decide something; otherwise this test proves
	// nothing.
	beyond func(s *observation) bool
}

func blurs() []blur {
	stopped := func(s *observation) bool {
		return compareAndSet(&s.unit, failed, inactive) || compareAndSet(&s.unit, inactive, failed)
	}
	runs := func(s *observation) bool { return s.unit == starting || s.unit == active }
	missed := func(s *observation) bool { return compareAndSet(&s.probe, 1, 2) || compareAndSet(&s.probe, 2, 1) }
	follows := func(s *observation) bool { return s.op != 0 && s.joins(int(s.self)) && s.hosts[s.self].list == learner }
	settles := func(s *observation) bool { return compareAndSet(&s.stable, 0, 1) || compareAndSet(&s.stable, 1, 0) }
	later := func(s *observation) bool {
		return s.op != 0 && (s.opPhase == phaseAdded || s.opPhase == phaseRollback) && (s.data != old || !runs(s))
	}
	return []blur{
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
			"whether a learner follows that is rolled back",
			func(s *observation) bool {
				s.moved = 1 - s.moved
				return follows(s) && s.opPhase == phaseRollback
			},
			func(s *observation) bool {
				s.moved = 1 - s.moved
				return follows(s) && s.opPhase != phaseRollback
			},
		},
		{
			"whether the list has settled, where no decision depends on it",
			func(s *observation) bool { return s.reachable != 0 && later(s) && settles(s) },
			func(s *observation) bool { return s.reachable != 0 && !later(s) && settles(s) },
		},
	}
}

// alike reports whether two decisions have the same effect, whatever their explanations.
func alike(a, b *[ranks]choice) bool {
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
	forgot, decided := make([]int, len(blurs())), make([]int, len(blurs()))
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
			for i, b := range blurs() {
				if other := s; b.alter(&other) {
					forgot[i]++
					if was, is := *m.decide(&s), *m.decide(&other); !alike(&was, &is) {
						t.Fatalf("%s, %s: it decides\n%+v\nor\n%+v\n%s\n%+v", sc.Name, b.name, was, is, s.text(), s)
					}
				}
				if other := s; b.beyond(&other) && !alike(m.decide(&s), m.decide(&other)) {
					decided[i]++
				}
			}
		}
	}
	for i, b := range blurs() {
		t.Logf("%s: %d sights, and %d in which it decides something", b.name, forgot[i], decided[i])
		if forgot[i] == 0 || decided[i] == 0 {
			t.Errorf("%s: forgotten in %d sights, decides something in %d others", b.name, forgot[i], decided[i])
		}
	}
}

func TestAHostThatMayStillGoDownKeepsItsStartGuard(t *testing.T) {
	t.Parallel()
	w := smallReplacements()[1].first()
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
		{"no other fault follows", HostCrash, 1, 0, 0},
		{"it is down", HostCrash, 1, 1, 1},
	} {
		m := newMachine(Scenario{Hosts: 4, Target: policy.Target{Voters: 3}, Faults: c.faults, Budget: 1}, rules{})
		after := w
		after.faults, after.hosts[3].down = c.spent, c.down
		if m.forgetStartGuards(&after); after.hosts[3].startGuard != c.keeps {
			t.Errorf("%s: kept: %d", c.what, after.hosts[3].startGuard)
		}
	}
}
