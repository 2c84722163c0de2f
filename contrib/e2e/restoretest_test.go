// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// saveKeys writes that many keys, and saves a snapshot.
func (h *host) saveKeys(n int) control.Snapshot {
	h.w.t.Helper()
	for k := range n {
		h.write(fmt.Sprintf("/app/%d", k), strings.Repeat("x", 100))
	}
	saved := h.snapshot(control.SnapshotRequest{Do: control.SnapshotSave}).Snapshots
	if len(saved) != 1 {
		h.w.t.Fatalf("%+v", saved)
	}
	return saved[0]
}

// restoreTest returns the result of the last restore test that a host reports.
func (h *host) restoreTest() control.RestoreTest {
	if s, ok := h.status(); ok && s.Backup != nil && s.Backup.RestoreTest != nil {
		return *s.Backup.RestoreTest
	}
	return control.RestoreTest{}
}

func TestTheSpareTestsRestoresAndEveryHostReportsAFailedOne(t *testing.T) {
	t.Parallel()
	dir, set := withStore(t, "{count: 1, age: 0s}")
	set["backup.restoreTest"] = "1h"
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, set: set})
	n1, n2 := w.hosts[0], w.hosts[1]
	left := filepath.Join(n2.Options.Dir, "state", "snapshots", "restoreTest", "member")
	must(t, os.MkdirAll(left, 0o700))
	w.start()
	w.bootstrap()
	w.eventually("the remains of a killed restore test are gone", func() bool {
		_, err := os.Stat(filepath.Dir(left))
		return os.IsNotExist(err)
	})
	saved := n1.saveKeys(20)
	w.eventually("the spare has tested it, and the voter reports it", func() bool {
		d := n1.restoreTest()
		return d.Host == "n2" && d.Name == saved.Name && d.Keys == saved.Keys && d.TookSeconds > 0 &&
			d.Failed == nil
	})
	w.eventually("the next restore test is not due yet", func() bool {
		return strings.HasPrefix(n2.restoreTest().Next, "n2 runs the next restore test in ")
	})
	listed := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotList}).Snapshots
	if len(listed) != 1 || listed[0].RestoreTestedAt == nil || listed[0].VerifiedAt == nil {
		t.Errorf("%+v", listed)
	}
	job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotRestoreTest})
	if job.Error != "" || job.Served == "" || job.Snapshots[0].Keys != saved.Keys {
		t.Errorf("next to a serving member: %+v", job)
	}
	second := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave}).Snapshots[0]
	must(t, os.Truncate(filepath.Join(dir, clusterName, second.Name+".db.zst"), 1000))
	_, err := n1.etcd.Delete(t.Context(), w.keys().RestoreTest())
	must(t, err)
	w.eventually("every host reports that the newest is damaged", func() bool {
		for _, h := range w.hosts {
			s, ok := h.status()
			if !ok || !slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
				return r.Code == string(policy.RestoreTestFailed) && strings.Contains(r.Text, "is damaged: 1000 bytes")
			}) {
				return false
			}
		}
		return true
	})
	job = n2.snapshot(control.SnapshotRequest{Do: control.SnapshotRestoreTest, Name: saved.Name})
	if job.Error != "" {
		t.Errorf("the one before: %s", job.Error)
	}
	w.eventually("no host reports it any more", func() bool { return n1.restoreTest().Failed == nil })
	entries, err := os.ReadDir(filepath.Join(n2.Options.Dir, "state", "snapshots"))
	must(t, err)
	for _, e := range entries {
		if e.Name() != "restore-test.lock" {
			t.Errorf("%s is left on the spare", e.Name())
		}
	}
}

func TestIfAllHostsVoteAFollowerTestsTheRestore(t *testing.T) {
	t.Parallel()
	_, set := withStore(t, "{count: 1, age: 0s}")
	set["backup.restoreTest"] = "1h"
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set})
	w.start()
	w.bootstrap()
	w.eventually("three vote", func() bool { return w.has(3, 0) })
	n1 := w.hosts[0]
	saved := n1.saveKeys(20)
	w.eventually("a voter has tested it, and all report it", func() bool {
		for _, h := range w.hosts {
			if d := h.restoreTest(); d.Host == "" || d.Name != saved.Name || d.Failed != nil {
				return false
			}
		}
		return true
	})
	by := slices.IndexFunc(w.hosts, func(h *host) bool { return h.Options.Name == n1.restoreTest().Host })
	if by < 0 {
		t.Fatalf("%q has tested it", n1.restoreTest().Host)
	}
	w.lead(w.hosts[by])
	_, err := n1.etcd.Delete(t.Context(), w.keys().RestoreTest())
	must(t, err)
	w.eventually("another host tests the next one, since that host leads", func() bool {
		d := n1.restoreTest()
		return d.Host != "" && d.Host != w.hosts[by].Options.Name
	})
	for _, h := range w.hosts {
		if _, err := os.Stat(filepath.Join(h.Options.Dir, "state", "snapshots", "restoreTest")); !os.IsNotExist(err) {
			t.Errorf("a restore test has left its data on %s: %v", h.Options.Name, err)
		}
	}
}

// waitRollout waits until the rollout with that reason is in the given state.
func (w *world) waitRollout(reason, state string) (r control.Rollout) {
	w.t.Helper()
	w.eventually("the rollout is "+state, func() bool {
		s, ok := w.hosts[0].status()
		if ok && s.Rollout != nil {
			r = *s.Rollout
		}
		return r.State == state && r.Reason == reason
	})
	return r
}

func TestARolloutToADifferentEtcdVersionWaitsForASnapshot(t *testing.T) {
	t.Parallel()
	dir, set := withStore(t, "{count: 1, age: 0s}")
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 1, set: set})
	w.start()
	w.bootstrap()
	w.eventually("there are a voter and a standby", func() bool { return w.has(1, 1) })
	n1, n2 := w.hosts[0], w.hosts[1]
	must(t, os.Chmod(dir, 0o777)) // so that no snapshot can be saved
	_, err := n1.Client.StartRollout(t.Context(), control.RolloutRequest{
		Work: policy.WorkRestart, Reason: "a newer etcd", Version: "3.6.99",
	})
	must(t, err)
	for _, h := range w.hosts {
		w.eventually(h.Options.Name+" waits, because no snapshot can be saved", func() bool {
			s, ok := h.status()
			return ok && slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
				return r.Code == string(policy.SnapshotFirst) && strings.Contains(r.Text, "chmod go-w")
			})
		})
	}
	if r := w.waitRollout("a newer etcd", record.RolloutRunning); r.Hosts[0].State != record.HostWaiting ||
		r.Hosts[1].State != record.HostWaiting {
		t.Errorf("%+v", r)
	}
	must(t, os.Chmod(dir, 0o700))
	if job := n2.snapshot(control.SnapshotRequest{Do: control.SnapshotSave}); job.Error != "" {
		t.Fatal(job.Error)
	}
	w.waitRollout("a newer etcd", record.RolloutStopped) // the first host was restarted, and its etcd is no newer
	if w.backup().Name == "" {
		t.Error("there is no snapshot")
	}
	_, err = n1.Client.StartRollout(t.Context(), control.RolloutRequest{
		Work: policy.WorkRestart, Reason: "in a hurry", Version: "3.6.99", WithoutSnapshot: true,
	})
	must(t, err)
	_, err = n1.etcd.Delete(t.Context(), w.keys().Backup())
	must(t, err)
	w.waitRollout("in a hurry", record.RolloutStopped)
}

func TestRemovalOfAHealthyVoterWaitsForASnapshot(t *testing.T) {
	t.Parallel()
	_, set := withStore(t, "{count: 1, age: 0s}")
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set})
	w.start()
	w.bootstrap()
	w.eventually("three vote", func() bool { return w.has(3, 0) })
	n1 := w.hosts[0]
	remove := func(without bool) error {
		_, err := n1.Client.RemoveMember(t.Context(), control.RemovalRequest{
			Member: "n3", Reason: "a test", Live: true, For: control.Duration(control.MinRemoval),
			WithoutSnapshot: without,
		})
		return err
	}
	code := func(err error) string {
		if refused, is := errors.AsType[*control.Error](err); is {
			return refused.Code
		}
		return ""
	}
	w.eventually("the removal is refused because there is no snapshot", func() bool {
		return code(remove(false)) == string(policy.SnapshotFirst)
	})
	if got := code(remove(true)); got == string(policy.SnapshotFirst) {
		t.Error("--without-snapshot waits for one")
	}
	if job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave}); job.Error != "" {
		t.Fatal(job.Error)
	}
	w.eventually("the removal is no longer refused for lack of a snapshot", func() bool {
		return code(remove(false)) != string(policy.SnapshotFirst)
	})
}
