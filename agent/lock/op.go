// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/record"
)

// Begin writes the operation record, under the lock and only if no operation record exists.
func (l *Lock) Begin(ctx context.Context, op record.Op) error {
	return l.write(ctx, op, 0)
}

// Advance rewrites the operation record, under the lock and only if the record is unchanged since revision seen. It
// sets the record's token to the lock's, so advancing an orphaned record adopts it. The same transaction writes the
// extra records.
func (l *Lock) Advance(ctx context.Context, op record.Op, seen int64, also ...Extra) error {
	return l.write(ctx, op, seen, also...)
}

// Extra is an additional record to replace in the same transaction, provided that it is unchanged since revision At.
type Extra struct {
	Key   string
	At    int64
	Value []byte
}

// End deletes the operation record, and writes a line of history and the extra records in the same transaction.
func (l *Lock) End(ctx context.Context, seen int64, historyKey string, line record.Line, also ...Extra) error {
	value, err := record.Encode(line)
	if err != nil {
		return err
	}
	conditions, more := replaced(also)
	then := append([]clientv3.Op{
		clientv3.OpDelete(l.opt.Keys.Op()), clientv3.OpPut(historyKey, string(value)),
		clientv3.OpPut(l.opt.Keys.Ended(), string(value)),
	}, more...)
	return l.commit(ctx, "end the operation record", seen, conditions, then...)
}

// replaced returns the conditions that the extra records are unchanged, and the operations that replace them.
func replaced(also []Extra) (conditions []clientv3.Cmp, then []clientv3.Op) {
	for _, a := range also {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(a.Key), "=", a.At))
		then = append(then, clientv3.OpPut(a.Key, string(a.Value)))
	}
	return conditions, then
}

func (l *Lock) write(ctx context.Context, op record.Op, seen int64, also ...Extra) error {
	op.Token = l.Token()
	value, err := record.Encode(op)
	if err != nil {
		return err
	}
	conditions, then := replaced(also)
	return l.commit(ctx, "write the operation record", seen, conditions,
		append([]clientv3.Op{clientv3.OpPut(l.opt.Keys.Op(), string(value))}, then...)...)
}

// Write replaces other records under the lock. It returns ErrTaken if one of them has changed, if there is an
// operation, or if another host holds the lock.
func (l *Lock) Write(ctx context.Context, also ...Extra) error {
	conditions, then := replaced(also)
	return l.commit(ctx, "write records under the lock", 0, conditions, then...)
}

func (l *Lock) commit(ctx context.Context, doing string, seen int64, more []clientv3.Cmp, then ...clientv3.Op) error {
	token := l.Token()
	if token == 0 || !l.MayAct() {
		return ErrLost
	}
	answer, err := l.store.Txn(ctx, append([]clientv3.Cmp{l.isOurs(token), l.opIs(seen)}, more...), then...)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", doing, err)
	}
	if !answer.Succeeded {
		return fmt.Errorf("cannot %s: %w", doing, ErrTaken)
	}
	return nil
}

// isLeaseGone reports whether etcd's error means that the lease does not exist.
func isLeaseGone(err error) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound)
}
