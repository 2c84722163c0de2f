// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// jobs is a job with snapshots that has ended.
func jobs() control.SnapshotJob {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ended, verified := began.Add(1500*time.Millisecond), began.Add(-26*time.Hour)
	one := control.Snapshot{
		Name: "0000000000000004711-20261123T115959Z-n4-0123456789abcdef", TakenAt: began.Add(-time.Second), Host: "n4",
		Member: "801595c3b5d588bf", ClusterID: "a1", Etcd: "3.6.16", Revision: 4711, Keys: 1200, Hash: 0xbeef,
		Size: 700 << 20, StoredSize: 90 << 20,
	}
	two := one
	two.Name, two.TakenAt = "0000000000000000815-20261121T060000Z-n4-fedcba9876543210", began.Add(-54*time.Hour)
	two.Revision, two.VerifiedAt, two.Encrypted = 815, &verified, true
	return control.SnapshotJob{Started: began, Ended: &ended, Bytes: 1, Snapshots: []control.Snapshot{one, two}}
}

func TestSnapshotsAreSavedListedVerifiedAndPruned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	told := func(change func(*control.SnapshotJob), lines ...string) {
		d := scene(t, "steady")
		d.snapshot = jobs()
		change(&d.snapshot)
		socket, _ := serving(t, d)
		out.Write(transcript(t, socket, lines...))
	}
	told(func(j *control.SnapshotJob) { j.Snapshots = j.Snapshots[:1] }, "snapshot save", "snapshot verify",
		"snapshot verify 0000000000000004711-20261123T115959Z-n4-0123456789abcdef")
	told(func(j *control.SnapshotJob) {
		j.Strays, j.Unread = []string{"left-over.db.zst"}, []string{"one: unexpected end of JSON input"}
	}, "snapshot list", "snapshot list -o wide", "snapshot list -o json", "snapshot prune --dry-run", "snapshot prune")
	told(func(j *control.SnapshotJob) { j.Snapshots = nil }, "snapshot list", "snapshot prune")
	told(func(j *control.SnapshotJob) {
		j.Snapshots, j.Error = nil, "cannot save a snapshot: no space left on device"
	},
		"snapshot save", "snapshot verify ../../etc/passwd", "snapshot verify a b")
	golden(t, "snapshots.golden", out.Bytes())
}
