// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// restoreTestClaim is the claim of the agent that runs a restore test.
func (o *Operator) restoreTestClaim() jobClaim {
	return jobClaim{o.keys.RestoreTesting(), "cannot run a restore test: ", "is running one"}
}

// IsRestoreTest reports whether a job is a running restore test.
func IsRestoreTest(j backup.Job) bool {
	return j.Kind == control.SnapshotRestoreTest && j.Number > 0 && j.Ended.IsZero()
}

// TestRestoreIfDue starts a restore test of the newest snapshot, or ends the restore test that is running on this host,
// as the round decided. The test runs in the background.
func (o *Operator) TestRestoreIfDue(ctx context.Context, r *round.Round) {
	n := r.Decision.Notes.RestoreTest
	if o.opt.Snapshots == nil {
		return
	}
	if job := o.opt.Snapshots.Job(); IsRestoreTest(job) {
		end := n.End
		if job.By == schedule {
			end = n.EndScheduled
		}
		if end != "" {
			o.opt.Snapshots.End(control.SnapshotRestoreTest, end)
		}
		return
	}
	if !n.Run {
		return
	}
	name := ""
	if r.Backup != nil {
		name = r.Backup.Name
	}
	o.dueRestoreTest.Refresh(ctx, o.opt.Now, dueEvery, reportTimeout, func(ctx context.Context) (struct{}, error) {
		_, err := o.testRestore(ctx, schedule, name)
		if err != nil {
			o.opt.Logger.Warn("cannot start the scheduled restore test", "error", err)
		}
		return struct{}{}, err
	})
}

// testRestore tests the snapshot with that name, or the newest if name is empty, unless another agent of the cluster
// runs a restore test.
func (o *Operator) testRestore(ctx context.Context, by, name string) (control.SnapshotJob, error) {
	o.refreshManifests(ctx)
	var args []string
	if name != "" {
		args = []string{name}
	}
	return o.startExclusive(ctx, o.restoreTestClaim(), control.SnapshotRestoreTest, by, args, o.restoreTestEnded)
}

// restoreTestEnded publishes the result of a restore test. It publishes nothing if the test was stopped, or if an
// operator requested the test and this host lacks something that the test needs.
func (o *Operator) restoreTestEnded(ctx context.Context, j backup.Job) {
	if errors.Is(j.Err, backup.ErrEnded) {
		o.opt.Logger.Warn("restore test stopped on this host", "error", j.Err)
		return
	}
	j.Err = unprovable(j)
	if j.Err != nil && j.Outcome.Unprovable != "" && j.By != schedule { // the operator sees the job's error
		o.opt.Logger.Warn("restore test not run on this host", "error", j.Err)
		return
	}
	if n := len(j.Outcome.Snapshots); j.Err == nil && n != 1 {
		j.Err = fmt.Errorf("the job reported %d snapshots instead of 1", n)
	}
	if j.Err != nil {
		o.opt.Logger.Error("restore test failed", "error", j.Err)
		o.note(ctx, "RESTORE_TEST_FAILED", j.Err.Error())
	} else {
		o.note(ctx, "RESTORE_TEST_PASSED", fmt.Sprintf("restore test of snapshot %s passed, run by %s: etcd %s "+
			"served its %d keys",
			j.Outcome.Snapshots[0].Name, j.By, j.Outcome.Served, j.Outcome.Snapshots[0].Keys))
	}
	err := rewrite(ctx, o, o.keys.RestoreTest(), func(d *record.RestoreTest) {
		d.Failed, d.FailedHost, d.Cause = time.Time{}, "", ""
		if j.Err != nil {
			d.Failed, d.FailedHost, d.Cause = j.Ended, o.opt.Config.Host.Name, j.Err.Error()
			return
		}
		s := j.Outcome.Snapshots[0]
		d.Name, d.RestoreTested, d.Host, d.Revision, d.Keys = s.Name, j.Ended, o.opt.Config.Host.Name, s.Revision,
			s.Keys
		d.Etcd, d.Took = j.Outcome.Served, j.Ended.Sub(j.Started).Seconds()
	})
	if err != nil {
		o.opt.Logger.Error("cannot publish the result of the restore test", "error", err)
	}
}

// unprovable returns the job's error, or an error that names what this host lacks for the test.
func unprovable(j backup.Job) error {
	if j.Err == nil && j.Outcome.Unprovable != "" {
		return errors.New(j.Outcome.Unprovable)
	}
	return j.Err
}
