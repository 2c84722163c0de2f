// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Pair is a key with its value and the revisions of its creation and last change.
type Pair struct {
	Key            string
	Value          []byte
	CreateRevision int64
	ModRevision    int64
	Lease          int64
	Oversized      int // size of a value omitted as too large, answerBytes if its size is unknown; otherwise 0
}

// Range is the answer to a read.
type Range struct {
	Revision int64 // the store's revision at the time of the read
	Pairs    []Pair
	Counted  int // the number of keys in spans that were only counted
	// Rest is the first key that was not read because the read had reached its bounds; empty if all keys were read.
	Rest string
}

// Txn commits the operations in then if all conditions hold. It calls one endpoint, once. After an error, it is unknown
// whether the transaction was committed.
func (c *Client) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.TxnResponse, error) {
		return conn.Txn(ctx).If(conditions...).Then(then...).Commit()
	})
}

// Grant creates a lease of ttl seconds and returns the TTL that the server chose. That TTL may be longer, because it is
// at least 1.5 times the server's election timeout.
func (c *Client) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	answer, err := send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return conn.Grant(ctx, ttl)
	})
	if err != nil {
		return 0, 0, err
	}
	return answer.ID, answer.TTL, nil
}

// KeepAliveOnce renews a lease through any voter that answers, and returns its TTL in seconds. The error for an expired
// lease is rpctypes.ErrLeaseNotFound. It never calls a cluster other than this host's.
func (c *Client) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	if c.listIsForeign() {
		return 0, ErrForeignCluster
	}
	return ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (int64, error) {
		return keepAlive(ctx, conn, id)
	})
}

// keepAlive sends one request. The etcd client's own KeepAliveOnce retries without a pause until its context ends,
// which is a busy loop while nothing listens at the endpoint.
func keepAlive(ctx context.Context, conn *clientv3.Client, id clientv3.LeaseID) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := pb.NewLeaseClient(conn.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return 0, clientv3.ContextError(ctx, err)
	}
	err = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)})
	if err != nil && !errors.Is(err, io.EOF) { // Recv returns the cause of EOF
		return 0, clientv3.ContextError(ctx, err)
	}
	answer, err := stream.Recv()
	if err != nil {
		return 0, clientv3.ContextError(ctx, err)
	}
	// etcd counts a stream that is cut off as failed ("Unavailable"), and its alerting rules fire on that. Therefore,
	// close the stream cleanly. The answer has already arrived, and the delay is short.
	if stream.CloseSend() == nil {
		late := time.AfterFunc(closeTimeout, cancel)
		defer late.Stop()
		_, _ = stream.Recv() // wait for the end of the stream
	}
	if answer.GetTTL() <= 0 {
		return 0, rpctypes.ErrLeaseNotFound
	}
	return answer.GetTTL(), nil
}

// closeTimeout bounds the wait for the end of a stream.
const closeTimeout = 200 * time.Millisecond

// SinceRenewal returns the time since a lease was last renewed, to the second.
func (c *Client) SinceRenewal(ctx context.Context, id int64) (time.Duration, error) {
	if c.listIsForeign() {
		return 0, ErrForeignCluster
	}
	answer, err := ask(ctx, c,
		func(ctx context.Context, conn *clientv3.Client) (*clientv3.LeaseTimeToLiveResponse, error) {
			return conn.TimeToLive(ctx, clientv3.LeaseID(id))
		})
	switch {
	case err != nil:
		return 0, err
	case answer.TTL <= 0:
		return 0, rpctypes.ErrLeaseNotFound
	}
	return time.Duration(max(0, answer.GrantedTTL-answer.TTL)) * time.Second, nil
}

// Revoke ends a lease through any voter that answers.
func (c *Client) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	if c.listIsForeign() {
		return ErrForeignCluster
	}
	_, err := ask(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.LeaseRevokeResponse, error) {
		return conn.Revoke(ctx, id)
	})
	return err
}

// Span selects the keys from Start to End, excluding End; with an empty End, only Start. With Count they are only
// counted. With First only the first key is read, without its value.
type Span struct {
	Start, End string
	Count      bool
	First      bool
}

func (s Span) options() (out []clientv3.OpOption) {
	if s.End != "" {
		out = append(out, clientv3.WithRange(s.End))
	}
	if s.Count {
		out = append(out, clientv3.WithCountOnly())
	}
	if s.First {
		out = append(out, clientv3.WithLimit(1), clientv3.WithKeysOnly())
	}
	return out
}

// Read returns all current pairs of the spans at one revision, with a linearizable read. It is one request for any
// number of spans as long as each is small; otherwise it reads page by page. It is bounded: a value over the limit is
// omitted, and if there are too many keys or bytes, the remaining keys are left for the next read.
func (c *Client) Read(ctx context.Context, spans ...Span) (Range, error) {
	return c.readAt(ctx, "", spans)
}

// ReadAt returns all pairs of the spans in the store of the member at endpoint, at one revision. It needs no quorum, so
// the answer may be stale: it contains what that member has applied. It is current if the member leads and a quorum
// confirms that. ReadAt is bounded like Read.
func (c *Client) ReadAt(ctx context.Context, endpoint string, spans ...Span) (Range, error) {
	return c.readAt(ctx, endpoint, spans)
}

func (c *Client) readAt(ctx context.Context, endpoint string, spans []Span) (Range, error) {
	r := &reading{c: c, at: endpoint}
	out, err := r.readOnce(ctx, spans)
	if tooLarge(err) {
		out, err = r.readPaged(ctx, spans)
	}
	if compacted(err) { // etcd compacted the revision between two pages
		return r.readPaged(ctx, spans)
	}
	return out, err
}

// readOnce reads all spans in one request, and then the rest of large spans page by page. If a span has keys to skip,
// it reads all spans page by page.
func (r *reading) readOnce(ctx context.Context, spans []Span) (Range, error) {
	c := r.c
	gets := make([]clientv3.Op, len(spans))
	for i, span := range spans {
		options := span.options()
		if span.End != "" && !span.Count && !span.First {
			if len(c.skips.of(span, time.Now())) > 0 {
				return r.readPaged(ctx, spans)
			}
			options = append(options, clientv3.WithLimit(int64(c.skips.size())))
		}
		if r.at != "" {
			options = append(options, clientv3.WithSerializable())
		}
		gets[i] = clientv3.OpGet(span.Start, options...)
	}
	answer, err := askAt(ctx, r, func(ctx context.Context, conn *clientv3.Client) (*clientv3.TxnResponse, error) {
		return conn.Txn(ctx).Then(gets...).Commit()
	})
	if err != nil {
		return Range{}, err
	}
	r.out.Revision = answer.Header.GetRevision()
	for i, part := range answer.Responses {
		found := part.GetResponseRange()
		if spans[i].Count {
			r.out.Counted += int(found.GetCount())
		}
		if spans[i].End == "" || spans[i].Count || spans[i].First || len(found.GetKvs()) == 0 {
			for _, kv := range found.GetKvs() {
				r.add(kv)
			}
			continue
		}
		next := r.take(found.GetKvs(), c.skips.size())
		if found.GetMore() {
			if err := r.pages(ctx, next, spans[i].End); err != nil {
				return Range{}, err
			}
		}
		r.flush()
	}
	return r.out, nil
}
