// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the states stay in memory, so less garbage collection saves a fifth of the time
	goleak.VerifyTestMain(m)
}

// checkResult fails the test if the exploration of a scope broke a promise or is incomplete.
func checkResult(t *testing.T, scope string, r Result) {
	t.Helper()
	t.Log(r)
	if r.Breach != nil {
		t.Fatalf("%s: %s: %s\n%s", scope, r.Breach.Promise, r.Breach.Text, r.Breach.Trace)
	}
	if !r.Complete {
		t.Errorf("%s: the exploration is incomplete", scope)
	}
}

func TestThePolicyKeepsItsPromisesInSmallScopes(t *testing.T) {
	t.Parallel()
	steps, reasons, phases := map[policy.StepKind]bool{}, map[policy.ReasonCode]bool{}, map[Phase]bool{}
	for _, sc := range slices.Concat(smallScenarios(), smallCycles(), externals(), alarms(), corruptData(),
		smallRemovals(), smallReplacements(), smallUnhealthy(), smallResizes(), smallTransfers(), smallLearners(),
		smallUpgrades(), smallReaddresses(), defrags()) {
		r := Explore(t.Context(), sc, 2)
		checkResult(t, sc.Name, r)
		maps.Copy(steps, r.Steps)
		maps.Copy(reasons, r.Reasons)
		maps.Copy(phases, r.Phases)
	}
	declared := map[Phase]bool{}
	for _, kind := range policy.Kinds() {
		for _, phase := range policy.Phases(kind) {
			declared[Phase{kind, phase}] = true
		}
	}
	if !maps.Equal(phases, declared) {
		t.Errorf("operations were in the phases %v; the declared phases are %v", phases, declared)
	}
	for kind, how := range Steps() {
		if how == Explored && !steps[kind] {
			t.Errorf("step %s counts as explored, but was never decided", kind)
		}
	}
	for code, how := range Reasons() {
		if (how == Explored) != reasons[code] {
			t.Errorf("reason %s is modelled as %q; occurred in the exploration: %t", code, how,
				reasons[code])
		}
	}
}

func TestEveryStepAndReasonIsModelled(t *testing.T) {
	t.Parallel()
	for _, info := range policy.Steps() {
		if Steps()[info.Kind] == "" {
			t.Errorf("step %s is not modelled: add its effect to package model, and list it in coverage.go", info.Kind)
		}
	}
	for _, info := range policy.Reasons() {
		if Reasons()[info.Code] == "" {
			t.Errorf("reason %s is not modelled: add a world that leads to it, or the reason why none does to "+
				"coverage.go", info.Code)
		}
	}
}

func TestAWorldSurvivesPackingAndUnpacking(t *testing.T) {
	t.Parallel()
	for _, sc := range []Scenario{
		smallScenarios()[0], smallCycles()[1], smallRemovals()[1], smallReplacements()[1], smallUnhealthy()[1],
		smallUnhealthy()[2], smallResizes()[2], smallTransfers()[1], smallLearners()[1], smallUpgrades()[0],
		smallReaddresses()[0],
	} {
		sameAfterPacking(t, sc)
	}
}

func sameAfterPacking(t *testing.T, sc Scenario) {
	t.Helper()
	m := newMachine(sc, rules{})
	level := []world{sc.initial()}
	seen := map[key]bool{}
	for len(level) > 0 && len(seen) < 20_000 {
		var next []world
		for _, w := range level {
			m.expand(&w, func(_ event, after *world, _ breach) {
				k := after.pack()
				if back := unpack(&k, sc.Hosts); back != *after {
					t.Fatalf("%+v became %+v", *after, back)
				}
				if c := after.canonical(); !seen[c] {
					seen[c] = true
					next = append(next, *after)
				}
			})
		}
		level = next
	}
}

func TestWorldsThatDifferOnlyInHostOrderAreTheSameState(t *testing.T) {
	t.Parallel()
	sc := smallScenarios()[0]
	m := newMachine(sc, rules{})
	w := sc.initial()
	for range 60 { // a walk that checks every world with its hosts permuted
		permuted := w.permuted([maxHosts]uint8{1, 2, 0})
		if w.canonical() != permuted.canonical() {
			t.Fatalf("%s\nand\n%s are not the same state", w.text(), permuted.text())
		}
		var after []world
		m.expand(&w, func(_ event, next *world, _ breach) { after = append(after, *next) })
		w = after[len(after)/2]
	}
}

func TestAnExplorationDoesNotDependOnTheNumberOfWorkers(t *testing.T) {
	t.Parallel()
	sc := smallScenarios()[0]
	one, three := Explore(t.Context(), sc, 1), Explore(t.Context(), sc, 3)
	if one.States != three.States || one.Transitions != three.Transitions || one.Depth != three.Depth {
		t.Errorf("one worker found %v, three found %v", one, three)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(one.Reasons)), slices.Sorted(maps.Keys(three.Reasons))) {
		t.Errorf("one worker found %v, three found %v", one.Reasons, three.Reasons)
	}
}
