// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// jobClaim is the cluster-wide claim of an agent on a snapshot job or a restore test.
type jobClaim struct {
	key    string
	cannot string // beginning of the job's error messages
	does   string // what the holder of the claim is doing, for messages
}

const (
	// claimTTL is how long a claim outlives its agent, in seconds.
	claimTTL = 60
	renewals = 3 // renewals within claimTTL
)

// startExclusive starts a job that only one agent of the cluster may run at a time, and calls done at its end. If
// etcd's database is full, an operator's job runs without a claim.
func (o *Operator) startExclusive(ctx context.Context, p jobClaim, kind, by string, args []string,
	done func(context.Context, backup.Job),
) (control.SnapshotJob, error) {
	lease, err := o.claim(ctx, p)
	if errors.Is(err, errFull) && by != schedule {
		o.opt.Logger.Warn("snapshot job runs without a cluster-wide claim: etcd's database is full", "job", kind)
		lease, err = 0, nil // operators save a snapshot before they free space; two concurrent jobs do no harm
	}
	if err != nil {
		return control.SnapshotJob{}, err
	}
	over := make(chan struct{})
	job, err := o.start(ctx, p.cannot, kind, by, args, func(j backup.Job) {
		close(over)
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		done(again, j)
		o.unclaim(again, lease)
		o.opt.Wake()
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

// errFull means that no agent can take a claim, because etcd accepts no writes.
var errFull = errors.New("etcd rejects writes because its database is full: free space, or start the job by hand: " +
	"quorumctl snapshot save, or test-restore")

// claim takes the claim on a job. If another agent holds it, the error names that agent's host.
func (o *Operator) claim(ctx context.Context, p jobClaim) (clientv3.LeaseID, error) {
	const hint = "without a quorum it is unknown whether another host already runs this job"
	value, err := record.Encode(record.Saving{Host: o.opt.Config.Host.Name, Since: o.opt.Wall()})
	if err != nil {
		return 0, err
	}
	lease, _, err := o.opt.Etcd.Grant(ctx, claimTTL)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return 0, errFull
	}
	if err != nil {
		return 0, o.refuseCall(p.cannot, err, hint)
	}
	done, err := o.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(p.key), "=", 0)},
		clientv3.OpPut(p.key, string(value), clientv3.WithLease(lease)))
	if err == nil && done.Succeeded {
		return lease, nil
	}
	o.unclaim(context.WithoutCancel(ctx), lease)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return 0, errFull
	}
	if err != nil {
		return 0, o.refuseCall(p.cannot, err, hint)
	}
	who := "another agent"
	if found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: p.key}); err == nil && len(found.Pairs) == 1 {
		if s, err := record.Decode[record.Saving](found.Pairs[0].Value); err == nil {
			who = s.Host
		}
	}
	return 0, refuse(control.Conflicts, control.CodeSnapshotRunning, p.cannot+who+" "+p.does,
		"wait until that job has finished: only one runs at a time in a cluster")
}

// hold renews a claim until the job has ended.
func (o *Operator) hold(ctx context.Context, lease clientv3.LeaseID, over <-chan struct{}) {
	ticker := time.NewTicker(claimTTL * time.Second / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		// After an error the job continues, because two concurrent jobs do no harm.
		if _, err := o.opt.Etcd.KeepAliveOnce(ctx, lease); err != nil {
			o.opt.Logger.Warn("cannot renew the claim on the snapshot job; another host may take it over",
				"error", err)
		}
	}
}

func (o *Operator) unclaim(ctx context.Context, lease clientv3.LeaseID) {
	if lease == 0 { // the job runs without a claim
		return
	}
	if err := o.opt.Etcd.Revoke(ctx, lease); err != nil { // the lease expires by itself
		o.opt.Logger.Warn("cannot release the claim on the snapshot job; it expires with its lease",
			"error", err)
	}
}

// extraWrites returns conditions and operations to add to the transaction that changes a record.
type extraWrites func(ctx context.Context) ([]clientv3.Cmp, []clientv3.Op, error)

// rewrite changes a record of job results. Another agent may change the record at the same time, so rewrite tries up to
// three times. It returns no error if all three attempts conflict with such changes.
func rewrite[T record.Backup | record.RestoreTest](ctx context.Context, o *Operator, key string, change func(*T),
	more ...extraWrites,
) error {
	var err error
	for range 3 {
		var done bool
		if done, err = rewriteOnce(ctx, o, key, change, more); done || err != nil {
			break
		}
	}
	return err
}

func rewriteOnce[T record.Backup | record.RestoreTest](ctx context.Context, o *Operator, key string, change func(*T),
	more []extraWrites,
) (done bool, err error) {
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: key})
	if err != nil {
		return false, err
	}
	var b T
	var at int64
	if len(found.Pairs) == 1 {
		at = found.Pairs[0].ModRevision
		if b, err = record.Decode[T](found.Pairs[0].Value); errors.Is(err, record.ErrVersion) {
			return false, err // written by a newer agent
		}
	}
	change(&b)
	value, err := record.Encode(b)
	if err != nil {
		return false, err
	}
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at)}
	puts := []clientv3.Op{clientv3.OpPut(key, string(value))}
	for _, other := range more {
		on, do, err := other(ctx)
		if err != nil {
			return false, err
		}
		conditions, puts = append(conditions, on...), append(puts, do...)
	}
	answer, err := o.opt.Etcd.Txn(ctx, conditions, puts...)
	return err == nil && answer.Succeeded, err
}
