// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestOperationFromBeginToEndUnderTheLock(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.take(s.a, 0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.a.Begin(within(t), record.Op{Kind: "join", Host: "a", Phase: "begun", Token: 99}))
	op, begun := s.op()
	if op.Phase != "begun" || op.Token != s.a.Token() {
		t.Errorf("begun: %+v, the lock's token is %d", op, s.a.Token())
	}
	if err := s.a.Begin(within(t), record.Op{Kind: "cycle", Host: "a"}); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("beginning a second one: %v", err)
	}

	op.Phase = "added"
	must(s.a.Advance(within(t), op, begun))
	_, added := s.op()
	op.Phase = "lost"
	if err := s.a.Advance(within(t), op, begun); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("advancing a rewritten record: %v", err)
	}
	key := s.keys.HistoryLine(added, "a", 0)
	if err := s.a.End(within(t), begun, key, record.Line{Text: "no"}); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("ending a rewritten record: %v", err)
	}
	if op, at := s.op(); op.Phase != "added" || at != added {
		t.Errorf("it is %+v", op)
	}
	if _, _, _, there := s.get(key); there {
		t.Error("an end that was refused wrote history")
	}

	must(s.a.End(within(t), added, key, record.Line{Code: "JOINED", Text: "yes"}))
	if op, at := s.op(); at != 0 {
		t.Errorf("after its end it is %+v", op)
	}
	value, _, _, _ := s.get(key)
	if line, err := record.Decode[record.Line]([]byte(value)); err != nil || line.Text != "yes" {
		t.Errorf("history says %s, %v", value, err)
	}
}

func TestOrphanedOperationIsAdoptedWithTheNewToken(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.take(s.a, 0)
	if err := s.a.Begin(within(t), record.Op{Kind: "join", Host: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.a.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	op, seen := s.op() // the record has no lease, so it outlives the lock
	s.take(s.b, seen)
	if err := s.b.Advance(within(t), op, seen); err != nil {
		t.Fatal(err)
	}
	if adopted, _ := s.op(); adopted.Token != s.b.Token() || adopted.Token <= op.Token || adopted.Host != "a" {
		t.Errorf("got %+v, token %d before and %d now", adopted, op.Token, s.b.Token())
	}
}

// writes returns all ways to change the operation record.
func (s *bench) writes(l *lock.Lock, seen int64) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"begin":   func(ctx context.Context) error { return l.Begin(ctx, record.Op{Kind: "rogue"}) },
		"advance": func(ctx context.Context) error { return l.Advance(ctx, record.Op{Kind: "rogue"}, seen) },
		"end": func(ctx context.Context) error {
			return l.End(ctx, seen, s.keys.HistoryLine(seen, "a", 0), record.Line{Kind: "rogue"})
		},
	}
}

func TestHolderThatLostTheLockWritesNothing(t *testing.T) {
	t.Parallel()
	s := robbed(t)
	rogue := func(seen int64, writes ...string) {
		t.Helper()
		for _, name := range writes {
			if err := s.writes(s.a, seen)[name](within(t)); !errors.Is(err, lock.ErrTaken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	rogue(0, "begin")
	if err := s.b.Begin(within(t), record.Op{Kind: "join", Host: "b"}); err != nil {
		t.Fatal(err)
	}
	_, seen := s.op()
	rogue(seen, "advance", "end") // even with the right revision
	if op, at := s.op(); op.Kind != "join" || op.Token != s.b.Token() || at != seen {
		t.Errorf("the operation is %+v", op)
	}
	if answer, err := s.etcd.Get(within(t), s.keys.HistoryLine(seen, "a", 0)); err != nil || len(answer.Kvs) > 0 {
		t.Errorf("history: %v, %v", answer, err)
	}
}

func TestWithoutAValidLockNothingIsWritten(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	before, err := s.etcd.Get(within(t), "revision")
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range s.writes(s.a, 0) {
		if err := write(within(t)); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s without a lock: %v", name, err)
		}
	}
	after, err := s.etcd.Get(within(t), "revision")
	if err != nil || after.Header.Revision != before.Header.Revision {
		t.Errorf("revision %d became %d, %v", before.Header.Revision, after.Header.Revision, err)
	}

	s.a = s.host("a", s.store, shortTTL)
	s.take(s.a, 0)
	testbed.Eventually(t, bound, "the validity ends", func() bool { return !s.a.MayAct() })
	for name, write := range s.writes(s.a, 0) {
		if err := write(within(t)); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s after the validity: %v", name, err)
		}
	}
	if op, at := s.op(); at != 0 {
		t.Errorf("%+v was written", op)
	}
}

func TestUnansweredWriteIsNotErrTakenAndMayHaveHappened(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	store := lossyStore{s.store, &atomic.Bool{}}
	a := s.host("a", store, benchTTL)
	s.take(a, 0)
	store.lose.Store(true)
	err := a.Begin(within(t), record.Op{Kind: "join", Host: "a"})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrTaken) || errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
	if op, _ := s.op(); op.Token != a.Token() || !a.MayAct() {
		t.Errorf("%+v was written; may act %v", op, a.MayAct())
	}
}
