// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import "testing"

func TestARecoveryIsBroughtToItsEndThoughTheWholeHostWasKilledAnywhereInIt(t *testing.T) {
	t.Parallel()
	survivorStruck(t, all)
}

func TestASnapshotIsBroughtBackThoughTheWholeHostWasKilledAnywhereInIt(t *testing.T) {
	t.Parallel()
	snapshotStruck(t, all)
}

func TestAHostLaysItsDataAsideThoughAllOfItWasKilledAnywhereInIt(t *testing.T) {
	t.Parallel()
	for _, what := range []victim{agentOnly, all} {
		for _, side := range sides() {
			t.Run(string(what)+" "+side+"each step", func(t *testing.T) {
				t.Parallel()
				asideStruck(t, what, side)
			})
		}
	}
}

// asideStruck strikes the one of two hosts left of five that goes on with the data of the other.
func asideStruck(t *testing.T, what victim, side string) {
	w := newWorld(t, worldOptions{hosts: 5, voters: 5})
	w.start()
	w.bootstrap()
	w.within(3*formation, "5 voters stand", func() bool { return w.has(5, 0) })
	w.rolesAgree()
	survivor, other := w.hosts[0], w.hosts[1]
	report := w.loaded(func() { w.lose(w.hosts[2:]...) })
	plan := w.plan([]string{"n3", "n4", "n5"}, survivor, other)
	if plan.Survivor != "host-"+survivor.Options.Name {
		survivor, other = other, survivor
	}
	other.struckInARecovery(what, side, asideSteps(), func() {
		other.obeys(plan)
		survivor.obeys(plan)
	})
	survivor.recovered()
	w.readBack(survivor, report)
	w.start(w.hosts[2:]...)
	w.within(3*formation, "5 voters stand", func() bool { return w.has(5, 0) })
	w.checkData()
}
