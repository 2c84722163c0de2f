// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Compact removes the history of all keys before revision. It succeeds if that history is gone already. Each member
// removes it from its database afterwards, in the background.
func (c *Client) Compact(ctx context.Context, revision int64) error {
	_, err := send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.CompactResponse, error) {
		return conn.Compact(ctx, revision)
	})
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
		return fmt.Errorf("cannot compact the history before revision %d: %w", revision, err)
	}
	return nil
}

// defragPoll is the time between two checks of whether a member serves again.
const defragPoll = 500 * time.Millisecond

// Defragment lets the member at the client URL endpoint defragment its database while it runs. The member answers no
// read or write of a client meanwhile. After a failed call the member may continue, so Defragment then returns only
// when the member answers a read again. Only ctx bounds it.
func (c *Client) Defragment(ctx context.Context, endpoint string) error {
	_, err := unbounded(ctx, c, endpoint, func(ctx context.Context,
		conn *clientv3.Client,
	) (*pb.DefragmentResponse, error) {
		// the etcd client's own Defragment would open a connection for every call
		answer, err := pb.NewMaintenanceClient(conn.ActiveConnection()).Defragment(ctx, &pb.DefragmentRequest{})
		return answer, clientv3.ContextError(ctx, err)
	})
	if err == nil || Denied(err) {
		return err
	}
	for !c.reads(ctx, endpoint) {
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(defragPoll):
		}
	}
	return err
}

// reads reports whether the member at endpoint answers a read from its own database.
func (c *Client) reads(ctx context.Context, endpoint string) bool {
	_, err := once(ctx, c, endpoint, func(ctx context.Context, conn *clientv3.Client) (*clientv3.GetResponse, error) {
		return conn.Get(ctx, c.probeKey(), clientv3.WithSerializable(), clientv3.WithCountOnly())
	})
	return err == nil
}

// DisarmNoSpace disarms the NOSPACE alarms of all members, and no other alarm.
func (c *Client) DisarmNoSpace(ctx context.Context) error {
	_, err := send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.AlarmResponse, error) {
		list, err := conn.AlarmList(ctx)
		if err != nil {
			return nil, err
		}
		for _, alarm := range list.Alarms {
			if alarm.Alarm != pb.AlarmType_NOSPACE {
				continue
			}
			one := clientv3.AlarmMember{MemberID: alarm.MemberID, Alarm: alarm.Alarm}
			if _, err = conn.AlarmDisarm(ctx, &one); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
	if err != nil {
		return fmt.Errorf("cannot disarm the NOSPACE alarm: %w", err)
	}
	return nil
}
