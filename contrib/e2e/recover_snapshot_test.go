// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// saveAndLose runs three voters with that store, writes, takes a snapshot, writes more, and then loses every disk:
// etcd's data and everything that the agents have recorded. It returns the snapshot and the keys written before it.
func saveAndLose(t *testing.T, store string, powered bool) (*world, control.Snapshot, map[string]string) {
	t.Helper()
	w := allVoters(t, worldOptions{
		hosts: 3, voters: 3, set: map[string]string{"backup.store": store}, powered: powered,
	})
	n1 := w.hosts[0]
	for i := range 100 {
		_, err := n1.etcd.Put(t.Context(), fmt.Sprintf("load/%d", i), fmt.Sprint(i*i))
		must(t, err)
	}
	before := w.loadKeys(n1)
	job := n1.snapshot(control.SnapshotRequest{Do: control.SnapshotSave})
	if job.Error != "" || len(job.Snapshots) != 1 {
		t.Fatalf("%+v", job)
	}
	w.keep(n1)
	_, err := n1.etcd.Put(t.Context(), "load/too-late", "x")
	must(t, err)
	w.loseAll()
	w.start()
	return w, job.Snapshots[0], before
}

// keptFile is the name of a snapshot that the operator has saved.
const keptFile = "kept.db"

// keep saves a snapshot to a file, like etcdctl snapshot save.
func (w *world) keep(h *host) {
	w.t.Helper()
	from, err := h.etcd.Snapshot(w.t.Context())
	must(w.t, err)
	defer from.Close()
	into, err := os.Create(filepath.Join(w.dir, keptFile))
	must(w.t, err)
	_, err = io.Copy(into, from)
	must(w.t, errors.Join(err, into.Close()))
}

// loseAll kills all processes at once and removes all data from the hosts' disks, except their configuration.
func (w *world) loseAll() {
	w.t.Helper()
	w.lose(w.hosts...)
	for _, h := range w.hosts {
		for _, dir := range []string{"state", "run"} { // the first of them may be a separate file system
			all, err := filepath.Glob(filepath.Join(h.Options.Dir, dir, "*"))
			must(w.t, err)
			for _, path := range all {
				must(w.t, os.RemoveAll(path))
			}
		}
		h.syncDisks()
	}
}

func (w *world) loadKeys(h *host) map[string]string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	answer, err := h.etcd.Get(ctx, "load/", clientv3.WithPrefix())
	must(w.t, err)
	all := map[string]string{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

// factsOf writes the facts of these hosts to files, as an operator does, and returns the file names.
func (w *world) factsOf(hosts ...*host) []string {
	w.t.Helper()
	var files []string
	for _, h := range hosts {
		h.facts() // wait until the host has its facts
		output := me().ctl(h, "recover", "collect")
		output.check(w.t, "recover collect", 0, `"host": "`+h.Options.Name+`"`)
		file := filepath.Join(w.dir, h.Options.Name+".json")
		must(w.t, os.WriteFile(file, []byte(output.output), 0o600))
		files = append(files, file)
	}
	return files
}

func TestAClusterThatLostEveryDiskGetsEveryKeyOfItsSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	w, saved, before := saveAndLose(t, fmt.Sprintf("{directory: %s}", dir), false)
	w.restoreFromSnapshot(saved, before)
}

// restoreFromSnapshot restores the cluster with the commands of an operator.
func (w *world) restoreFromSnapshot(saved control.Snapshot, before map[string]string) {
	t := w.t
	t.Helper()
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	files, plan := w.factsOf(w.hosts...), filepath.Join(w.dir, "plan.json")
	args := append([]string{"recover", "plan"}, files...)
	me().ctl(n1, args...).check(t, "without a snapshot", 70, "no host has a voter's data")
	me().ctl(n1, append(args, "--from-snapshot", "none")...).check(t, "an unknown snapshot", 64, "snapshot list")
	args = append(args, "--from-snapshot", "newest", "--out", plan)
	me().ctl(n1, args...).check(t, "a snapshot that no host has a record of", 64, "its origin is unproven",
		"--unproven-origin")
	args = append(args, "--unproven-origin") // all disks are lost, and with them what the hosts had recorded
	shown := me().ctl(n1, args...)
	shown.check(t, "without the name", 64, "proposed: restores the snapshot", saved.Name, "is lost", "--cluster NAME")
	shown = me().ctl(n1, append(args, "--cluster", clusterName)...)
	shown.check(t, "the plan", 0, "nothing has changed yet")
	t.Log("\n" + shown.output)
	for _, h := range []*host{n3, n1, n2} {
		shown = me().ctl(h, "recover", "apply", plan)
		shown.check(t, "applied", 0, "accepted plan ")
	}
	n1.waitRecovered()
	me().ctl(n1, "recover", "apply", plan).check(t, "applied again", 0, "is already complete on this host")
	if got := w.loadKeys(n1); !maps.Equal(got, before) {
		t.Errorf("%d keys are back, and %d were in the snapshot", len(got), len(before))
	}
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	if got := w.loadKeys(n3); !maps.Equal(got, before) {
		t.Errorf("n3 has %d keys, and %d were in the snapshot", len(got), len(before))
	}
}

// snapshotSteps returns the steps of the host that continues with a snapshot, in order.
func snapshotSteps() []policy.StepKind {
	return []policy.StepKind{
		policy.StepCopyData, policy.StepPlaceCopy, policy.StepWriteEnv, policy.StepStartUnit, policy.StepEndRecovery,
	}
}

func TestASnapshotRestoreCompletesAlthoughItsAgentIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	crashSnapshotRestore(t, agentOnly)
}

func crashSnapshotRestore(t *testing.T, what victim) {
	for _, side := range sides() {
		t.Run(strings.TrimSpace(side)+" each step", func(t *testing.T) {
			t.Parallel()
			from := "newest"
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o700))
			w, _, before := saveAndLose(t, fmt.Sprintf("{directory: %s}", dir), what == power)
			n1, plan := w.hosts[0], filepath.Join(w.dir, "plan.json")
			if side == "after " {
				from = filepath.Join(w.dir, keptFile)
			}
			args := append([]string{"recover", "plan"}, w.factsOf(w.hosts...)...)
			args = append(args, "--from-snapshot", from, "--out", plan, "--cluster", clusterName, "--unproven-origin")
			me().ctl(n1, args...).check(t,
				"the plan", 0, "nothing has changed yet")
			n1.crashRecovery(what, side, snapshotSteps(), func() {
				me().ctl(n1, "recover", "apply", plan).check(t, "applied", 0,
					"this host is the survivor with the snapshot")
			})
			w.within(formation, "n1 serves alone", func() bool { return w.has(1, 0) })
			if got := w.loadKeys(n1); !maps.Equal(got, before) {
				t.Errorf("%d keys are back, and %d were in the snapshot", len(got), len(before))
			}
		})
	}
}

func TestADamagedSnapshotIsNotUsedUntilTheStoreIsRepaired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	w, saved, before := saveAndLose(t, fmt.Sprintf("{directory: %s}", dir), false)
	n1, plan := w.hosts[0], filepath.Join(w.dir, "plan.json")
	args := append([]string{"recover", "plan"}, w.factsOf(w.hosts...)...)
	args = append(args, "--from-snapshot", saved.Name, "--out", plan, "--cluster", clusterName, "--unproven-origin")
	me().ctl(n1, args...).check(t, "the plan", 0, "nothing has changed yet")
	data := filepath.Join(dir, clusterName, saved.Name+".db.zst")
	text, err := os.ReadFile(data)
	must(t, err)
	must(t, os.WriteFile(data, append([]byte{}, text[:len(text)-10]...), 0o600))
	me().ctl(n1, "recover", "apply", plan).check(t, "applied", 0, "accepted")
	w.eventually("the host reports that the snapshot is damaged", func() bool {
		s, ok := n1.status()
		return ok && s.Recovery != nil && len(s.Reasons) > 0 && strings.Contains(s.Reasons[0].Text, "is damaged")
	})
	must(t, os.WriteFile(data, text, 0o600)) // the operator has repaired the store
	n1.waitRecovered()
	if got := w.loadKeys(n1); !maps.Equal(got, before) {
		t.Errorf("%d keys are back, and %d were in the snapshot", len(got), len(before))
	}
}
