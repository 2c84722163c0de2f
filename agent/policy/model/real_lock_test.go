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

// What has happened to the lock and the record since an agent looked, or since it sent a call that lands late.
const (
	lockMine  = "this agent has the lock"
	lockFree  = "the lock is free"
	lockOther = "another agent has the lock"

	recordSame    = "the record is unchanged"
	recordChanged = "the record was overwritten"
	recordGone    = "the record is gone"
	recordBegun   = "a record was created"
	recordAgain   = "a record was created and is gone again"
)

// attempt is one call of the real lock in one such situation.
type attempt struct {
	step   uint8
	saw    bool // a record
	late   bool // it was sent before all that, and lands after it
	lock   string
	record string
}

func (a attempt) text() string {
	saw, late := "read none", ""
	if a.saw {
		saw = "read one"
	}
	if a.late {
		late = "a late "
	}
	return fmt.Sprintf("%s%s of an agent that %s: %s, %s", late, kindOf(a.step), saw, a.lock, a.record)
}

// attempts returns all of them.
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

// claimed reports whether the call succeeds in the model, by the model's own functions.
func (a attempt) claimed() bool {
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
		(a.saw && a.record == recordSame)); w.op != 0 {
		w.opHost = other
	}
	fresh, bare := bit(a.record == recordSame), uint8(0)
	if !a.saw {
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

// slowStore is a connection to etcd that may hold a transaction back, which then lands late. Whatever is sent after it
// is lost.
type slowStore struct {
	*clusterclient.Client
	keep bool
	kept func() (*clientv3.TxnResponse, error)
}

var errNotAnswered = errors.New("not answered in time")

func (s *slowStore) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if !s.keep {
		return s.Client.Txn(ctx, conditions, then...)
	}
	s.kept = func() (*clientv3.TxnResponse, error) { return s.Client.Txn(ctx, conditions, then...) }
	return nil, errNotAnswered
}

func (s *slowStore) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	if s.keep {
		return errNotAnswered
	}
	return s.Client.Revoke(ctx, id)
}

// agents are the one that makes the call, and another one, on one cluster name.
type agents struct {
	store     *slowStore
	keys      record.Keys
	me, other *lock.Lock
}

func newAgents(client *clusterclient.Client, name string) *agents {
	s := &agents{store: &slowStore{Client: client}, keys: record.KeysFor(name)}
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
func (s *agents) revision(ctx context.Context) (int64, error) {
	got, err := s.store.Read(ctx, clusterclient.Span{Start: s.keys.Op()})
	if err != nil || len(got.Pairs) == 0 {
		return 0, err
	}
	return got.Pairs[0].ModRevision, nil
}

// play makes the call in its situation, and reports whether it has succeeded.
func (s *agents) play(ctx context.Context, a attempt) (done bool, err error) {
	put, del := clientv3.OpPut(s.keys.Op(), "{}"), clientv3.OpDelete(s.keys.Op())
	if a.saw {
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
		s.store.keep = true
		if err := call(); !errors.Is(err, errNotAnswered) {
			return false, fmt.Errorf("a call that was held back returned %w", err)
		}
		s.store.keep = false
	}
	switch a.record { // what others do meanwhile
	case recordChanged, recordBegun:
		_, err = s.store.Txn(ctx, nil, put)
	case recordGone:
		_, err = s.store.Txn(ctx, nil, del)
	case recordAgain:
		_, err = s.store.Txn(ctx, nil, put)
		_, delErr := s.store.Txn(ctx, nil, del)
		err = errors.Join(err, delErr)
	}
	if lockErr := s.turnLock(ctx, a); err != nil || lockErr != nil {
		return false, errors.Join(err, lockErr)
	}
	if !a.late {
		err = call()
		if errors.Is(err, lock.ErrTaken) || errors.Is(err, lock.ErrLost) {
			return false, nil
		}
		return err == nil, err
	}
	answer, err := s.store.kept()
	return err == nil && answer.Succeeded, err
}

// turnLock puts the lock into the state of the attempt.
func (s *agents) turnLock(ctx context.Context, a attempt) error {
	if a.lock == lockMine {
		return nil
	}
	if a.step != takeLock { // this agent's lease ends without its noticing
		got, err := s.store.Read(ctx, clusterclient.Span{Start: s.keys.Lock()})
		if err != nil || len(got.Pairs) != 1 {
			return fmt.Errorf("the lock is not there: %w", err)
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

// commitLies returns false claims about what is committed.
func commitLies() map[string]func(a attempt) bool {
	return map[string]func(a attempt) bool{
		"a late call never lands": func(a attempt) bool { return !a.late && a.claimed() },
		"a record that was created and deleted is noticed": func(a attempt) bool {
			return a.record == recordSame && a.claimed()
		},
		"the lock is taken whatever the record": func(a attempt) bool {
			return (a.step == takeLock && a.lock == lockFree) || a.claimed()
		},
		"the lock is taken while another agent has it": func(a attempt) bool {
			return (a.step == takeLock && a.record == recordSame) || a.claimed()
		},
		"a record is written without the lock": func(a attempt) bool {
			return (a.step == setAdded && a.record == recordSame) || a.claimed()
		},
		"a record overwrites one that was not read": func(a attempt) bool {
			return (a.step == setAdded && a.lock == lockMine) || a.claimed()
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
			done, err := newAgents(client, fmt.Sprintf("c%d", i)).play(ctx, a)
			if err != nil {
				t.Errorf("%s: %v", a.text(), err)
			}
			if claimed := a.claimed(); claimed != done {
				t.Errorf("%s. The model claims: committed %t. etcd: committed %t", a.text(), claimed, done)
			}
			if done {
				committed[a] = true
			}
		}
		t.Logf("%d attempts, %d committed", len(list), len(committed))
		for name, lie := range commitLies() {
			if !slices.ContainsFunc(list, func(a attempt) bool { return lie(a) != committed[a] }) {
				t.Errorf("etcd did not differ from: %s", name)
			}
		}
	})
}
