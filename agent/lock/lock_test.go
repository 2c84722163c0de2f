// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestSecondHostGetsErrTaken(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	if s.a.MayAct() || s.a.Token() != 0 {
		t.Error("a lock that was not taken counts as held")
	}
	s.take(s.a, 0)
	value, created, _, _ := s.get(s.keys.Lock())
	if s.a.Token() == 0 || s.a.Token() != created {
		t.Errorf("the token is %d, the key was created at %d", s.a.Token(), created)
	}
	if r, err := record.Decode[record.Lock]([]byte(value)); err != nil || r.Host != "a" ||
		time.Since(r.Since).Abs() > time.Minute {
		t.Errorf("the record is %+v, %v", r, err)
	}
	if left := s.a.ValidFor(); !s.a.MayAct() || left > benchTTL-benchMargin {
		t.Errorf("valid for %v of %v", left, benchTTL)
	}
	if err := s.b.Take(within(t), 0); !errors.Is(err, lock.ErrTaken) || s.b.MayAct() || s.b.Token() != 0 {
		t.Errorf("the second: %v, token %d", err, s.b.Token())
	}
	if n := s.leases(); n != 1 {
		t.Errorf("there are %d leases after a refused attempt, want only the holder's", n)
	}
	token := s.a.Token()
	if err := s.a.Take(within(t), 0); err != nil || s.a.Token() != token {
		t.Errorf("taking a held lock: %v, token %d", err, s.a.Token())
	}
}

func TestOperationInFlightDecidesWhichHostMayTakeTheLock(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	try := func(what string, seen int64, want error) {
		t.Helper()
		if err := s.a.Take(within(t), seen); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
		if err := s.a.Release(within(t)); err != nil {
			t.Error(err)
		}
	}
	try("no operation", 0, nil)
	try("the one that was read is gone", 5, lock.ErrTaken)
	put := func() int64 {
		answer, err := s.etcd.Put(within(t), s.keys.Op(), `{"version":1,"kind":"cycle","host":"z"}`)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	first := put()
	try("an operation that was not seen", 0, lock.ErrTaken)
	try("the one that was read", first, nil)
	second := put()
	try("it was rewritten since", first, lock.ErrTaken)
	try("it was read again", second, nil)
}

func TestLockLivesOnlyWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	const ttl = 4 * time.Second // much longer than a renewal waits on a busy machine
	s.a = s.host("a", s.store, ttl)
	s.take(s.a, 0)
	token, taken := s.a.Token(), boottime()
	tick := time.NewTicker(ttl / 10)
	defer tick.Stop()
	for ; boottime()-taken < 3*ttl/2; <-tick.C {
		if err := s.a.Renew(within(t)); err != nil || !s.a.MayAct() || s.a.Token() != token {
			t.Fatalf("after %v: %v, token %d", boottime()-taken, err, s.a.Token())
		}
	}
	if err := s.b.Take(within(t), 0); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("a renewed lock was taken: %v", err)
	}
	testbed.Eventually(t, bound, "the next takes it", func() bool { return s.b.Take(within(t), 0) == nil })
	if s.a.MayAct() || s.a.ValidFor() != 0 {
		t.Errorf("the old holder's lock is valid for %v more", s.a.ValidFor())
	}
	if s.a.Token() != token {
		t.Errorf("an old holder without an answer has token %d", s.a.Token())
	}
	if err := s.a.Renew(within(t)); !errors.Is(err, lock.ErrLost) || s.a.Token() != 0 {
		t.Errorf("renewing a lost lock: %v, token %d", err, s.a.Token())
	}
	if err := s.a.Renew(within(t)); !errors.Is(err, lock.ErrLost) {
		t.Errorf("renewing a lock that is not held: %v", err)
	}
	if s.b.Token() <= token {
		t.Errorf("token %d follows %d", s.b.Token(), token)
	}
	if err := s.a.Take(within(t), 0); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("taking it back: %v", err)
	}
}

func TestExpiredLockWithALiveLeaseIsResumedWithItsToken(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.a = lock.New(s.store, options("c", "a", time.Minute, time.Minute-50*time.Millisecond))
	s.take(s.a, 0)
	token := s.a.Token()
	testbed.Eventually(t, bound, "the validity ends", func() bool { return !s.a.MayAct() })
	if err := s.a.Take(within(t), 0); err != nil || s.a.Token() != token {
		t.Errorf("got %v, token %d, want %d", err, s.a.Token(), token)
	}
}

func TestReleasedLockIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.take(s.a, 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // as when the agent stops
	if err := s.a.Release(ended); err != nil {
		t.Error(err)
	}
	if s.a.MayAct() || s.a.Token() != 0 || s.locked() || s.leases() != 0 {
		t.Errorf("held %v, token %d, key %v, %d leases", s.a.MayAct(), s.a.Token(), s.locked(), s.leases())
	}
	s.take(s.b, 0)
	if err := s.a.Release(within(t)); err != nil || !s.b.MayAct() || !s.locked() {
		t.Errorf("releasing a lock that is not held: %v; the holder's key is there: %v", err, s.locked())
	}
}

func TestLockThatCannotBeReleasedIsNotHeldAndExpires(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	store, proxy := s.proxied()
	a := s.host("a", store, shortTTL)
	s.take(a, 0)
	proxy.Set(testbed.Faults{HoldRequests: true})
	released := make(chan error, 1)
	go func() { released <- a.Release(within(t)) }()
	testbed.Eventually(t, bound, "it is not held", func() bool { return !a.MayAct() && a.Token() == 0 })
	if err := <-released; err == nil || !strings.Contains(err.Error(), "which expires in 1s") {
		t.Errorf("got %v", err)
	}
	testbed.Eventually(t, bound, "the key is gone", func() bool { return !s.locked() })
}

// lossyStore executes calls and, while lose is set, loses the answers to transactions.
type lossyStore struct {
	*cluster.Client
	lose *atomic.Bool
}

func (s lossyStore) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	answer, err := s.Client.Txn(ctx, conditions, then...)
	if err == nil && s.lose.Load() {
		return nil, context.DeadlineExceeded
	}
	return answer, err
}

func TestTakeWithALostAnswerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	store := lossyStore{s.store, &atomic.Bool{}}
	store.lose.Store(true)
	a := s.host("a", store, benchTTL)
	if err := a.Take(within(t), 0); !errors.Is(err, context.DeadlineExceeded) || a.MayAct() || a.Token() != 0 {
		t.Errorf("got %v, token %d", err, a.Token())
	}
	if s.locked() || s.leases() != 0 {
		t.Errorf("key %v, %d leases", s.locked(), s.leases())
	}
	s.take(s.b, 0)
}

// faultBeforeTxn is a connection that breaks after the lease was granted and before the lock is taken.
type faultBeforeTxn struct {
	*cluster.Client
	proxy *testbed.Proxy
	fault testbed.Faults
}

func (s faultBeforeTxn) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	s.proxy.Set(s.fault)
	return s.Client.Txn(ctx, conditions, then...)
}

func TestTimedOutTakeBlocksOthersForItsLeaseAtMost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   testbed.Faults
		blocked bool // the key was written
	}{
		"the request is held":              {testbed.Faults{HoldRequests: true}, false},
		"the answer is held":               {testbed.Faults{HoldResponses: true}, true},
		"the request is held, then passed": {testbed.Cut(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBench(t)
			store, proxy := s.proxied()
			a := s.host("a", faultBeforeTxn{store, proxy, c.fault}, shortTTL)
			done := make(chan error, 1)
			go func() { done <- a.Take(within(t), 0) }()
			if c.blocked {
				testbed.Eventually(t, bound, "the key is written", s.locked)
			}
			if err := <-done; err == nil || errors.Is(err, lock.ErrTaken) || a.MayAct() {
				t.Errorf("got %v, may act %v", err, a.MayAct())
			}
			failed := boottime()
			if c.fault == testbed.Cut() {
				proxy.Set(testbed.Faults{}) // the put arrives late, followed by the lease's revocation
			}
			testbed.Eventually(t, bound, "the next takes it", func() bool { return s.b.Take(within(t), 0) == nil })
			// etcd checks for expired leases twice a second.
			if took := boottime() - failed; took > shortTTL+3*time.Second { // the remainder allows for a busy machine
				t.Errorf("the next has waited %v for a lease of %v", took, shortTTL)
			}
			if _, created, _, _ := s.get(s.keys.Lock()); created != s.b.Token() {
				t.Errorf("the key was created at %d, the holder's token is %d", created, s.b.Token())
			}
		})
	}
}

func TestConfirmReturnsAContextThatEndsBeforeTheValidity(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	if _, _, err := s.a.Confirm(within(t), 0, 0); !errors.Is(err, lock.ErrLost) {
		t.Errorf("of a lock that is not held: %v", err)
	}
	s.take(s.a, 0)
	ctx, cancel, err := s.a.Confirm(within(t), 300*time.Millisecond, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	deadline, _ := ctx.Deadline()
	if left := time.Until(deadline); left > 300*time.Millisecond || left > s.a.ValidFor() {
		t.Errorf("the step has %v, the lock %v", left, s.a.ValidFor())
	}
	for _, c := range []struct{ budget, spare time.Duration }{
		{benchTTL, 0}, {benchTTL / 2, benchTTL / 2}, {time.Hour, 0},
	} {
		_, _, err := s.a.Confirm(within(t), c.budget, c.spare)
		if !errors.Is(err, lock.ErrTooLate) || !s.a.MayAct() {
			t.Errorf("a step of %v with %v to spare: %v, may act %v", c.budget, c.spare, err, s.a.MayAct())
		}
	}
}

func TestConfirmDetectsThatTheLockWasTakenOver(t *testing.T) {
	t.Parallel()
	s := robbed(t)
	if _, _, err := s.a.Confirm(within(t), time.Second, 0); !errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
	if s.a.MayAct() || s.a.Token() != 0 {
		t.Errorf("may act %v, token %d", s.a.MayAct(), s.a.Token())
	}
	if !s.b.MayAct() || !s.locked() {
		t.Error("the new holder has lost it")
	}
}

func TestConfirmWithoutAnAnswerFailsAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	store, proxy := s.proxied()
	a := s.host("a", store, benchTTL)
	s.take(a, 0)
	proxy.Set(testbed.Cut())
	if _, _, err := a.Confirm(within(t), time.Second, 0); err == nil || errors.Is(err, lock.ErrLost) || !a.MayAct() {
		t.Errorf("got %v, may act %v", err, a.MayAct())
	}
}
