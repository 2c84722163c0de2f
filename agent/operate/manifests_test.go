// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// onEtcd returns a host whose operator uses a real etcd.
func onEtcd(t *testing.T, endpoints []string, name string) *host {
	t.Helper()
	h := newHost(t)
	etcd, err := cluster.New(cluster.Options{
		Endpoints: endpoints, CallTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	h.opt.Etcd, h.opt.Config.Host.Name, h.opt.Config.Cluster.Name = etcd, name, "test"
	h.opt.Config.Timing.CallTimeout = 5 * time.Second
	began := time.Now()
	h.opt.Now = func() time.Duration { return time.Since(began) + time.Hour }
	h.keys = record.KeysFor("test")
	h.opt.History = publish.NewJournal(publish.Options{
		Config: h.opt.Config, Etcd: etcd, Wall: time.Now, Logger: h.opt.Logger,
	}, h.keys)
	return h
}

// TestManifestHashIsKeptInEtcdAndOnEveryHost saves two snapshots on one host. Another host copies the hashes when it
// reads the record.
func TestManifestHashIsKeptInEtcdAndOnEveryHost(t *testing.T) {
	t.Parallel()
	endpoints := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Endpoints()
	n1, n2 := onEtcd(t, endpoints, "n1"), onEtcd(t, endpoints, "n2")
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	save := func(i int) record.Manifest {
		s := backup.Snapshot{SnapshotEvidence: record.SnapshotEvidence{ManifestSHA256: fmt.Sprintf("%064x", i)}}
		s.Name, s.TakenAt, s.Host = fmt.Sprintf("snapshot-%d", i), noon.Add(time.Duration(i)*time.Hour), "n1"
		n1.snapshotEnded(t.Context(), backup.Job{Outcome: backup.Outcome{Snapshots: []backup.Snapshot{s}}})
		return record.Manifest{Name: s.Name, SHA256: s.ManifestSHA256, Saved: s.TakenAt, Host: "n1"}
	}
	first, second := save(1), save(2)
	n1.snapshotEnded(t.Context(), backup.Job{Err: errors.New("the store does not answer")})
	all, _, err := n1.manifests(t.Context())
	if err != nil || len(all.Saved) != 2 || all.Saved[0] != first || all.Saved[1] != second {
		t.Errorf("in etcd: %+v, %v", all.Saved, err)
	}
	found, err := n1.opt.Etcd.Read(t.Context(), cluster.Span{Start: n1.keys.Backup()})
	if err != nil || len(found.Pairs) != 1 {
		t.Fatal(found, err)
	}
	b, err := record.Decode[record.Backup](found.Pairs[0].Value)
	if err != nil || b.ManifestSHA256 != second.SHA256 {
		t.Errorf("the last one: %+v, %v", b, err)
	}
	r := &round.Round{View: policy.View{Cluster: policy.Cluster{Reachable: true}}}
	r.Backup = &b
	n2.RememberSnapshots(t.Context(), r)
	testbed.Eventually(t, time.Minute, "the other host remembers both", func() bool {
		return len(n2.files.Manifests()) == 2
	})
	for _, h := range []*host{n1, n2} {
		if got := h.files.Manifests(); len(got) != 2 || got[0] != first || got[1] != second {
			t.Errorf("%s remembers %+v", h.opt.Config.Host.Name, got)
		}
	}
	forged := first
	forged.SHA256 = second.SHA256 // as an attacker could write it to etcd later
	if err := n2.files.NoteManifests(forged); err != nil || n2.files.Manifests()[0] != first {
		t.Errorf("the saved hash was overwritten: %+v, %v", n2.files.Manifests()[0], err)
	}
}
