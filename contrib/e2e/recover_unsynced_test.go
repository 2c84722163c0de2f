// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// These tests simulate a power loss on either side of each step: all processes of a host are killed, and unsynced
// writes are lost on etcd's disk and on the disk of the agent's own files.

func TestARecoveryCompletesAlthoughUnsyncedWritesWereLost(t *testing.T) {
	t.Parallel()
	crashSurvivor(t, power)
}

func TestASnapshotRestoreCompletesAlthoughUnsyncedWritesWereLost(t *testing.T) {
	t.Parallel()
	crashSnapshotRestore(t, power)
}

func TestMovingDataAsideCompletesAlthoughUnsyncedWritesWereLost(t *testing.T) {
	t.Parallel()
	for _, side := range sides() {
		t.Run(side+"each step", func(t *testing.T) {
			t.Parallel()
			crashAside(t, power, side)
		})
	}
}

// TestALostDiskStaysLostAlthoughUnsyncedWritesWereLost removes all data from a host's disks, and checks that a power
// loss does not bring it back.
func TestALostDiskStaysLostAlthoughUnsyncedWritesWereLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{
		hosts: 1, voters: 1, powered: true, each: func(_ int, o *testbed.HostOptions) { logApart(o) },
	})
	h := w.hosts[0]
	w.start()
	w.bootstrap()
	w.loseAll()
	h.cutPower()
	for _, lost := range []string{"disk/etcd", "wal/etcd", "state/*"} {
		if back, err := filepath.Glob(filepath.Join(h.Options.Dir, lost)); err != nil || back != nil {
			t.Errorf("%q are there again, %v", back, err)
		}
	}
}
