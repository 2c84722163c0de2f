// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// withStore creates a snapshot directory for all hosts, and returns it with the settings that use it.
func withStore(t *testing.T, keep string) (dir string, set map[string]string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	set = quickTimes()
	set["backup.store"], set["backup.keep"] = fmt.Sprintf("{directory: %s}", dir), keep
	return dir, set
}

// snapshot runs a snapshot job until it ends.
//
// It retries, as an operator would, if etcd did not answer in time or another host runs a snapshot job.
func (h *host) snapshot(req control.SnapshotRequest) (job control.SnapshotJob) {
	h.w.t.Helper()
	h.w.eventually("a snapshot job ends, and etcd has answered in time", func() bool {
		began, err := h.Client.StartSnapshot(h.w.t.Context(), req)
		if err != nil && strings.Contains(err.Error(), "wait until it has finished") {
			return false
		}
		if err != nil {
			h.w.t.Fatal(err)
		}
		h.w.eventually("the snapshot job has ended", func() bool {
			job, err = h.Client.SnapshotJob(h.w.t.Context())
			return err == nil && job.Number == began.Number && job.Ended != nil
		})
		return !strings.Contains(job.Error, "no answer in time")
	})
	return job
}

// learner returns the ID of the only learner.
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

func TestSnapshotsAreTakenFromTheStandbyListedVerifiedAndPruned(t *testing.T) {
	t.Parallel()
	dir, set := withStore(t, "{count: 1, age: 0s}")
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 1, set: set})
	w.start()
	w.bootstrap()
	w.eventually("there are a voter and a standby", func() bool { return w.has(1, 1) })
	n1, n2 := w.hosts[0], w.hosts[1]
	w.eventually("both hosts report the standby", func() bool {
		for _, h := range n1.statusNow().Hosts {
			if h.Role == policy.RoleStandby {
				return n2.role() == policy.RoleStandby
			}
		}
		return false
	})
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
		t.Errorf("a truncated snapshot: %q", got.Error)
	}
	pruned := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotPrune})
	if len(pruned.Snapshots) != 1 || pruned.Snapshots[0].Name != saved[1].Name {
		t.Errorf("pruned were %+v; the newest and the one being verified must stay", pruned)
	}
	w.eventually("the cluster has a record of the last one", func() bool {
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
		t.Errorf("into a world-writable directory: %q", refused.Error)
	}
	w.eventually("no snapshot is being taken", func() bool { return w.absent(w.keys().Saving()) })
	w.checkOneSaveAtATime()
}

// checkOneSaveAtATime simulates a snapshot job of another host, and checks that none of these hosts starts one
// meanwhile.
func (w *world) checkOneSaveAtATime() {
	w.t.Helper()
	saving, err := record.Encode(record.Saving{Host: "n9", Since: time.Now()})
	must(w.t, err)
	_, err = w.hosts[0].etcd.Put(w.t.Context(), w.keys().Saving(), string(saving))
	must(w.t, err)
	for _, h := range w.hosts {
		_, err := h.Client.StartSnapshot(w.t.Context(), control.SnapshotRequest{Do: control.SnapshotSave})
		refused, is := errors.AsType[*control.Error](err)
		if !is || refused.Code != control.CodeSnapshotRunning ||
			!strings.Contains(refused.Error(), "n9 is saving one") {
			w.t.Errorf("%s, while another host takes one: %v", h.Options.Name, err)
		}
	}
}

// backup returns the record of the last snapshots.
func (w *world) backup() (b record.Backup) {
	w.t.Helper()
	found, err := w.hosts[0].etcd.Get(w.t.Context(), w.keys().Backup())
	if err == nil && len(found.Kvs) == 1 {
		b, err = record.Decode[record.Backup](found.Kvs[0].Value)
	}
	must(w.t, err)
	return b
}

func TestTheStandbyTakesDueSnapshotsAndEveryHostReportsAFailedOne(t *testing.T) {
	t.Parallel()
	dir, set := withStore(t, "{count: 1, age: 0s}")
	set["backup.every"] = "1m"
	w := newWorld(t, worldOptions{hosts: 3, voters: 1, standbys: 1, set: set})
	n1 := w.hosts[0]
	w.start(n1)
	w.bootstrap()
	w.eventually("the only voter has taken the first", func() bool { return w.backup().Host == "n1" })
	w.start(w.hosts[1:]...)
	var standby *host
	w.eventually("there is a standby", func() bool {
		for _, h := range w.hosts[1:] {
			if h.role() == policy.RoleStandby {
				standby = h
			}
		}
		return standby != nil
	})
	first := w.backup().Name
	_, err := n1.etcd.Delete(t.Context(), w.keys().Backup())
	must(t, err)
	w.eventually("the standby's host has taken the next", func() bool {
		b := w.backup()
		return b.Host == standby.Options.Name && b.Name != first
	})
	w.eventually("the first is pruned", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, clusterName, "*.json"))
		return err == nil && len(left) == 1
	})
	must(t, os.Chmod(dir, 0o777))
	_, err = n1.etcd.Delete(t.Context(), w.keys().Backup())
	must(t, err)
	w.eventually("every host reports that none was saved", func() bool {
		for _, h := range w.hosts {
			s, ok := h.status()
			if !ok || !slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
				return r.Code == string(policy.BackupFailed) && strings.Contains(r.Text, "chmod go-w")
			}) {
				return false
			}
		}
		return true
	})
	must(t, os.Chmod(dir, 0o700))
	job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave})
	if job.Error != "" {
		t.Fatal(job.Error)
	}
	w.eventually("no host reports it any more", func() bool {
		s, ok := standby.status()
		return ok && s.Backup != nil && s.Backup.Failed == nil && s.Backup.Host == "n1" &&
			strings.HasPrefix(s.Backup.Next, standby.Options.Name+" takes the next snapshot")
	})
}

func TestASnapshotCanBeRequestedWhileEtcdIsFull(t *testing.T) {
	t.Parallel()
	_, set := withStore(t, "{count: 1, age: 0s}")
	w := newWorld(t, worldOptions{hosts: 1, voters: 1, set: set})
	w.start()
	w.bootstrap()
	w.eventually("one votes", func() bool { return w.has(1, 0) })
	n1 := w.hosts[0]
	_, err := n1.etcd.Put(t.Context(), "/app/one", "1")
	must(t, err)
	_, err = pb.NewMaintenanceClient(n1.etcd.ActiveConnection()).Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: w.members()[0].ID,
	})
	must(t, err)
	if _, err := n1.etcd.Put(t.Context(), "/app/two", "2"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("etcd is not full: %v", err)
	}
	job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave})
	if job.Error != "" || len(job.Snapshots) != 1 || job.Snapshots[0].Keys == 0 {
		t.Errorf("%+v", job)
	}
}
