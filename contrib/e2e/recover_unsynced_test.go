// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package e2e

import "testing"

// These strike as the loss of power does, on either side of each step: all of a host is killed, and what it has written
// and not synced is gone, from etcd's disk and from the one of the agent's own files.

func TestARecoveryIsBroughtToItsEndThoughUnsyncedWritesWereLostAnywhereInIt(t *testing.T) {
	t.Parallel()
	survivorStruck(t, power)
}

func TestASnapshotIsBroughtBackThoughUnsyncedWritesWereLostAnywhereInIt(t *testing.T) {
	t.Parallel()
	snapshotStruck(t, power)
}

func TestAHostLaysItsDataAsideThoughUnsyncedWritesWereLostAnywhereInIt(t *testing.T) {
	t.Parallel()
	for _, side := range sides() {
		t.Run(side+"each step", func(t *testing.T) {
			t.Parallel()
			asideStruck(t, power, side)
		})
	}
}
