// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Snapshots runs the snapshot jobs, one at a time.
type Snapshots interface {
	Start(ctx context.Context, kind, by string, args []string, done func(backup.Job)) (backup.Job, error)
	Job() backup.Job
	// End ends the running job if it is of that kind, with why as the reason.
	End(kind, why string)
}

// reportTimeout is the timeout for publishing the result of a job.
const reportTimeout = 30 * time.Second

const cannotSave = "cannot save a snapshot: "

// StartSnapshot starts a snapshot job.
func (o *Operator) StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob,
	error,
) {
	cannot := "cannot start the snapshot job " + req.Do + ": "
	switch {
	case o.opt.Snapshots == nil:
		return control.SnapshotJob{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"no store is configured",
			"set backup.store.directory or backup.store.s3, and reload quorumd")
	case req.Do == control.SnapshotSave:
		return o.saveNow(ctx, by)
	case req.Do == control.SnapshotRestoreTest:
		return o.testRestore(ctx, by, req.Name)
	}
	o.refreshManifests(ctx)
	var args []string
	switch {
	case req.Do == control.SnapshotVerify && req.Name != "":
		args = []string{req.Name}
	case req.Do == control.SnapshotPrune && req.DryRun:
		args = []string{"no"}
	case req.Do == control.SnapshotPrune:
		args = []string{"yes"}
	}
	return o.start(ctx, cannot, req.Do, by, args, nil)
}

// SnapshotJob returns the last job.
func (o *Operator) SnapshotJob() control.SnapshotJob {
	if o.opt.Snapshots == nil {
		return control.SnapshotJob{}
	}
	return shownJob(o.opt.Snapshots.Job())
}

func (o *Operator) start(ctx context.Context, cannot, kind, by string, args []string, done func(backup.Job)) (
	control.SnapshotJob, error,
) {
	job, err := o.opt.Snapshots.Start(context.WithoutCancel(ctx), kind, by, args, done)
	if errors.Is(err, backup.ErrRunning) {
		return control.SnapshotJob{}, refuse(control.Conflicts, control.CodeSnapshotRunning,
			fmt.Sprintf("%sa job (%s) is already running, started by %s at %s", cannot, job.Kind, job.By,
				job.Started.UTC().Format(time.RFC3339)), "wait until it has finished")
	}
	if err != nil {
		return control.SnapshotJob{}, err
	}
	return shownJob(job), nil
}

// saveNow saves a snapshot on an operator's request.
func (o *Operator) saveNow(ctx context.Context, by string) (control.SnapshotJob, error) {
	r := o.opt.Rounds.Current()
	if r == nil {
		return control.SnapshotJob{}, refuse(control.NotNow, codeNotYet, cannotSave+"quorumd has just started",
			"try again in a moment")
	}
	from, why := policy.SnapshotSource(r.View)
	if why != "" {
		return control.SnapshotJob{}, refuse(control.NotNow, codeUnreachable, cannotSave+why, "quorumctl status")
	}
	return o.save(ctx, by, from.ID, nil)
}

// schedule names the requester of a scheduled job.
const schedule = "the schedule"

// dueEvery is the interval between attempts to start a scheduled job.
const dueEvery = 30 * time.Second

// TakeSnapshotIfDue saves a snapshot in the background and then prunes old ones, if the round decided that this host
// takes one.
func (o *Operator) TakeSnapshotIfDue(ctx context.Context, r *round.Round) {
	n := r.Decision.Notes.Backup
	if o.opt.Snapshots == nil || !n.Take {
		return
	}
	o.due.Refresh(ctx, o.opt.Now, dueEvery, reportTimeout, func(ctx context.Context) (struct{}, error) {
		_, err := o.save(ctx, schedule, n.Member, func(saved backup.Job) {
			if saved.Err != nil {
				return
			}
			if _, err := o.start(ctx, "", control.SnapshotPrune, schedule, []string{"yes"}, nil); err != nil {
				o.opt.Logger.Warn("cannot prune snapshots", "error", err)
			}
		})
		if err != nil {
			o.opt.Logger.Warn("cannot start the scheduled snapshot", "error", err)
		}
		return struct{}{}, err
	})
}

// snapshotClaim is the claim of the agent that saves a snapshot.
func (o *Operator) snapshotClaim() jobClaim {
	return jobClaim{o.keys.Saving(), cannotSave, "is saving one"}
}

// save saves a snapshot of a member's database, unless another agent of the cluster is saving one.
func (o *Operator) save(ctx context.Context, by string, member uint64, then func(backup.Job)) (control.SnapshotJob,
	error,
) {
	args := []string{strconv.FormatUint(member, 16)}
	done := func(ctx context.Context, j backup.Job) {
		o.snapshotEnded(ctx, j)
		if then != nil {
			then(j)
		}
	}
	return o.startExclusive(ctx, o.snapshotClaim(), control.SnapshotSave, by, args, done)
}

// snapshotEnded publishes the result of a snapshot job.
func (o *Operator) snapshotEnded(ctx context.Context, j backup.Job) {
	if n := len(j.Outcome.Snapshots); j.Err == nil && n != 1 {
		j.Err = fmt.Errorf("the job reported %d snapshots instead of 1", n)
	}
	if j.Err != nil {
		o.opt.Logger.Error("snapshot failed", "error", j.Err)
		o.note(ctx, "SNAPSHOT_FAILED", j.Err.Error())
	} else {
		o.note(ctx, "SNAPSHOT_SAVED", fmt.Sprintf("snapshot %s saved by %s", j.Outcome.Snapshots[0].Name, j.By))
	}
	var more []extraWrites
	if j.Err == nil {
		s := j.Outcome.Snapshots[0]
		one := record.Manifest{
			Name: s.Name, SHA256: s.ManifestSHA256, Saved: s.TakenAt, Host: o.opt.Config.Host.Name,
		}
		more = append(more, o.addManifest(one))
		_ = o.saveManifests(ctx, one) // saveManifests logs errors
	}
	err := rewrite(ctx, o, o.keys.Backup(), func(b *record.Backup) {
		b.Failed, b.FailedHost, b.Cause = time.Time{}, "", ""
		if j.Err != nil {
			b.Failed, b.FailedHost, b.Cause = j.Ended, o.opt.Config.Host.Name, j.Err.Error()
			return
		}
		s := j.Outcome.Snapshots[0]
		b.Name, b.Saved, b.Host, b.Revision, b.Size = s.Name, s.TakenAt, s.Host, s.Revision, s.Size
		b.ManifestSHA256 = s.ManifestSHA256
	}, more...)
	if err != nil {
		o.opt.Logger.Error("cannot publish the result of the snapshot", "error", err)
	}
}

func shownJob(j backup.Job) control.SnapshotJob {
	out := control.SnapshotJob{
		Number: j.Number, Do: j.Kind, By: j.By, Started: j.Started, Bytes: j.Bytes, Unread: j.Outcome.Unread,
		Served: j.Outcome.Served,
	}
	if !j.Ended.IsZero() {
		out.Ended = &j.Ended
	} else if out.Serving = j.All < 0; j.All > 0 {
		out.Progress = publish.EncodedBytes(j.Bytes, j.All)
	}
	if err := unprovable(j); err != nil {
		out.Error = err.Error()
	}
	for _, s := range j.Outcome.Snapshots {
		out.Snapshots = append(out.Snapshots, control.Snapshot{
			CompactRevision: s.CompactRevision, StoredSHA256: s.StoredSHA256,
			Name: s.Name, TakenAt: s.TakenAt, Host: s.Host, Member: s.Member, ClusterID: s.ClusterID,
			Etcd: s.EtcdVersion, Revision: s.Revision, Keys: s.Keys, Hash: s.Hash, Size: s.Size,
			StoredSize: s.StoredSize, Encrypted: s.Encrypted(), SnapshotEvidence: s.SnapshotEvidence,
		})
	}
	for _, s := range j.Outcome.Orphans {
		out.Orphans = append(out.Orphans, s.Name)
	}
	return out
}
