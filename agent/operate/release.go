// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// ReleaseOp deletes the record of the operation in flight, as an operator requested.
func (o *Operator) ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error {
	const cannot = "cannot release the operation: "
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Op()})
	switch {
	case err != nil:
		return o.refuseCall(cannot, err, "try again when the cluster has a quorum")
	case len(found.Pairs) == 0:
		return o.releaseOrphaned(ctx, req, by)
	}
	op, err := decoded[record.Op](policy.RecordOp, found.Pairs[0])
	if u, unread := errors.AsType[*unreadable](err); unread {
		return o.releaseUnreadable(ctx, u, req.Reason, by)
	}
	// the record has changed since it was displayed
	if r := o.opt.Rounds.Current(); r != nil && r.Op != nil && r.OpAt != found.Pairs[0].ModRevision {
		return refuse(control.Conflicts, control.CodeConflict, cannot+"it has changed in the meantime",
			"check it with quorumctl operation show, then try again")
	}
	conditions, then, err := o.releaseTxn(ctx, op, found.Pairs[0].ModRevision, req.Reason, by, cannot)
	if err != nil {
		return err
	}
	answer, err := o.opt.Etcd.Txn(ctx, conditions, then...)
	switch {
	case err != nil:
		return o.refuseCall(cannot, err, "check whether it still exists: quorumctl operation show")
	case !answer.Succeeded:
		return refuse(control.Conflicts, control.CodeConflict, cannot+"it has changed in the meantime",
			"check it with quorumctl operation show, then try again")
	}
	o.noteReleased(ctx, op, req.Reason, by)
	o.opt.Wake()
	return nil
}

// noteReleased adds the release of an operation to the history.
func (o *Operator) noteReleased(ctx context.Context, op record.Op, reason, by string) {
	o.note(ctx, "RELEASED", op.Kind+" of "+op.HostName+" in phase "+op.Phase+" released by "+by+": "+reason)
}

// releaseTxn returns the conditions and the operations that release an operation, provided that its record still has
// the modification revision at.
func (o *Operator) releaseTxn(ctx context.Context, op record.Op, at int64, reason, by, cannot string) ([]clientv3.Cmp,
	[]clientv3.Op, error,
) {
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(o.keys.Op()), "=", at)}
	then := []clientv3.Op{clientv3.OpDelete(o.keys.Op())}
	if policy.TakesDown(op.Kind) {
		put, err := o.releaseOf(op, reason, by)
		if err != nil {
			return nil, nil, refuse(control.Conflicts, control.CodeConflict, cannot+err.Error(),
				"give a shorter --reason")
		}
		then = append(then, put)
	}
	unmoved, stop, err := o.stopFor(ctx, op, by)
	if err != nil {
		return nil, nil, o.refuseCall(cannot, err, "try again when the cluster has a quorum")
	}
	return append(conditions, unmoved...), append(then, stop...), nil
}

// releaseOrphaned releases an operation whose record was deleted, so that only its own host still reports it.
func (o *Operator) releaseOrphaned(ctx context.Context, req control.ReleaseRequest, by string) error {
	const cannot = "cannot release the operation: "
	r, err := o.current(cannot)
	if err != nil {
		return err
	}
	op, found := orphaned(r)
	if !found {
		return refuse(control.Conflicts, control.CodeConflict, cannot+"there is none", "quorumctl operation show")
	}
	put, err := o.releaseOf(op, req.Reason, by)
	if err != nil {
		return refuse(control.Conflicts, control.CodeConflict, cannot+err.Error(), "give a shorter --reason")
	}
	unmoved, stop, err := o.stopFor(ctx, op, by)
	if err != nil {
		return o.refuseCall(cannot, err, "try again when the cluster has a quorum")
	}
	absent := clientv3.Compare(clientv3.ModRevision(o.keys.Op()), "=", 0)
	answer, err := o.opt.Etcd.Txn(ctx, append(unmoved, absent), append(stop, put)...)
	switch {
	case err != nil:
		return o.refuseCall(cannot, err, "quorumctl operation show")
	case !answer.Succeeded:
		return refuse(control.Conflicts, control.CodeConflict, cannot+"it has changed in the meantime",
			"check it with quorumctl operation show, then try again")
	}
	o.note(ctx, "RELEASED", op.Kind+" of "+op.HostName+" (its record was already deleted) released by "+by+": "+
		req.Reason)
	o.opt.Wake()
	return nil
}

// orphaned returns an operation that its host reports although the operation record was deleted.
func orphaned(r *round.Round) (record.Op, bool) {
	for _, h := range r.Hosts {
		if r.Released.InOperation(h) {
			return record.Op{Kind: policy.KindCycle, Host: h.ID, HostName: h.Name, Work: h.Wants, Started: h.Turn}, true
		}
	}
	return record.Op{}, false
}

// releaseOf returns the write that records the release of an operation. Without the release record, the operation's
// host would assume that its operation record was lost, and write it again.
func (o *Operator) releaseOf(op record.Op, reason, by string) (clientv3.Op, error) {
	value, err := record.Encode(record.Release{
		Host: op.Host, Started: op.Started, Time: o.opt.Wall().UTC(), By: by, Reason: reason,
	})
	return clientv3.OpPut(o.keys.Release(op.Host), string(value)), err
}

// stopFor returns the conditions and operations that stop the rollout to which a released operation belongs. They
// belong to the transaction that releases the operation, because the next host must not start as if the released host
// were back.
func (o *Operator) stopFor(ctx context.Context, op record.Op, by string) ([]clientv3.Cmp, []clientv3.Op, error) {
	found, at, err := o.readRollout(ctx)
	if _, unread := errors.AsType[*unreadable](err); unread {
		return nil, nil, nil // nothing to stop: an unreadable rollout does not continue
	}
	released := &policy.Op{Kind: op.Kind, Host: op.Host}
	unmoved := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(o.keys.Rollout()), "=", at)}
	if err != nil || found == nil || !policy.RolloutState(found.State).ReleaseStops(released, found.Waiting()) {
		return unmoved, nil, err
	}
	found.State, found.Text = record.RolloutStopped, "the operation of "+op.HostName+" was released by "+by
	value, err := record.Encode(*found)
	return unmoved, []clientv3.Op{clientv3.OpPut(o.keys.Rollout(), string(value))}, err
}

// releaseUnreadable deletes an operation record that cannot be read. Because the operation's host is unknown, it also
// stops a running rollout.
func (o *Operator) releaseUnreadable(ctx context.Context, u *unreadable, reason, by string) error {
	var also []clientv3.Op
	found, _, err := o.readRollout(ctx)
	if _, is := errors.AsType[*unreadable](err); err != nil && !is {
		return o.refuseRead("cannot release the operation: ", err)
	}
	if err == nil && found != nil && policy.RolloutState(found.State).ReleaseStops(nil, nil) {
		found.State, found.Text = record.RolloutStopped,
			"an operation with an unreadable record was released by "+by
		value, err := record.Encode(*found)
		if err != nil {
			return fmt.Errorf("cannot release the operation: %w", err)
		}
		also = append(also, clientv3.OpPut(o.keys.Rollout(), string(value)))
	}
	if err := o.discard(ctx, u, also...); err != nil {
		return err
	}
	o.note(ctx, "RELEASED", "an operation with an unreadable record was released by "+by+": "+reason+" ("+u.Why+
		")")
	o.opt.Wake()
	return nil
}
