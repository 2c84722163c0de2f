// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// withStore makes a directory for snapshots that all hosts use.
func withStore(t *testing.T, keep string) (dir string, set map[string]string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	set = quickTimes()
	set["backup.store"], set["backup.keep"] = fmt.Sprintf("{directory: %s}", dir), keep
	return dir, set
}

// snapshot does a job with snapshots to its end.
func (h *host) snapshot(req control.SnapshotRequest) control.SnapshotJob {
	h.w.t.Helper()
	job, err := h.Client.StartSnapshot(h.w.t.Context(), req)
	if err != nil {
		h.w.t.Fatal(err)
	}
	number := job.Number
	h.w.eventually("the job with snapshots has ended", func() bool {
		job, err = h.Client.SnapshotJob(h.w.t.Context())
		return err == nil && job.Number == number && job.Ended != nil
	})
	return job
}

// learner gives the ID of the one learner.
func (w *world) learner() string {
	w.t.Helper()
	for _, m := range w.members() {
		if m.IsLearner {
			return strconv.FormatUint(m.ID, 16)
		}
	}
	w.t.Fatal("there is no learner")
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsTakenOfTheStandbyAndListedAndVerifiedAndPruned(t *testing.T) {
	t.Parallel()
	dir, set := withStore(t, "{count: 1, age: 0s}")
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 1, set: set})
	w.start()
	w.bootstrap()
	w.eventually("a voter and a standby stand", func() bool { return w.has(1, 1) })
	n1, n2 := w.hosts[0], w.hosts[1]
	w.eventually("the standby is known as one", func() bool { return n2.role() == control.RoleStandby })
	var saved []control.Snapshot
	for i := range 3 {
		for k := range 20 {
			_, err := n1.etcd.Put(t.Context(), fmt.Sprintf("/app/%d", k), strings.Repeat("x", 100*i+1))
			must(t, err)
		}
		job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave})
		if job.Error != "" || len(job.Snapshots) != 1 {
			t.Fatalf("%+v", job)
		}
		saved = append(saved, job.Snapshots[0])
	}
	standby := w.learner()
	if last := saved[2]; last.Member != standby || last.Keys < 20 || last.Revision <= saved[0].Revision {
		t.Errorf("%+v; the standby is %s", last, standby)
	}
	if got := n2.snapshot(control.SnapshotRequest{Do: control.SnapshotList}); len(got.Snapshots) != 3 ||
		got.Snapshots[0].Name != saved[2].Name {
		t.Errorf("the other host lists %+v", got)
	}
	if got := n2.snapshot(control.SnapshotRequest{Do: control.SnapshotVerify, Name: saved[0].Name}); got.Error != "" {
		t.Errorf("the oldest: %s", got.Error)
	}
	damaged := filepath.Join(dir, clusterName, saved[1].Name+".db.zst")
	must(t, os.Truncate(damaged, 1000))
	got := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotVerify, Name: saved[1].Name})
	if !strings.Contains(got.Error, "the snapshot is damaged: 1000 bytes are stored") {
		t.Errorf("one that was cut off: %q", got.Error)
	}
	pruned := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotPrune})
	if len(pruned.Snapshots) != 1 || pruned.Snapshots[0].Name != saved[1].Name {
		t.Errorf("pruned were %+v, and neither the newest nor the one that is verified should be", pruned)
	}
	w.eventually("the cluster knows of the last one", func() bool {
		found, err := n1.etcd.Get(t.Context(), w.keys().Backup())
		if err != nil || len(found.Kvs) != 1 {
			return false
		}
		b, err := record.Decode[record.Backup](found.Kvs[0].Value)
		return err == nil && b.Name == saved[2].Name && b.Failed.IsZero()
	})
	must(t, os.Chmod(dir, 0o777))
	refused := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave})
	if !strings.Contains(refused.Error, "chmod go-w") {
		t.Errorf("into a directory of everybody: %q", refused.Error)
	}
	w.eventually("nobody is taking one", func() bool { return w.absent(w.keys().Saving()) })
}
