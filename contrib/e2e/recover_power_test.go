// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import "testing"

func TestARecoveryCompletesAlthoughItsHostIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	crashSurvivor(t, all)
}

func TestASnapshotRestoreCompletesAlthoughItsHostIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	crashSnapshotRestore(t, all)
}

func TestMovingDataAsideCompletesAlthoughItsHostIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, what := range []victim{agentOnly, all} {
		for _, side := range sides() {
			t.Run(string(what)+" "+side+"each step", func(t *testing.T) {
				t.Parallel()
				crashAside(t, what, side)
			})
		}
	}
}
