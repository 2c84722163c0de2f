// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package keyspace stores keys, revisions and leases like etcd, in the virtual time of a testing/synctest bubble. The
// simulated etcds of agent/sim, of package agent's fleets and of package lock's tests use it. They decide which member
// answers, and when. The package promises:
//
//   - It answers like etcd's state machine. A transaction is applied as a whole, at one revision, or not at all. A read
//     at a revision returns the content of that revision unless it was compacted.
//   - A lease ends only when the caller ends it, which may be at the first possible moment. Real etcd ends it later,
//     which could hide overlapping locks.
//   - An unsupported request returns an error.
//
// A Store is not safe for concurrent use.
package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Store is a key-value store. It never changes pairs that it has returned.
type Store struct {
	now    state
	past   []state // earlier states, oldest first
	leases map[int64]*Lease
	nextID int64
	next   time.Time // no lease expires before this time
}

// state is the content at a revision, sorted by key. A state that is part of a Store is never changed.
type state struct {
	revision int64
	pairs    []*mvccpb.KeyValue
}

// Lease is an etcd lease that expires at Ends.
type Lease struct {
	ID   int64
	TTL  time.Duration
	Ends time.Time
}

// kept is the number of earlier revisions that can be read.
const kept = 256

// New returns an empty store.
func New() *Store { return &Store{now: state{revision: 1}, leases: map[int64]*Lease{}} }

// Revision returns the last revision.
func (s *Store) Revision() int64 { return s.now.revision }

// Get returns the pair of a key, or nil.
func (s *Store) Get(key string) *mvccpb.KeyValue {
	if at, found := s.now.find([]byte(key)); found {
		return s.now.pairs[at]
	}
	return nil
}

// Prefix returns the pairs with that key prefix, sorted by key.
func (s *Store) Prefix(prefix string) []*mvccpb.KeyValue {
	from, _ := s.now.find([]byte(prefix))
	to := from
	for to < len(s.now.pairs) && bytes.HasPrefix(s.now.pairs[to].Key, []byte(prefix)) {
		to++
	}
	return s.now.pairs[from:to:to]
}

func (s state) find(key []byte) (at int, found bool) {
	return slices.BinarySearchFunc(s.pairs, key, func(kv *mvccpb.KeyValue, key []byte) int {
		return bytes.Compare(kv.Key, key)
	})
}

// span returns the pairs from key up to but excluding end: only the pair of key if end is empty, and all that follow if
// end is a zero byte.
func (s state) span(key, end []byte) []*mvccpb.KeyValue {
	from, found := s.find(key)
	to := from
	switch {
	case len(end) == 1 && end[0] == 0: // all keys that follow
		to = len(s.pairs)
	case len(end) > 0:
		to, _ = s.find(end)
	case found:
		to++
	}
	return s.pairs[from:max(from, to)]
}

// Restored returns a new store with the same pairs and leases, like a cluster that is restored from this store's data.
// It increases the revision by bump, compacts earlier revisions, and restarts every lease.
func (s *Store) Restored(bump int64) *Store {
	out := &Store{
		now: state{s.now.revision + bump, slices.Clone(s.now.pairs)}, leases: map[int64]*Lease{}, nextID: s.nextID,
	}
	for id, l := range s.leases {
		own := *l
		out.leases[id] = &own
	}
	out.RenewAll()
	return out
}

// Leases returns the IDs of all leases, in order.
func (s *Store) Leases() []int64 { return slices.Sorted(maps.Keys(s.leases)) }

// Range answers a read.
func (s *Store) Range(in *pb.RangeRequest) (*pb.RangeResponse, error) {
	at := s.now
	if in.Revision > at.revision {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	if in.Revision > 0 && in.Revision < at.revision {
		i := len(s.past) - 1
		for i >= 0 && s.past[i].revision > in.Revision {
			i--
		}
		if i < 0 {
			return nil, rpctypes.ErrGRPCCompacted
		}
		at = s.past[i]
	}
	found := at.span(in.Key, in.RangeEnd)
	out := &pb.RangeResponse{Header: s.header(), Count: int64(len(found))}
	if in.Limit > 0 && int64(len(found)) > in.Limit {
		found, out.More = found[:in.Limit], true
	}
	switch {
	case in.CountOnly:
		out.More = false
	case in.KeysOnly || in.SortOrder != pb.RangeRequest_NONE:
		return nil, errors.New("keyspace does not support this read")
	default:
		out.Kvs = slices.Clip(found)
	}
	return out, nil
}

func (s *Store) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: s.now.revision} }

// IsTrue reports whether a condition of a transaction holds.
func (s *Store) IsTrue(c *pb.Compare) (bool, error) {
	kv := s.Get(string(c.Key))
	if kv == nil {
		kv = &mvccpb.KeyValue{}
	}
	switch {
	case c.Result != pb.Compare_EQUAL:
	case c.Target == pb.Compare_CREATE:
		return kv.CreateRevision == c.GetCreateRevision(), nil
	case c.Target == pb.Compare_MOD:
		return kv.ModRevision == c.GetModRevision(), nil
	case c.Target == pb.Compare_LEASE:
		return kv.Lease == c.GetLease(), nil
	}
	return false, fmt.Errorf("keyspace does not support the condition %v %v", c.Target, c.Result)
}

// Txn applies a transaction.
func (s *Store) Txn(in *pb.TxnRequest) (*pb.TxnResponse, error) {
	out := &pb.TxnResponse{Succeeded: true}
	for _, c := range in.Compare {
		holds, err := s.IsTrue(c)
		if err != nil {
			return nil, err
		}
		out.Succeeded = out.Succeeded && holds
	}
	ops := in.Success
	if !out.Succeeded {
		ops = in.Failure
	}
	for _, op := range ops {
		if lease := op.GetRequestPut().GetLease(); lease != 0 && s.leases[lease] == nil {
			return nil, rpctypes.ErrGRPCLeaseNotFound
		}
	}
	next, changed := state{revision: s.now.revision + 1}, false
	if slices.ContainsFunc(ops, func(op *pb.RequestOp) bool { return op.GetRequestRange() == nil }) {
		next.pairs = slices.Clone(s.now.pairs)
	}
	for _, op := range ops {
		switch op := op.Request.(type) {
		case *pb.RequestOp_RequestRange: // reads the old state, because quorumd never reads a transaction's own writes
			answer, err := s.Range(op.RequestRange)
			if err != nil {
				return nil, err
			}
			out.Responses = append(out.Responses, &pb.ResponseOp{
				Response: &pb.ResponseOp_ResponseRange{ResponseRange: answer},
			})
		case *pb.RequestOp_RequestPut:
			next.put(op.RequestPut)
			changed = true
		case *pb.RequestOp_RequestDeleteRange:
			gone := next.span(op.RequestDeleteRange.Key, op.RequestDeleteRange.RangeEnd)
			changed = changed || len(gone) > 0
			next.remove(gone)
		default:
			return nil, fmt.Errorf("keyspace does not support %T", op)
		}
	}
	if changed {
		s.become(next)
	}
	out.Header = s.header()
	return out, nil
}

func (s *Store) become(next state) {
	if len(s.past) == kept {
		s.past = slices.Delete(s.past, 0, 1)
	}
	s.past = append(s.past, s.now)
	s.now = next
}

func (s *state) put(in *pb.PutRequest) {
	kv := &mvccpb.KeyValue{
		Key: in.Key, Value: in.Value, Lease: in.Lease, CreateRevision: s.revision, ModRevision: s.revision, Version: 1,
	}
	at, found := s.find(in.Key)
	if !found {
		s.pairs = slices.Insert(s.pairs, at, kv)
		return
	}
	kv.CreateRevision, kv.Version = s.pairs[at].CreateRevision, s.pairs[at].Version+1
	s.pairs[at] = kv
}

func (s *state) remove(gone []*mvccpb.KeyValue) {
	gone = slices.Clone(gone)
	s.pairs = slices.DeleteFunc(s.pairs, func(kv *mvccpb.KeyValue) bool { return slices.Contains(gone, kv) })
}

// Grant creates a lease.
func (s *Store) Grant(ttl time.Duration) *Lease {
	s.nextID++
	l := &Lease{ID: s.nextID, TTL: ttl}
	s.leases[l.ID] = l
	s.refresh(l)
	return l
}

// Lease returns a lease, or nil.
func (s *Store) Lease(id int64) *Lease { return s.leases[id] }

// Renew restarts a lease and returns it.
func (s *Store) Renew(id int64) (*Lease, error) {
	l := s.leases[id]
	if l == nil || !time.Now().Before(l.Ends) {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	s.refresh(l)
	return l, nil
}

// RenewAll restarts every lease, as a new leader does.
func (s *Store) RenewAll() {
	for _, l := range s.leases {
		s.refresh(l)
	}
}

func (s *Store) refresh(l *Lease) {
	l.Ends = time.Now().Add(l.TTL)
	if l.Ends.Before(s.next) {
		s.next = l.Ends
	}
}

// Expire ends every lease that is due.
func (s *Store) Expire() {
	now := time.Now()
	if now.Before(s.next) {
		return
	}
	s.next = now.Add(24 * time.Hour)
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		switch l := s.leases[id]; {
		case !now.Before(l.Ends):
			_, _ = s.Revoke(id) // the lease was found above
		case l.Ends.Before(s.next):
			s.next = l.Ends
		}
	}
}

// Revoke ends a lease, deletes its keys and returns them.
func (s *Store) Revoke(id int64) (keys []string, err error) {
	if s.leases[id] == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	delete(s.leases, id)
	next := state{revision: s.now.revision + 1}
	for _, kv := range s.now.pairs {
		if kv.Lease == id {
			keys = append(keys, string(kv.Key))
		} else {
			next.pairs = append(next.pairs, kv)
		}
	}
	if len(keys) > 0 {
		s.become(next)
	}
	return keys, nil
}
