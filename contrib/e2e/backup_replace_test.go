// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestABackupOnAHungDiskDelaysNoReplacement keeps the standby's host busy with a snapshot while that host replaces a
// dead voter.
func TestABackupOnAHungDiskDelaysNoReplacement(t *testing.T) {
	t.Parallel()
	back := t.TempDir()
	must(t, os.Chmod(back, 0o700))
	store := testbed.MountFaultfs(t, back)
	w := newWorld(t, worldOptions{hosts: 4, standbys: 1, set: map[string]string{
		"repair.dead": unhealthyGrace.String(), "backup.store": fmt.Sprintf("{directory: %s}", store.Dir),
	}})
	t.Cleanup(func() { clearRules(t, store) })
	n3, n4 := w.hosts[2], w.hosts[3]
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(n4)
	w.within(2*formation, "n4 is ready", func() bool { return w.has(3, 1) })
	w.waitRolesAgree()
	rule(t, store, "fsync * hang")
	n3.powerOff()
	began := time.Now()
	saves := func() bool { // starts another snapshot if the last one was aborted
		job, err := n4.Client.SnapshotJob(t.Context())
		if err == nil && job.Number > 0 && job.Ended == nil {
			return true
		}
		_, _ = n4.Client.StartSnapshot(t.Context(), control.SnapshotRequest{Do: control.SnapshotSave})
		return false
	}
	w.within(unhealthyGrace+bound, "n4 has replaced n3 during a snapshot", func() bool {
		listed, _ := w.is(n3)
		return saves() && !listed && w.has(3, 0)
	})
	took := time.Since(began)
	t.Logf("full strength %v later, with a grace period of %v", took.Round(100*time.Millisecond), unhealthyGrace)
	if late := took - unhealthyGrace; late > bound/2 {
		t.Errorf("the replacement took %v longer than its grace", late)
	}
	clearRules(t, store)
	w.verify(3, 0)
}
