// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/cluster"
)

// store is etcd's key-value store with its revisions and leases. What is applied to it has been
// committed.
type store struct {
	revision int64
	keys     []string // sorted
	entries  map[string]*entry
	leases   map[int64]*lease
	nextID   int64
	writes   int
	bytes    int
}

type entry struct {
	value           []byte
	created, edited int64
	lease           int64
	by              *process // that wrote it last
}

type lease struct {
	id   int64
	ttl  time.Duration
	ends time.Duration
}

func newStore() *store {
	return &store{revision: 1, entries: map[string]*entry{}, leases: map[int64]*lease{}}
}

func (s *store) pair(key string) cluster.Pair {
	e := s.entries[key]
	return cluster.Pair{Key: key, Value: e.value, CreateRevision: e.created, ModRevision: e.edited, Lease: e.lease}
}

// read gives the pairs of some spans.
func (s *store) read(spans ...cluster.Span) cluster.Range {
	out := cluster.Range{Revision: s.revision}
	for _, span := range spans {
		from, _ := slices.BinarySearch(s.keys, span.Start)
		for _, key := range s.keys[from:] {
			if key != span.Start && key >= span.End {
				break
			}
			if span.Count {
				out.Counted++
				continue
			}
			out.Pairs = append(out.Pairs, s.pair(key))
		}
	}
	return out
}

// readLast gives the last pairs of a prefix, newest key first.
func (s *store) readLast(prefix string, limit int64) cluster.Range {
	out := cluster.Range{Revision: s.revision}
	end, _ := slices.BinarySearchFunc(s.keys, prefix, func(key, prefix string) int {
		if key < prefix || strings.HasPrefix(key, prefix) {
			return -1
		}
		return 1
	})
	for i := end - 1; i >= 0 && strings.HasPrefix(s.keys[i], prefix) && int64(len(out.Pairs)) < limit; i-- {
		out.Pairs = append(out.Pairs, s.pair(s.keys[i]))
	}
	return out
}

// holds tells whether a condition is true.
func (s *store) holds(c *pb.Compare) bool {
	var have, want int64
	e := s.entries[string(c.Key)]
	switch c.Target {
	case pb.Compare_CREATE:
		want = c.GetCreateRevision()
		if e != nil {
			have = e.created
		}
	case pb.Compare_MOD:
		want = c.GetModRevision()
		if e != nil {
			have = e.edited
		}
	default:
		panic(fmt.Sprintf("the simulated etcd does not compare %v", c.Target))
	}
	if c.Result != pb.Compare_EQUAL {
		panic(fmt.Sprintf("the simulated etcd does not know %v", c.Result))
	}
	return have == want
}

// txn applies a transaction.
func (s *store) txn(req *pb.TxnRequest, by *process) (*clientv3.TxnResponse, error) {
	succeeded := !slices.ContainsFunc(req.Compare, func(c *pb.Compare) bool { return !s.holds(c) })
	if succeeded {
		for _, op := range req.Success {
			if p := op.GetRequestPut(); p != nil && p.Lease != 0 && s.leases[p.Lease] == nil {
				return nil, rpctypes.ErrLeaseNotFound
			}
		}
		s.apply(req.Success, by)
	}
	return &clientv3.TxnResponse{Header: &pb.ResponseHeader{Revision: s.revision}, Succeeded: succeeded}, nil
}

// apply makes the writes of one transaction at one revision.
func (s *store) apply(ops []*pb.RequestOp, by *process) {
	next := s.revision + 1
	for _, op := range ops {
		if p := op.GetRequestPut(); p != nil {
			s.put(string(p.Key), p.Value, p.Lease, next, by)
			s.revision = next
		}
		if d := op.GetRequestDeleteRange(); d != nil {
			for _, pair := range s.read(cluster.Span{Start: string(d.Key), End: string(d.RangeEnd)}).Pairs {
				s.remove(pair.Key)
				s.revision = next
			}
		}
	}
}

func (s *store) put(key string, value []byte, lease, revision int64, by *process) {
	s.writes++
	e := s.entries[key]
	if e == nil {
		e = &entry{created: revision}
		s.entries[key] = e
		at, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, at, key)
		s.bytes += len(key)
	}
	s.bytes += len(value) - len(e.value)
	e.value, e.edited, e.lease, e.by = value, revision, lease, by
}

func (s *store) remove(key string) {
	s.writes++
	at, _ := slices.BinarySearch(s.keys, key)
	s.keys = slices.Delete(s.keys, at, at+1)
	s.bytes -= len(key) + len(s.entries[key].value)
	delete(s.entries, key)
}

// grant makes a lease.
func (s *store) grant(ttl, now time.Duration) *lease {
	s.nextID++
	l := &lease{id: s.nextID, ttl: ttl, ends: now + ttl}
	s.leases[l.id] = l
	return l
}

// revoke ends a lease and deletes its keys. It gives those.
func (s *store) revoke(id int64) (keys []string, err error) {
	if s.leases[id] == nil {
		return nil, rpctypes.ErrLeaseNotFound
	}
	delete(s.leases, id)
	for _, key := range s.keys {
		if s.entries[key].lease == id {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		s.revision++
	}
	for _, key := range keys {
		s.remove(key)
	}
	return keys, nil
}

// request makes of a transaction what the etcd client would send.
func request(conditions []clientv3.Cmp, then []clientv3.Op) *pb.TxnRequest {
	var sent wire
	// it always fails
	_, _ = clientv3.NewKVFromKVClient(&sent, nil).Txn(context.Background()).If(conditions...).Then(then...).Commit()
	return sent.txn
}

// wire takes a request down instead of sending it.
type wire struct {
	pb.KVClient
	txn *pb.TxnRequest
}

var errTaken = errors.New("taken down")

// Txn takes the transaction down.
func (k *wire) Txn(_ context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	k.txn = in
	return nil, errTaken
}
