// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestStoreOnAHungDiskIsAbandonedAndTheNextSnapshotIsSaved makes the store's directory hang, as if it were on a dead
// file server.
func TestStoreOnAHungDiskIsAbandonedAndTheNextSnapshotIsSaved(t *testing.T) {
	t.Parallel()
	back := t.TempDir()
	must(t, os.Chmod(back, 0o700))
	disk := testbed.MountFaultfs(t, back)
	raw := filepath.Join(t.TempDir(), "raw")
	must(t, os.WriteFile(raw, rawSnapshot(t), 0o600))
	save := savesInto + disk.Dir + "|" + raw + "|" + t.TempDir()
	must(t, disk.Rule("fsync * hang"))
	j := runs(t, runner(time.Second), save)
	if j.Err == nil || !strings.Contains(j.Err.Error(), "the store or etcd does not answer: ") {
		t.Errorf("%+v", j)
	}
	must(t, disk.Clear())
	if j := runs(t, runner(bound), save); j.Err != nil || len(j.Outcome.Snapshots) != 1 {
		t.Errorf("%+v", j)
	}
	l, err := List(t.Context(), directoryIn(t, disk.Dir), nil)
	if err != nil || len(l.Snapshots) != 1 || len(l.Unread) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
