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
			t.Errorf("%s gates joins: %t, though its findings spare them", state, !want)
		}
		if blocks(state, health.Leadership|health.Maintenance, health.Joins) != (state != health.OK) {
			t.Errorf("%s gates joins: %t", state, state == health.OK)
		}
	}
}

// slow makes a host SLOW because of a finding that blocks everything except the gates in spares.
func slow(h *Host, spares health.Gate) { h.Health, h.Ungated = health.Slow, spares }

func TestAFindingThatSparesJoinsBlocksNoJoin(t *testing.T) {
	t.Parallel()
	for spares, want := range map[health.Gate]StepKind{
		health.Nothing: StepNone, health.Leadership | health.Maintenance: StepNone, health.Joins: StepTakeLock,
	} {
		v := spareView()
		v.Health.State, v.Health.Ungated = health.Slow, spares
		if d := Decide(v); d.Step.Kind != want {
			t.Errorf("one that spares %v decides %s: %v", spares.Names(), d.Step.Kind, d.Reasons)
		}
	}
}

func TestAFindingThatSparesJoinsRollsBackNone(t *testing.T) {
	t.Parallel()
	for spares, want := range map[health.Gate]ReasonCode{
		health.Nothing: HealthLost, health.Leadership | health.Maintenance: HealthLost, health.Joins: "",
	} {
		v := joinView()
		v.Health.State, v.Health.Ungated = health.Slow, spares
		m, listed := v.member()
		if code, text := giveUp(v, m, listed); code != want {
			t.Errorf("one that spares %v returns %q: %s", spares.Names(), code, text)
		}
	}
}

func TestAFindingThatSparesMaintenanceDoesNotBlockAnotherVoters(t *testing.T) {
	t.Parallel()
	for spares, want := range map[health.Gate]string{
		health.Nothing: "is SLOW", health.Joins | health.Leadership: "is SLOW", health.Maintenance: "",
	} {
		v := spareView()
		slow(&v.Hosts[1], spares)
		if got := v.doubt(v.Cluster.Members[1], health.Maintenance); got != want {
			t.Errorf("one that spares %v: %q, want %q", spares.Names(), got, want)
		}
	}
}

func TestOnlyFindingsThatGateMaintenanceBlockAnotherVoters(t *testing.T) {
	t.Parallel()
	for spares, risk := range map[health.Gate]bool{
		health.Nothing: true, health.Joins | health.Leadership: true, health.Maintenance: false,
	} {
		v := askedView()
		slow(&v.Hosts[0], spares)
		if _, holds := quorumAtRisk(v); holds != risk {
			t.Errorf("taken down next to one that spares %v: at risk %t", spares.Names(), holds)
		}
		v = removalView()
		aliveAgain(&v)
		v.Removal.Live = true
		slow(&v.Hosts[0], spares)
		if _, holds := removalAtRisk(v); holds != risk {
			t.Errorf("removed next to one that spares %v: at risk %t", spares.Names(), holds)
		}
		v = backView()
		v.Health.State, v.Health.Ungated, v.Health.Text = health.Slow, spares, "slow"
		if d := Decide(v); (d.Step.Kind == StepNone) != risk {
			t.Errorf("back with a finding that spares %v: %+v", spares.Names(), d)
		}
	}
}

func TestAFindingThatSparesLeadershipDoesNotDisqualifyALeader(t *testing.T) {
	t.Parallel()
	for spares, want := range map[health.Gate]uint64{
		health.Nothing: 2, health.Joins | health.Maintenance: 2, health.Leadership: 1,
	} {
		v := spareView() // n1 has the lower ID
		slow(&v.Hosts[0], spares)
		if best, found := bestVoter(v, peerPrefix+"n3"); !found || best.ID != want {
			t.Errorf("one that spares %v: %d, want %d", spares.Names(), best.ID, want)
		}
	}
}
