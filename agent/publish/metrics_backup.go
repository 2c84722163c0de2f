// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// backupGauges are the metrics of the cluster's snapshots. Every agent reads the results from etcd, and the interval
// from its configuration.
func backupGauges() []gauge {
	return []gauge{
		{
			"quorumd_backup_interval_seconds",
			"Maximum age of the newest snapshot, from backup.every; absent if that is off.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Backup.Every > 0 {
					emit(r.View.Backup.Every.Seconds())
				}
			},
		},
		{
			"quorumd_backup_age_seconds",
			"Age of the newest snapshot; if there is none, time since this agent started looking for one.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable && (r.View.Backup.HasSnapshot || r.View.Backup.Every > 0) {
					emit(r.View.Backup.Age.Seconds())
				}
			},
		},
		{
			"quorumd_backup_failed", "1 if the last attempt to save a snapshot failed.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable {
					emit(truth(r.View.Backup.Failed != nil))
				}
			},
		},
		{
			"quorumd_backup_size_bytes", "Size of the database in the newest snapshot.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.Backup != nil && r.Backup.Size > 0 {
					emit(float64(r.Backup.Size))
				}
			},
		},
	}
}

// restoreGauges are the metrics of the restore tests.
func restoreGauges() []gauge {
	return []gauge{
		{
			"quorumd_restore_test_interval_seconds",
			"Maximum age of the last successful restore test, from backup.restoreTest; absent if that is off, or if " +
				"no host has the key to decrypt snapshots.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Backup.RestoreTest.Every > 0 && !r.Decision.Notes.RestoreTest.Sealed {
					emit(r.View.Backup.RestoreTest.Every.Seconds())
				}
			},
		},
		{
			"quorumd_restore_test_age_seconds",
			"Age of the last successful restore test; if there is none, time since this agent started looking " +
				"for one.",
			nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r == nil || !r.View.Cluster.Reachable {
					return
				}
				if d := r.View.Backup.RestoreTest; d.Passed || d.Every > 0 {
					emit(d.Age.Seconds())
				}
			},
		},
		{
			"quorumd_restore_test_passed_timestamp_seconds",
			"Unix time of the last successful restore test; absent if there is none.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.RestoreTest != nil && !r.RestoreTest.RestoreTested.IsZero() {
					emit(float64(r.RestoreTest.RestoreTested.Unix()))
				}
			},
		},
		{
			"quorumd_restore_test_duration_seconds",
			"Duration of the last successful restore test, including reading the snapshot from the store.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.RestoreTest != nil && r.RestoreTest.Took > 0 {
					emit(r.RestoreTest.Took)
				}
			},
		},
		{
			"quorumd_restore_test_failed", "1 if the last restore test failed.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable {
					emit(truth(r.View.Backup.RestoreTest.Failed != nil))
				}
			},
		},
	}
}

// backupStatus returns the state of the cluster's snapshots; nil if none was attempted and none are configured.
func backupStatus(r *round.Round) *control.Backup {
	note, b, restoreTest := r.Decision.Notes.Backup, r.Backup, restoreTestStatus(r)
	if note == (policy.BackupNote{}) && restoreTest == nil && (b == nil || b.Saved.IsZero() && b.Failed.IsZero()) {
		return nil
	}
	out := &control.Backup{Next: note.Text, RestoreTest: restoreTest}
	if b != nil {
		out.Name, out.Revision, out.Host, out.Size = b.Name, b.Revision, b.Host, b.Size
		out.FailedHost, out.Cause = b.FailedHost, b.Cause
		out.Saved, out.Failed = present(b.Saved), present(b.Failed)
	}
	return out
}

// restoreTestStatus returns the state of the restore tests; nil if none has run and none are configured.
func restoreTestStatus(r *round.Round) *control.RestoreTest {
	note, d := r.Decision.Notes.RestoreTest, r.RestoreTest
	if note == (policy.RestoreTestNote{}) && (d == nil || d.RestoreTested.IsZero() && d.Failed.IsZero()) {
		return nil
	}
	out := &control.RestoreTest{Next: note.Text}
	if d != nil {
		out.Name, out.Host, out.Revision, out.Keys = d.Name, d.Host, d.Revision, d.Keys
		out.Etcd, out.TookSeconds, out.FailedHost, out.Cause = d.Etcd, d.Took, d.FailedHost, d.Cause
		out.RestoreTested, out.Failed = present(d.RestoreTested), present(d.Failed)
	}
	return out
}

func present(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
