// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	clusterclient "github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
)

// What happened to the lock and the operation record since an agent's last observation, or since it sent a late call.
const (
	lockMine  = "this agent has the lock"
	lockFree  = "the lock is free"
	lockOther = "another agent has the lock"

	recordSame    = "the record is unchanged"
	recordChanged = "the record was overwritten"
	recordGone    = "the record was deleted"
	recordBegun   = "a record was created"
	recordAgain   = "a record was created and deleted"
)

// attempt is a call of the real lock, with what has happened to the lock and the record.
type attempt struct {
	step      uint8
	sawRecord bool // the agent has read a record
	late      bool // the call was sent before the lock and the record changed, and is applied afterwards
	lock      string
	record    string
}

func (a attempt) text() string {
	read, late := "read no record", ""
	if a.sawRecord {
		read = "read a record"
	}
	if a.late {
		late = "a late "
	}
	return fmt.Sprintf("%s%s of an agent that %s: %s, %s", late, kindOf(a.step), read, a.lock, a.record)
}

func attempts() (list []attempt) {
	since := map[bool][]string{
		true:  {recordSame, recordChanged, recordGone},
		false: {recordSame, recordBegun, recordAgain},
	}
	for _, saw := range []bool{false, true} {
		for _, rec := range since[saw] {
			for _, late := range []bool{false, true} {
				for _, lock := range []string{lockFree, lockOther} {
					list = append(list, attempt{takeLock, saw, late, lock, rec})
				}
				for _, step := range map[bool][]uint8{true: {setAdded, endJoined}, false: {beginVoter}}[saw] {
					for _, lock := range []string{lockMine, lockFree, lockOther} {
						list = append(list, attempt{step, saw, late, lock, rec})
					}
				}
			}
		}
	}
	return list
}

// committedInModel reports whether the call succeeds in the model.
func (a attempt) committedInModel() bool {
	const me, other = 1, 2
	w := world{n: 3, lock: -1}
	w.hosts[0] = host{list: voter, named: 1, unit: active, data: current}
	h := &w.hosts[me]
	switch a.lock {
	case lockMine:
		w.lock, h.hasToken, h.valid = me, 1, 1
	case lockOther:
		w.lock = other
	}
	if w.op = bit(a.record == recordBegun || a.record == recordChanged ||
		(a.sawRecord && a.record == recordSame)); w.op != 0 {
		w.opHost = other
	}
	fresh, bare := bit(a.record == recordSame), uint8(0)
	if !a.sawRecord {
		fresh, bare = 0, 1
	}
	m := newMachine(Scenario{Hosts: 3}, rules{})
	before := w.op
	switch {
	case a.late:
		h.lateWrite, h.lateFresh, h.lateAbsent, h.lateToken = a.step, fresh, bare, bit(a.lock == lockMine)
		w.dropWrites(rules{})
		m.lateWrite(&w, me, 0)
	case a.step == takeLock:
		h.fresh, h.absent = fresh, bare
		m.take(&w, me)
	default:
		m.write(&w, me, a.step, w.owns(me), w.unchanged(fresh, bare), false, false)
	}
	switch a.step {
	case takeLock:
		return w.lock == me
	case endJoined:
		return before != 0 && w.op == 0
	}
	return w.opToken != 0
}

// slowStore is an etcd client that can delay a transaction. While it does, it drops revocations.
type slowStore struct {
	*clusterclient.Client
	delaying bool
	delayed  func() (*clientv3.TxnResponse, error)
}

var errNotAnswered = errors.New("not answered in time")

func (s *slowStore) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if !s.delaying {
		return s.Client.Txn(ctx, conditions, then...)
	}
	s.delayed = func() (*clientv3.TxnResponse, error) { return s.Client.Txn(ctx, conditions, then...) }
	return nil, errNotAnswered
}

func (s *slowStore) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	if s.delaying {
		return errNotAnswered
	}
	return s.Client.Revoke(ctx, id)
}

// lockAgents holds the locks of the agent that makes the call and of another agent of the same cluster.
type lockAgents struct {
	store     *slowStore
	keys      record.Keys
	me, other *lock.Lock
}

func newLockAgents(client *clusterclient.Client, name string) *lockAgents {
	s := &lockAgents{store: &slowStore{Client: client}, keys: record.KeysFor(name)}
	began := time.Now()
	of := func(store lock.Store, host string) *lock.Lock {
		return lock.New(store, lock.Options{
			Keys: s.keys, Host: host, Name: host, TTL: time.Minute, Margin: time.Second,
			Now: func() time.Duration { return time.Since(began) }, Wall: time.Now,
		})
	}
	s.me, s.other = of(s.store, "me"), of(client, "other")
	return s
}

// revision returns the revision of the record, or 0.
func (s *lockAgents) revision(ctx context.Context) (int64, error) {
	got, err := s.store.Read(ctx, clusterclient.Span{Start: s.keys.Op()})
	if err != nil || len(got.Pairs) == 0 {
		return 0, err
	}
	return got.Pairs[0].ModRevision, nil
}

// play makes the call after the changes that the attempt describes, and reports whether the call succeeded.
func (s *lockAgents) play(ctx context.Context, a attempt) (done bool, err error) {
	put, del := clientv3.OpPut(s.keys.Op(), "{}"), clientv3.OpDelete(s.keys.Op())
	if a.sawRecord {
		_, err = s.store.Txn(ctx, nil, put)
	}
	seen, readErr := s.revision(ctx)
	if err = errors.Join(err, readErr); err == nil && a.step != takeLock {
		err = s.me.Take(ctx, seen)
	}
	if err != nil {
		return false, err
	}
	call := func() error {
		switch a.step {
		case takeLock:
			return s.me.Take(ctx, seen)
		case beginVoter:
			return s.me.Begin(ctx, record.Op{})
		case setAdded:
			return s.me.Advance(ctx, record.Op{}, seen)
		default:
			return s.me.End(ctx, seen, s.keys.Op()+"-history", record.Line{})
		}
	}
	if a.late {
		s.store.delaying = true
		if err := call(); !errors.Is(err, errNotAnswered) {
			return false, fmt.Errorf("a delayed call returned %w", err)
		}
		s.store.delaying = false
	}
	switch a.record { // what other agents did to the record
	case recordChanged, recordBegun:
		_, err = s.store.Txn(ctx, nil, put)
	case recordGone:
		_, err = s.store.Txn(ctx, nil, del)
	case recordAgain:
		_, err = s.store.Txn(ctx, nil, put)
		_, delErr := s.store.Txn(ctx, nil, del)
		err = errors.Join(err, delErr)
	}
	if lockErr := s.setLock(ctx, a); err != nil || lockErr != nil {
		return false, errors.Join(err, lockErr)
	}
	if !a.late {
		err = call()
		if errors.Is(err, lock.ErrTaken) || errors.Is(err, lock.ErrLost) {
			return false, nil
		}
		return err == nil, err
	}
	answer, err := s.store.delayed()
	return err == nil && answer.Succeeded, err
}

// setLock changes the lock as the attempt requires.
func (s *lockAgents) setLock(ctx context.Context, a attempt) error {
	if a.lock == lockMine {
		return nil
	}
	if a.step != takeLock { // end the lease without the agent
		got, err := s.store.Read(ctx, clusterclient.Span{Start: s.keys.Lock()})
		if err != nil || len(got.Pairs) != 1 {
			return fmt.Errorf("there is no lock: %w", err)
		}
		if err := s.store.Revoke(ctx, clientv3.LeaseID(got.Pairs[0].Lease)); err != nil {
			return err
		}
	}
	if a.lock != lockOther {
		return nil
	}
	seen, err := s.revision(ctx)
	if err != nil {
		return err
	}
	return s.other.Take(ctx, seen)
}

// falseCommitClaims returns false claims about which calls are committed.
func falseCommitClaims() map[string]func(a attempt) bool {
	return map[string]func(a attempt) bool{
		"a late call is never applied": func(a attempt) bool { return !a.late && a.committedInModel() },
		"a call fails if a record was created and deleted meanwhile": func(a attempt) bool {
			return a.record == recordSame && a.committedInModel()
		},
		"the lock is taken even if the record has changed": func(a attempt) bool {
			return (a.step == takeLock && a.lock == lockFree) || a.committedInModel()
		},
		"the lock is taken while another agent has it": func(a attempt) bool {
			return (a.step == takeLock && a.record == recordSame) || a.committedInModel()
		},
		"a record is written without the lock": func(a attempt) bool {
			return (a.step == setAdded && a.record == recordSame) || a.committedInModel()
		},
		"a record overwrites one that was not read": func(a attempt) bool {
			return (a.step == setAdded && a.lock == lockMine) || a.committedInModel()
		},
	}
}

func TestRealEtcdCommitsWhatTheModelCommits(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		etcd := leaseCluster(t, version, 1)
		client, err := clusterclient.New(clusterclient.Options{
			Endpoints: etcd.Endpoints(), CallTimeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		list, committed := attempts(), map[attempt]bool{}
		for i, a := range list {
			done, err := newLockAgents(client, fmt.Sprintf("c%d", i)).play(ctx, a)
			if err != nil {
				t.Errorf("%s: %v", a.text(), err)
			}
			if want := a.committedInModel(); want != done {
				t.Errorf("%s: committed in the model: %t, by etcd: %t", a.text(), want, done)
			}
			if done {
				committed[a] = true
			}
		}
		t.Logf("%d attempts, %d committed", len(list), len(committed))
		for name, claim := range falseCommitClaims() {
			if !slices.ContainsFunc(list, func(a attempt) bool { return claim(a) != committed[a] }) {
				t.Errorf("etcd does not refute: %s", name)
			}
		}
	})
}
