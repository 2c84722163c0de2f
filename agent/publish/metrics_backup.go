// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// backupGauges tell of the cluster's snapshots, as every agent reads it in etcd.
func backupGauges() []gauge {
	return []gauge{
		{
			"quorumd_backup_interval_seconds",
			"How old the newest snapshot of the cluster may get, by backup.every; not there when that is off.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Backup.Every > 0 {
					emit(r.View.Backup.Every.Seconds())
				}
			},
		},
		{
			"quorumd_backup_age_seconds",
			"Age of the newest snapshot of the cluster; while there is none, since this agent looks for one.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable && (r.View.Backup.Saved || r.View.Backup.Every > 0) {
					emit(r.View.Backup.Age.Seconds())
				}
			},
		},
		{
			"quorumd_backup_failed", "1 when the last snapshot of the cluster that was tried was not saved.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable {
					emit(truth(r.View.Backup.Failed != nil))
				}
			},
		},
		{
			"quorumd_backup_size_bytes", "Size of the database in the newest snapshot of the cluster.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.Backup != nil && r.Backup.Size > 0 {
					emit(float64(r.Backup.Size))
				}
			},
		},
	}
}

// backupStatus shows the cluster's snapshots; nil where there are none and none are taken.
func backupStatus(r *round.Round) *control.Backup {
	note, b := r.Decision.Notes.Backup, r.Backup
	if note == (policy.BackupNote{}) && (b == nil || b.Saved.IsZero() && b.Failed.IsZero()) {
		return nil
	}
	out := &control.Backup{Next: note.Text}
	if b != nil {
		out.Name, out.Revision, out.Host, out.Size = b.Name, b.Revision, b.Host, b.Size
		out.FailedHost, out.Cause = b.FailedHost, b.Cause
		out.Saved, out.Failed = present(b.Saved), present(b.Failed)
	}
	return out
}

func present(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
