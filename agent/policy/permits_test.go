// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestWhatAVerdictPermits(t *testing.T) {
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
		if got := sick(state); got != want {
			t.Errorf("%s is sick: %v", state, got)
		}
	}
}
