// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestEveryMemberOrJoiningHostReportsDeadVoters(t *testing.T) {
	t.Parallel()
	for role, want := range map[Role]bool{
		RoleVoter: true, RoleStandby: true, RoleJoining: true, RoleSpare: false, RoleUnknown: false,
	} {
		if role.ReportsDeadVoters() != want {
			t.Errorf("%s reports dead voters: %t", role, !want)
		}
	}
}

func TestHooksRunBeforeEtcdStopsAndAfterItIsBack(t *testing.T) {
	t.Parallel()
	for phase, want := range map[OpPhase]HookTime{
		PhaseBegun: HooksBefore, PhaseReady: HooksNever, PhaseDown: HooksNever, PhaseBack: HooksAfter,
	} {
		if got := HooksIn(phase); got != want {
			t.Errorf("%s: %d, want %d", phase, got, want)
		}
	}
	for state, want := range map[HookState]bool{
		HooksNone: false, HooksDue: false, HooksStarting: false, HooksRunning: false,
		HooksDone: true, HooksFailed: true,
	} {
		h := Hooks{State: state}
		if h.Ended() != want || (&Asked{After: h}).Waives() != (state == HooksFailed) {
			t.Errorf("%q: ended %t", state, !want)
		}
	}
	if (*Asked)(nil).Waives() {
		t.Error("without a request, failed hooks are waived")
	}
}

func TestAFinishedRequestCountsUntilTheRolloutIsResumed(t *testing.T) {
	t.Parallel()
	if !CountedInRollout(1, 1) || !CountedInRollout(2, 1) || CountedInRollout(1, 2) {
		t.Error("a finished request does not count until the rollout is resumed")
	}
}
