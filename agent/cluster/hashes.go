// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Hash is a member's hash of all its keys and values at a revision.
type Hash struct {
	Sum uint32
	// Compacted is the revision of the last compaction before the hash's revision. Only hashes with the same Compacted
	// can be compared.
	Compacted int64
	Err       error // why there is no hash
}

// LastCompaction returns the revision of the last compaction, as one voter knows it; 0 if there has been none. etcd
// reports that revision only to a watch that starts before it. Without any compaction such a watch would read the whole
// history, so a read at the first revision comes first: after a compaction, etcd refuses it.
func (c *Client) LastCompaction(ctx context.Context) (int64, error) {
	revision, err := ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (int64, error) {
		first := []clientv3.OpOption{clientv3.WithRev(1), clientv3.WithCountOnly(), clientv3.WithSerializable()}
		_, err := conn.Get(ctx, c.probeKey(), first...)
		if err == nil || !errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
			return 0, err
		}
		watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		for r := range conn.Watch(watching, c.probeKey(), clientv3.WithRev(1)) {
			if r.CompactRevision != 0 {
				return r.CompactRevision, nil
			}
			if err := r.Err(); err != nil {
				return 0, err
			}
		}
		return 0, clientv3.ContextError(ctx, ctx.Err())
	})
	if err != nil {
		return 0, fmt.Errorf("cannot read the revision of the last compaction: %w", err)
	}
	return revision, nil
}

// Hashes returns each member's hash at a revision, by member ID. A member keeps the hashes of the last ten compactions
// since its start, and returns them without a delay. For any other revision it reads its whole database, and accepts no
// write meanwhile, so callers ask only for the revision of a recent compaction. Hashes takes at most the time of one
// call.
func (c *Client) Hashes(ctx context.Context, members []Member, revision int64) map[uint64]Hash {
	var wait sync.WaitGroup
	answers := make([]Hash, len(members))
	for i, m := range members {
		wait.Go(func() { answers[i] = c.hash(ctx, m, revision) })
	}
	wait.Wait()
	out := map[uint64]Hash{}
	for i, m := range members {
		out[m.ID] = answers[i]
	}
	return out
}

func (c *Client) hash(ctx context.Context, m Member, revision int64) Hash {
	if len(m.ClientURLs) == 0 {
		return Hash{Err: errors.New("it has not published its client URL")}
	}
	a, err := once(ctx, c, m.ClientURLs[0], func(ctx context.Context,
		conn *clientv3.Client,
	) (*pb.HashKVResponse, error) {
		// the etcd client's own HashKV would open a connection for every call
		answer, err := pb.NewMaintenanceClient(conn.ActiveConnection()).HashKV(ctx,
			&pb.HashKVRequest{Revision: revision})
		return answer, clientv3.ContextError(ctx, err)
	})
	switch {
	case err != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrFutureRev):
		return Hash{Err: errors.New("it has not applied that revision yet")}
	case err != nil:
		return Hash{Err: err}
	case a.GetHeader().GetMemberId() != m.ID:
		return Hash{Err: errors.New("its client URL leads to another member")}
	}
	return Hash{Sum: a.GetHash(), Compacted: a.GetCompactRevision()}
}
