// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

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

// TestALostDiskStaysSoThoughUnsyncedWritesWereLost sees that a host whose disks are lost has new ones then, on which a
// loss of its power brings nothing back.
func TestALostDiskStaysSoThoughUnsyncedWritesWereLost(t *testing.T) {
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
