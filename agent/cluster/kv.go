// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Pair is a key with its value and the revisions at which it was made and last changed.
type Pair struct {
	Key            string
	Value          []byte
	CreateRevision int64
	ModRevision    int64
	Lease          int64
}

// Range is an answer to a read.
type Range struct {
	Revision int64 // of the store when it was read
	Pairs    []Pair
	Counted  int // keys of the spans that were only counted
}

// Txn commits then if all conditions hold. It asks one endpoint, once: with an error the outcome
// is unknown.
func (c *Client) Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (*clientv3.TxnResponse, error) {
	return tell(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.TxnResponse, error) {
		return conn.Txn(ctx).If(conditions...).Then(then...).Commit()
	})
}

// Grant makes a lease of ttl seconds and gives the time that the server chose, which may be
// longer: at least 1.5 times its election timeout.
func (c *Client) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	answer, err := tell(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return conn.Grant(ctx, ttl)
	})
	if err != nil {
		return 0, 0, err
	}
	return answer.ID, answer.TTL, nil
}

// KeepAliveOnce renews a lease, through whichever voter answers, and gives the seconds it has. A
// lease that is gone is rpctypes.ErrLeaseNotFound.
func (c *Client) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	return ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (int64, error) {
		return keepAlive(ctx, conn, id)
	})
}

// keepAlive asks once. The etcd client's own KeepAliveOnce asks again without a pause until its
// context ends, which is a busy loop while nothing listens at the endpoint.
func keepAlive(ctx context.Context, conn *clientv3.Client, id clientv3.LeaseID) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := pb.NewLeaseClient(conn.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return 0, clientv3.ContextError(ctx, err)
	}
	err = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)})
	if err != nil && !errors.Is(err, io.EOF) { // the cause of EOF is for Recv to tell
		return 0, clientv3.ContextError(ctx, err)
	}
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return 0, clientv3.ContextError(ctx, err)
	case answer.GetTTL() <= 0:
		return 0, rpctypes.ErrLeaseNotFound
	}
	return answer.GetTTL(), nil
}

// Revoke ends a lease, through whichever voter answers.
func (c *Client) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	_, err := ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.LeaseRevokeResponse, error) {
		return conn.Revoke(ctx, id)
	})
	return err
}

// Span names the keys from Start up to but without End. With an empty End it is Start alone. Of one
// with Count they are only counted.
type Span struct {
	Start, End string
	Count      bool
}

func (s Span) options() (out []clientv3.OpOption) {
	if s.End != "" {
		out = append(out, clientv3.WithRange(s.End))
	}
	if s.Count {
		out = append(out, clientv3.WithCountOnly())
	}
	return out
}

// Read gives all pairs of these spans as they are now, at one revision: a linearizable read. It is
// one request, however many spans there are.
func (c *Client) Read(ctx context.Context, spans ...Span) (Range, error) {
	if len(spans) == 1 && !spans[0].Count {
		return c.read(ctx, spans[0].Start, spans[0].options()...)
	}
	gets := make([]clientv3.Op, len(spans))
	for i, span := range spans {
		gets[i] = clientv3.OpGet(span.Start, span.options()...)
	}
	answer, err := ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.TxnResponse, error) {
		return conn.Txn(ctx).Then(gets...).Commit()
	})
	if err != nil {
		return Range{}, err
	}
	out := Range{Revision: answer.Header.GetRevision()}
	for i, part := range answer.Responses {
		out.add(part.GetResponseRange().GetKvs())
		if spans[i].Count {
			out.Counted += int(part.GetResponseRange().GetCount())
		}
	}
	return out, nil
}

// ReadLast gives the last limit pairs of a prefix, newest key first.
func (c *Client) ReadLast(ctx context.Context, prefix string, limit int64) (Range, error) {
	return c.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(limit),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
}

func (c *Client) read(ctx context.Context, key string, options ...clientv3.OpOption) (Range, error) {
	answer, err := ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.GetResponse, error) {
		return conn.Get(ctx, key, options...)
	})
	if err != nil {
		return Range{}, err
	}
	out := Range{Revision: answer.Header.GetRevision()}
	out.add(answer.Kvs)
	return out, nil
}

func (r *Range) add(kvs []*mvccpb.KeyValue) {
	for _, kv := range kvs {
		r.Pairs = append(r.Pairs, Pair{
			Key: string(kv.Key), Value: kv.Value, CreateRevision: kv.CreateRevision,
			ModRevision: kv.ModRevision, Lease: kv.Lease,
		})
	}
}
