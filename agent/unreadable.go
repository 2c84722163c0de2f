// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// codeUnreadable is what a request is refused with because of a record that cannot be read.
const codeUnreadable = string(policy.RecordUnreadable)

// unreadable is a record in etcd that could not be read.
type unreadable struct {
	policy.Unreadable
	at int64 // its modification revision
}

// Error says what a person is told.
func (u *unreadable) Error() string { return u.Key + ": " + u.Why }

// decoded reads the record of a pair.
func decoded[T record.Lock | record.Op | record.Rollout](kind policy.RecordKind, pair cluster.Pair) (T, error) {
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

// refuseRead makes of an error of a read what a person is told.
func (a *Agent) refuseRead(cannot string, err error) error {
	if u, is := errors.AsType[*unreadable](err); is {
		return refuse(http.StatusConflict, codeUnreadable, cannot+u.Error(), u.Hint())
	}
	return a.refuseCall(cannot, err, "try again when the cluster has a quorum")
}

// discard deletes a record that cannot be read, if it is still that one.
func (a *Agent) discard(ctx context.Context, u *unreadable, also ...clientv3.Op) error {
	answer, err := a.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(u.Key), "=", u.at)},
		append(also, clientv3.OpDelete(u.Key))...)
	switch {
	case err != nil:
		return a.refuseCall("cannot delete "+u.Key+": ", err, "try again when the cluster has a quorum")
	case !answer.Succeeded:
		return refuse(http.StatusConflict, control.CodeConflict, "cannot delete "+u.Key+": it was written meanwhile",
			"look at it, and try again")
	}
	return nil
}

// abortUnreadable ends a rollout of which the record cannot be read.
func (a *Agent) abortUnreadable(ctx context.Context, u *unreadable, by string) (control.Rollout, error) {
	if err := a.discard(ctx, u); err != nil {
		return control.Rollout{}, err
	}
	text := fmt.Sprintf("its record could not be read, and was deleted by %s: %s", by, u.Why)
	a.note(ctx, "ROLLOUT_ABORTED", text)
	a.Wake()
	return control.Rollout{State: control.RolloutAborted, Text: text, By: by}, nil
}

// releaseUnreadable deletes the record of an operation that cannot be read. Nobody knows whose it was, so a rollout
// that runs is stopped.
func (a *Agent) releaseUnreadable(ctx context.Context, u *unreadable, reason, by string) error {
	var also []clientv3.Op
	found, _, err := a.readRollout(ctx)
	if _, is := errors.AsType[*unreadable](err); err != nil && !is {
		return a.refuseRead("cannot release the operation: ", err)
	}
	if err == nil && found != nil && found.State == record.RolloutRunning {
		found.State, found.Text = record.RolloutStopped,
			"an operation whose record could not be read was released by "+by
		value, err := record.Encode(*found)
		if err != nil {
			return fmt.Errorf("cannot release the operation: %w", err)
		}
		also = append(also, clientv3.OpPut(a.keys.Rollout(), string(value)))
	}
	if err := a.discard(ctx, u, also...); err != nil {
		return err
	}
	a.note(ctx, "RELEASED", "an operation whose record could not be read was released by "+by+": "+reason+" ("+u.Why+
		")")
	a.Wake()
	return nil
}
