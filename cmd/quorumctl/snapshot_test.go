// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

func TestPruneDoesNotAskIfThereIsNothingToRemove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		snapshots int
		stdout    string
		code      int
	}{
		"nothing to remove": {0, "no snapshot to remove\n", exitOK},
		"not confirmed":     {1, "", exitFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := scene(t, "steady")
			d.snapshot = finishedJob()
			d.snapshot.Snapshots = d.snapshot.Snapshots[:c.snapshots]
			socket, _ := serve(t, d)
			master, terminal := openTerminal(t)
			if _, err := master.WriteString("\x04"); err != nil { // no answer
				t.Fatal(err)
			}
			var out bytes.Buffer
			cmd := exec.CommandContext(t.Context(), program(t), "--socket", socket, "snapshot", "prune")
			cmd.Env = append(os.Environ(), "QUORUMCTL_TEST_MAIN=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &out, terminal
			_ = cmd.Run() // the exit code reports failure
			if code := cmd.ProcessState.ExitCode(); code != c.code || out.String() != c.stdout ||
				d.requests() != "snapshot prune" {
				t.Errorf("exit %d, requested %q: %s", code, d.requests(), &out)
			}
		})
	}
}

func finishedJob() control.SnapshotJob {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ended, verified := began.Add(1500*time.Millisecond), began.Add(-26*time.Hour)
	one := control.Snapshot{
		Name: "0000000000000004711-20261123T115959Z-n4-0123456789abcdef", TakenAt: began.Add(-time.Second), Host: "n4",
		Member: "801595c3b5d588bf", ClusterID: "a1", Etcd: "3.6.16", Revision: 4711, Keys: 1200, Hash: 0xbeef,
		Size: 700 << 20, StoredSize: 90 << 20,
	}
	one.Origin, one.RecordedAt, one.RecordedBy = record.OriginRecorded, &one.TakenAt, "n4"
	two := one
	two.Name, two.TakenAt = "0000000000000000815-20261121T060000Z-n4-fedcba9876543210", began.Add(-54*time.Hour)
	two.Revision, two.VerifiedAt, two.Encrypted = 815, &verified, true
	two.Origin, two.RecordedAt, two.RecordedBy = record.OriginUnproven, nil, ""
	return control.SnapshotJob{Started: began, Ended: &ended, Bytes: 1, Snapshots: []control.Snapshot{one, two}}
}

func TestSnapshotCommands(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	run := func(change func(*control.SnapshotJob), lines ...string) {
		d := scene(t, "steady")
		d.snapshot = finishedJob()
		change(&d.snapshot)
		socket, _ := serve(t, d)
		out.Write(transcript(t, socket, lines...))
	}
	run(func(j *control.SnapshotJob) { j.Snapshots = j.Snapshots[:1] }, "snapshot save", "snapshot verify",
		"snapshot verify 0000000000000004711-20261123T115959Z-n4-0123456789abcdef")
	run(func(j *control.SnapshotJob) {
		j.Orphans, j.Unread = []string{"left-over.db.zst"}, []string{"one: unexpected end of JSON input"}
		tested := j.Started.Add(-6 * time.Hour)
		j.Snapshots[1].RestoreTestedAt = &tested
		exchanged := j.Snapshots[0]
		exchanged.Name, exchanged.Origin = "0000000000000000814-20261121T050000Z-n4-fedcba9876543210", "exchanged"
		j.Snapshots = append(j.Snapshots, exchanged)
	}, "snapshot list", "snapshot list -o wide", "snapshot list -o json",
		"snapshot prune --dry-run", "snapshot prune --yes")
	run(func(j *control.SnapshotJob) { j.Snapshots, j.Served = j.Snapshots[:1], "3.6.16" }, "snapshot test-restore",
		"snapshot test-restore 0000000000000004711-20261123T115959Z-n4-0123456789abcdef")
	run(func(j *control.SnapshotJob) { j.Snapshots = j.Snapshots[1:] }, "snapshot verify")
	run(func(j *control.SnapshotJob) { j.Snapshots = nil }, "snapshot list", "snapshot prune --yes")
	run(func(j *control.SnapshotJob) {
		j.Snapshots, j.Error = nil, "cannot save a snapshot: no space left on device"
	},
		"snapshot save", "snapshot verify ../../etc/passwd", "snapshot verify a b")
	d := scene(t, "steady")
	saved, failed := d.status.Time.Add(-time.Hour), d.status.Time.Add(-5*time.Minute)
	d.status.Backup = &control.Backup{
		Name: "one", Saved: &saved, Host: "n4", Revision: 4711, Next: "n4 takes the next snapshot in 5h",
		Failed: &failed, FailedHost: "n4", Cause: "no space left on device", RestoreTest: &control.RestoreTest{
			Name: "0000000000000004711-20261123T115959Z-n4-0123456789abcdef", RestoreTested: &saved, Host: "n5",
			Keys:        1200,
			TookSeconds: 12, Next: "n5 runs the next restore test in 23h",
			Failed: &failed, FailedHost: "n5", Cause: "the snapshot is damaged",
		},
	}
	socket, _ := serve(t, d)
	out.Write(transcript(t, socket, "status", "explain"))
	golden(t, "snapshots.golden", out.Bytes())
}
