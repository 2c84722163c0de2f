// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// unreadable is a record in etcd that cannot be read.
type unreadable struct {
	policy.Unreadable
	at int64 // the record's modification revision
}

// Error returns the text for the operator.
func (u *unreadable) Error() string { return u.Key + ": " + u.Why }

// decoded decodes the record in a key-value pair. The error for a record that cannot be read is an *unreadable.
func decoded[T record.Lock | record.Op | record.Rollout | record.Size](kind policy.RecordKind,
	pair cluster.Pair,
) (T, error) {
	var r T
	err := round.Oversized[T](pair)
	if err == nil {
		r, err = record.Decode[T](pair.Value)
	}
	if err != nil {
		return r, &unreadable{policy.Unreadable{Kind: kind, Key: pair.Key, Why: err.Error()}, pair.ModRevision}
	}
	return r, nil
}

// discard deletes an unreadable record if it is unchanged since it was read.
func (o *Operator) discard(ctx context.Context, u *unreadable, also ...clientv3.Op) error {
	answer, err := o.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(u.Key), "=", u.at)},
		append(also, clientv3.OpDelete(u.Key))...)
	switch {
	case err != nil:
		return o.refuseCall("cannot delete "+u.Key+": ", err, "try again when the cluster has a quorum")
	case !answer.Succeeded:
		return refuse(control.Conflicts, control.CodeConflict, "cannot delete "+u.Key+
			": it has changed in the meantime", "check it, then try again")
	}
	return nil
}
