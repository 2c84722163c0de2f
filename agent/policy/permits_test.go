// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestPermissionsOfEachHealthState(t *testing.T) {
	t.Parallel()
	for state, want := range map[health.State]Permission{
		health.OK: {Join: true, Hold: true}, health.Warm: {Hold: true}, health.Unknown: {Hold: true},
		health.Qualifying: {Hold: true}, health.Slow: {}, health.Stalled: {}, health.Failed: {},
		health.State(99): {Hold: true},
	} {
		if got := Permits(state); got != want {
			t.Errorf("%s permits %+v, want %+v", state, got, want)
		}
	}
	for state, want := range map[health.State]bool{
		health.OK: false, health.Warm: false, health.Unknown: false, health.Qualifying: false, health.Slow: true,
		health.Stalled: true, health.Failed: true,
	} {
		if got := Unhealthy(state); got != want {
			t.Errorf("%s is unhealthy: %v", state, got)
		}
	}
}

func TestAFindingBlocksOnlyWhatItGates(t *testing.T) {
	t.Parallel()
	for state, want := range map[health.State]bool{
		health.OK: false, health.Warm: false, health.Slow: false, health.Stalled: false, health.Failed: false,
		health.Unknown: true, health.Qualifying: true, health.State(99): true,
	} {
		if blocks(state, health.Joins, health.Joins) != want {
			t.Errorf("%s gates joins: %t, although no finding gates them", state, !want)
		}
		if blocks(state, health.Leadership|health.Maintenance, health.Joins) != (state != health.OK) {
			t.Errorf("%s gates joins: %t", state, state == health.OK)
		}
	}
}

// slow makes a host SLOW because of a finding that blocks everything except the ungated gates.
func slow(h *Host, ungated health.Gate) { h.Health, h.Ungated = health.Slow, ungated }

func TestAFindingThatDoesNotGateJoinsBlocksNoJoin(t *testing.T) {
	t.Parallel()
	for ungated, want := range map[health.Gate]StepKind{
		health.Nothing: StepNone, health.Leadership | health.Maintenance: StepNone, health.Joins: StepTakeLock,
	} {
		v := spareView()
		v.Health.State, v.Health.Ungated = health.Slow, ungated
		if d := Decide(v); d.Step.Kind != want {
			t.Errorf("with %v ungated, decides %s: %v", ungated.Names(), d.Step.Kind, d.Reasons)
		}
	}
}

func TestAFindingThatDoesNotGateJoinsRollsBackNone(t *testing.T) {
	t.Parallel()
	for ungated, want := range map[health.Gate]ReasonCode{
		health.Nothing: HealthLost, health.Leadership | health.Maintenance: HealthLost, health.Joins: "",
	} {
		v := joinView()
		v.Health.State, v.Health.Ungated = health.Slow, ungated
		m, listed := v.member()
		if code, text := giveUp(v, m, listed); code != want {
			t.Errorf("with %v ungated, returns %q: %s", ungated.Names(), code, text)
		}
	}
}

func TestAFindingThatDoesNotGateMaintenanceDoesNotBlockAnotherVoters(t *testing.T) {
	t.Parallel()
	for ungated, want := range map[health.Gate]string{
		health.Nothing: "is SLOW", health.Joins | health.Leadership: "is SLOW", health.Maintenance: "",
	} {
		v := spareView()
		slow(&v.Hosts[1], ungated)
		if got := v.notProven(v.Cluster.Members[1], health.Maintenance); got != want {
			t.Errorf("with %v ungated: %q, want %q", ungated.Names(), got, want)
		}
	}
}

func TestOnlyFindingsThatGateMaintenanceBlockAnotherVoters(t *testing.T) {
	t.Parallel()
	for ungated, risk := range map[health.Gate]bool{
		health.Nothing: true, health.Joins | health.Leadership: true, health.Maintenance: false,
	} {
		v := askedView()
		slow(&v.Hosts[0], ungated)
		if _, holds := quorumAtRisk(v); holds != risk {
			t.Errorf("take-down next to a voter with %v ungated: at risk %t", ungated.Names(), holds)
		}
		v = removalView()
		aliveAgain(&v)
		v.Removal.Live = true
		slow(&v.Hosts[0], ungated)
		if _, holds := removalAtRisk(v); holds != risk {
			t.Errorf("removal next to a voter with %v ungated: at risk %t", ungated.Names(), holds)
		}
		v = backView()
		v.Health.State, v.Health.Ungated, v.Health.Text = health.Slow, ungated, "slow"
		if d := Decide(v); (d.Step.Kind == StepNone) != risk {
			t.Errorf("back with %v ungated: %+v", ungated.Names(), d)
		}
	}
}

func TestAFindingThatDoesNotGateLeadershipDoesNotDisqualifyALeader(t *testing.T) {
	t.Parallel()
	for ungated, want := range map[health.Gate]uint64{
		health.Nothing: 2, health.Joins | health.Maintenance: 2, health.Leadership: 1,
	} {
		v := spareView() // n1 has the lower ID
		slow(&v.Hosts[0], ungated)
		if best, found := bestVoter(v, peerPrefix+"n3"); !found || best.ID != want {
			t.Errorf("with %v ungated: %d, want %d", ungated.Names(), best.ID, want)
		}
	}
}
