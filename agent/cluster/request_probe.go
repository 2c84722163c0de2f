// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// ProbeRead makes a linearizable read through the member at a client URL. Only ctx limits its duration.
func (c *Client) ProbeRead(ctx context.Context, endpoint, key string) error {
	_, err := unbounded(ctx, c, endpoint, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.GetResponse, error) {
		return conn.Get(ctx, key, clientv3.WithCountOnly())
	})
	return err
}

// ProbeWrite makes a write that changes nothing, through the member at a client URL. Only ctx limits its duration.
//
// The transaction deletes key if its version is negative, which it never is. etcd replicates every transaction that
// contains a deletion: all members sync the entry to their logs, and each applies it. But nothing changes, so there is
// no new revision, no event for watchers and nothing for a compaction to collect. A deletion needs no space, so etcd
// accepts the transaction at its quota as well, and the transaction never raises an alarm.
func (c *Client) ProbeWrite(ctx context.Context, endpoint, key string) error {
	_, err := unbounded(ctx, c, endpoint, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.TxnResponse, error) {
		return conn.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "<", 0)).Then(clientv3.OpDelete(key)).Commit()
	})
	return err
}

// Unanswered reports whether a request has timed out: either no response arrived, or the member responded that Raft
// had not confirmed the request in time. Other errors do not count: the connection failed, etcd refused the
// request, or etcd named a cause such as a lost leader.
func Unanswered(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || isEtcd(err, rpctypes.ErrTimeout) {
		return true
	}
	var known rpctypes.EtcdError
	return err != nil && !errors.As(rpctypes.Error(err), &known) && code(err) == codes.DeadlineExceeded
}
