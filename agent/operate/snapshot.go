// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Snapshots are the jobs with snapshots, one at a time.
type Snapshots interface {
	Start(ctx context.Context, kind, by string, args []string, done func(backup.Job)) (backup.Job, error)
	Job() backup.Job
}

const (
	// savingTTL is how long the place of who takes a snapshot stays taken after its agent has ended, in seconds.
	savingTTL = 60
	renewals  = 3 // in that time
	// tell bounds telling etcd how a snapshot went.
	tell = 30 * time.Second
)

const cannotSave = "cannot save a snapshot: "

// StartSnapshot starts a job with snapshots.
func (o *Operator) StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob,
	error,
) {
	cannot := "cannot " + req.Do + " snapshots: "
	switch {
	case o.opt.Snapshots == nil:
		return control.SnapshotJob{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"there is no place for them in the configuration",
			"set backup.store.directory or backup.store.s3, and restart quorumd")
	case req.Do == control.SnapshotSave:
		return o.saveNow(ctx, by)
	}
	var args []string
	switch {
	case req.Do == control.SnapshotVerify && req.Name != "":
		args = []string{req.Name}
	case req.Do == control.SnapshotPrune:
		args = []string{map[bool]string{true: "no", false: "yes"}[req.DryRun]}
	}
	return o.start(ctx, cannot, req.Do, by, args, nil)
}

// SnapshotJob gives the job that was started last.
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
			fmt.Sprintf("%s%s is running for %s already, since %s", cannot, job.Kind, job.By,
				job.Started.UTC().Format(time.RFC3339)), "wait until it has ended")
	}
	if err != nil {
		return control.SnapshotJob{}, err
	}
	return shownJob(job), nil
}

// saveNow takes a snapshot because a person asks.
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

// schedule is who asks for a snapshot that is due.
const schedule = "the schedule"

// dueEvery is how often it is tried to take a snapshot that is due.
const dueEvery = 30 * time.Second

// TakeDue takes a snapshot beside the loop if the round has decided that this host does, and prunes then.
func (o *Operator) TakeDue(ctx context.Context, r *round.Round) {
	n := r.Decision.Notes.Backup
	if o.opt.Snapshots == nil || !n.Take {
		return
	}
	o.due.Refresh(ctx, o.opt.Now, dueEvery, tell, func(ctx context.Context) (struct{}, error) {
		_, err := o.save(ctx, schedule, n.Member, func(saved backup.Job) {
			if saved.Err != nil {
				return
			}
			if _, err := o.start(ctx, "", control.SnapshotPrune, schedule, []string{"yes"}, nil); err != nil {
				o.opt.Logger.Warn("snapshots are not pruned", "error", err)
			}
		})
		if err != nil {
			o.opt.Logger.Warn("the snapshot that is due is not taken", "error", err)
		}
		return struct{}{}, err
	})
}

// save takes a snapshot of a member, unless some agent of the cluster is taking one.
func (o *Operator) save(ctx context.Context, by string, member uint64, then func(backup.Job)) (control.SnapshotJob,
	error,
) {
	lease, err := o.claim(ctx)
	if errors.Is(err, errFull) && by != schedule {
		o.opt.Logger.Warn("the place of who takes a snapshot is not taken: etcd's database is full")
		lease, err = 0, nil // a person wants one before room is made; two at once cost, and harm nothing
	}
	if err != nil {
		return control.SnapshotJob{}, err
	}
	over := make(chan struct{})
	job, err := o.start(ctx, cannotSave, control.SnapshotSave, by, []string{strconv.FormatUint(member, 16)},
		func(j backup.Job) {
			close(over)
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), tell)
			defer cancel()
			o.saved(again, j)
			o.unclaim(again, lease)
			o.opt.Wake()
			if then != nil {
				then(j)
			}
		})
	if err != nil {
		o.unclaim(context.WithoutCancel(ctx), lease)
		return job, err
	}
	if lease != 0 {
		go o.hold(context.WithoutCancel(ctx), lease, over)
	}
	return job, nil
}

// errFull is why nobody can take the place: etcd takes no more writes.
var errFull = errors.New(cannotSave + "etcd's database is full, and it takes no more writes: make room, or ask for " +
	"one with quorumctl snapshot save")

// claim takes the one place for who takes a snapshot.
func (o *Operator) claim(ctx context.Context) (clientv3.LeaseID, error) {
	const hint = "without a quorum no snapshot is taken: nobody knows whether another is"
	value, err := record.Encode(record.Saving{Host: o.opt.Config.Host.Name, Since: o.opt.Wall()})
	if err != nil {
		return 0, err
	}
	lease, _, err := o.opt.Etcd.Grant(ctx, savingTTL)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return 0, errFull
	}
	if err != nil {
		return 0, o.refuseCall(cannotSave, err, hint)
	}
	key := o.keys.Saving()
	done, err := o.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
		clientv3.OpPut(key, string(value), clientv3.WithLease(lease)))
	if err == nil && done.Succeeded {
		return lease, nil
	}
	o.unclaim(context.WithoutCancel(ctx), lease)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return 0, errFull
	}
	if err != nil {
		return 0, o.refuseCall(cannotSave, err, hint)
	}
	who := "another agent"
	if found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: key}); err == nil && len(found.Pairs) == 1 {
		if s, err := record.Decode[record.Saving](found.Pairs[0].Value); err == nil {
			who = s.Host
		}
	}
	return 0, refuse(control.Conflicts, control.CodeSnapshotRunning, cannotSave+who+" is taking one",
		"wait until it has ended: it is done once at a time in a cluster")
}

// hold renews the place until the job is over.
func (o *Operator) hold(ctx context.Context, lease clientv3.LeaseID, over <-chan struct{}) {
	ticker := time.NewTicker(savingTTL * time.Second / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		if _, err := o.opt.Etcd.KeepAliveOnce(ctx, lease); err != nil { // two at once do no harm, they only cost
			o.opt.Logger.Warn("the place of who takes a snapshot is not renewed", "error", err)
		}
	}
}

func (o *Operator) unclaim(ctx context.Context, lease clientv3.LeaseID) {
	if lease == 0 { // it was never taken
		return
	}
	if err := o.opt.Etcd.Revoke(ctx, lease); err != nil { // it ends by itself
		o.opt.Logger.Warn("the place of who takes a snapshot is not given back", "error", err)
	}
}

// saved tells the cluster how a snapshot went.
func (o *Operator) saved(ctx context.Context, j backup.Job) {
	if n := len(j.Outcome.Snapshots); j.Err == nil && n != 1 {
		j.Err = fmt.Errorf("the job told of %d snapshots, and one was to be saved", n)
	}
	change := func(b *record.Backup) {
		b.Failed, b.FailedHost, b.Cause = time.Time{}, "", ""
		if j.Err != nil {
			b.Failed, b.FailedHost, b.Cause = j.Ended, o.opt.Config.Host.Name, j.Err.Error()
			return
		}
		s := j.Outcome.Snapshots[0]
		b.Name, b.Saved, b.Host, b.Revision, b.Size = s.Name, s.TakenAt, s.Host, s.Revision, s.Size
	}
	if j.Err != nil {
		o.opt.Logger.Error("no snapshot was saved", "error", j.Err)
		o.note(ctx, "SNAPSHOT_FAILED", j.Err.Error())
	} else {
		o.note(ctx, "SNAPSHOT_SAVED", fmt.Sprintf("snapshot %s saved by %s", j.Outcome.Snapshots[0].Name, j.By))
	}
	var err error
	for range 3 { // somebody else may have written it meanwhile
		var done bool
		if done, err = o.rewriteBackup(ctx, change); done || err != nil {
			break
		}
	}
	if err != nil {
		o.opt.Logger.Error("the cluster is not told how the snapshot went", "error", err)
	}
}

func (o *Operator) rewriteBackup(ctx context.Context, change func(*record.Backup)) (done bool, err error) {
	key := o.keys.Backup()
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: key})
	if err != nil {
		return false, err
	}
	var b record.Backup
	var seen int64
	if len(found.Pairs) == 1 {
		seen = found.Pairs[0].ModRevision
		if b, err = record.Decode[record.Backup](found.Pairs[0].Value); errors.Is(err, record.ErrVersion) {
			return false, err // a newer agent's
		}
	}
	change(&b)
	value, err := record.Encode(b)
	if err != nil {
		return false, err
	}
	answer, err := o.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", seen)},
		clientv3.OpPut(key, string(value)))
	return err == nil && answer.Succeeded, err
}

func shownJob(j backup.Job) control.SnapshotJob {
	out := control.SnapshotJob{
		Number: j.Number, Do: j.Kind, By: j.By, Started: j.Started, Bytes: j.Bytes, Unread: j.Outcome.Unread,
	}
	if !j.Ended.IsZero() {
		out.Ended = &j.Ended
	}
	if j.Err != nil {
		out.Error = j.Err.Error()
	}
	for _, s := range j.Outcome.Snapshots {
		out.Snapshots = append(out.Snapshots, control.Snapshot{
			Name: s.Name, TakenAt: s.TakenAt, Host: s.Host, Member: s.Member, ClusterID: s.ClusterID,
			Etcd: s.EtcdVersion, Revision: s.Revision, Keys: s.Keys, Hash: s.Hash, Size: s.Size,
			StoredSize: s.StoredSize, Encrypted: s.Encrypted(), VerifiedAt: s.VerifiedAt,
		})
	}
	for _, s := range j.Outcome.Strays {
		out.Strays = append(out.Strays, s.Name)
	}
	return out
}
