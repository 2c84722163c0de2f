// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/backup/restoretest"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestPruneReportsProgressForEachRemovedSnapshot(t *testing.T) {
	t.Parallel()
	noError := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	noError(os.Chmod(dir, 0o700))
	store, err := backup.OpenDirectory(dir, "prod")
	noError(err)
	defer store.Close()
	etcd := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Client(t)
	o := backup.Options{Spool: t.TempDir(), Now: time.Now()}
	for i := range 3 {
		_, err := etcd.Put(t.Context(), "/key", fmt.Sprint(i))
		noError(err)
		r, err := etcd.Snapshot(t.Context())
		noError(err)
		_, err = backup.Save(t.Context(), store, backup.Stream{Reader: r, Cluster: "prod", Host: "n1"}, o)
		noError(err)
		r.Close()
	}
	progress := map[bool]int64{}
	for _, really := range []bool{false, true} {
		o.Progress = func(n int64) { progress[really] += n }
		j := job{store: store, options: o}
		j.conf.Backup.Keep = config.BackupKeep{Count: 1}
		j.options.Now = o.Now.Add(time.Hour)
		out, err := j.prune(t.Context(), really)
		noError(err)
		if len(out.Snapshots) != 2 {
			t.Errorf("%d of 3 are pruned", len(out.Snapshots))
		}
	}
	if removed := progress[true] - progress[false]; removed != 2*deleteBytes {
		t.Errorf("two removals count as %d bytes, want %d each", removed, deleteBytes)
	}
}

func TestAHostThatCannotTestRestoresReportsNoDamagedSnapshot(t *testing.T) {
	t.Parallel()
	for cause, unprovable := range map[error]bool{
		restoretest.ErrNoMemory: true, restoretest.ErrKilled: true, backup.ErrNoIdentity: true,
		backup.ErrDamaged: false, backup.ErrNoSnapshot: false, os.ErrPermission: false,
	} {
		err := fmt.Errorf("cannot prove the snapshot one: %w", cause)
		out, failed := untestable(err)
		if (out.Unprovable == err.Error()) != unprovable || errors.Is(failed, cause) == unprovable {
			t.Errorf("%v: untestable because of %q, failed with %v", err, out.Unprovable, failed)
		}
	}
}
