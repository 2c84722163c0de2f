// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/lock"
)

// slowStore is an etcd with slow answers, in virtual time.
type slowStore struct {
	grant, txn, keepAlive time.Duration // how long an answer takes
	ttl                   int64         // the server's answer
	refuse                bool          // the conditions of a transaction are false
	err                   error         // of KeepAliveOnce
	txns, revoked         int
}

func (s *slowStore) Grant(ctx context.Context, _ int64) (clientv3.LeaseID, int64, error) {
	return 1, s.ttl, wait(ctx, s.grant)
}

func (s *slowStore) Txn(ctx context.Context, _ []clientv3.Cmp, _ ...clientv3.Op) (*clientv3.TxnResponse, error) {
	s.txns++
	if err := wait(ctx, s.txn); err != nil {
		return nil, err
	}
	return &clientv3.TxnResponse{Header: &pb.ResponseHeader{Revision: 7}, Succeeded: !s.refuse}, nil
}

func (s *slowStore) KeepAliveOnce(ctx context.Context, _ clientv3.LeaseID) (int64, error) {
	if err := wait(ctx, s.keepAlive); err != nil {
		return 0, err
	}
	return s.ttl, s.err
}

func (s *slowStore) Revoke(context.Context, clientv3.LeaseID) error {
	s.revoked++
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// virtual runs f in virtual time with a lock of 30 s and a margin of 3 s.
func virtual(t *testing.T, f func(t *testing.T, l *lock.Lock, s *slowStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := options("c", "a", 30*time.Second, 3*time.Second)
		o.Now = func() time.Duration { return time.Hour + time.Since(began) }
		store := &slowStore{ttl: 30}
		f(t, lock.New(store, o), store)
	})
}

func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	if err := wait(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func expectValid(t *testing.T, l *lock.Lock, want time.Duration) {
	t.Helper()
	if got := l.ValidFor(); got != want || l.MayAct() != (want > 0) {
		t.Errorf("valid for %v, want %v; may act %v", got, want, l.MayAct())
	}
}

func TestValidityCountsFromBeforeTheLeaseRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		s.grant, s.txn = 4*time.Second, 5*time.Second
		if err := l.Take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		expectValid(t, l, 27*time.Second-9*time.Second)
		sleep(t, 18*time.Second-1)
		expectValid(t, l, 1)
		sleep(t, 1)
		expectValid(t, l, 0)
	})
}

func TestLockTakenTooSlowlyIsNotValid(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		s.grant, s.txn = 20*time.Second, 8*time.Second
		if err := l.Take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		expectValid(t, l, 0)
		if _, _, err := l.Confirm(t.Context(), time.Second, 0); !errors.Is(err, lock.ErrTooLate) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDelayedRenewalNeverExtendsTheValidityBeyondItsSending(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{
		0, time.Second, 10 * time.Second, 27*time.Second - 1, 27 * time.Second, 30 * time.Second, time.Hour,
	} {
		virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
			if err := l.Take(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			sleep(t, 5*time.Second)
			s.keepAlive = delay
			if err := l.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			expectValid(t, l, max(0, 27*time.Second-delay))
		})
	}
}

func TestServersTTLCounts(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		s.ttl = 45 // the server may choose a longer TTL
		if err := l.Take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		expectValid(t, l, 42*time.Second)
		s.ttl = 60
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectValid(t, l, 57*time.Second)
	})
}

func TestFailedRenewalKeepsTheRemainingValidity(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		if err := l.Take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.keepAlive = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := l.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		expectValid(t, l, 23*time.Second)
		sleep(t, 23*time.Second)
		expectValid(t, l, 0)
		if l.Token() != 7 { // the key may still exist
			t.Errorf("token %d", l.Token())
		}
	})
}

func TestMissingLeaseEndsTheValidityAtOnce(t *testing.T) {
	t.Parallel()
	for _, gone := range []struct {
		ttl int64
		err error
	}{{0, nil}, {-1, nil}, {0, rpctypes.ErrLeaseNotFound}, {0, rpctypes.ErrGRPCLeaseNotFound}} {
		virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
			if err := l.Take(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			s.ttl, s.err = gone.ttl, gone.err
			if err := l.Renew(t.Context()); !errors.Is(err, lock.ErrLost) || l.Token() != 0 {
				t.Errorf("%+v: got %v, token %d", gone, err, l.Token())
			}
			expectValid(t, l, 0)
		})
	}
}

func TestStepMustFitIntoTheValidityLeftAfterConfirm(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		if err := l.Take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Confirm(t.Context(), 20*time.Second, 7*time.Second+1); !errors.Is(err, lock.ErrTooLate) ||
			s.txns != 1 {
			t.Errorf("a nanosecond too long: %v; etcd was asked %d times", err, s.txns-1)
		}
		s.txn = 7 * time.Second // the answer uses up the spare
		ctx, cancel, err := l.Confirm(t.Context(), 20*time.Second, 7*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		if deadline, _ := ctx.Deadline(); time.Until(deadline) != 20*time.Second || l.ValidFor() != 20*time.Second {
			t.Errorf("the step has %v, the lock %v", time.Until(deadline), l.ValidFor())
		}
		if _, _, err := l.Confirm(t.Context(), 14*time.Second, 0); !errors.Is(err, lock.ErrTooLate) {
			t.Errorf("an answer so late that the step does not fit any more: %v", err)
		}
	})
}

func TestFailedTakeRevokesItsLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, l *lock.Lock, s *slowStore) {
		s.refuse = true
		if err := l.Take(t.Context(), 0); !errors.Is(err, lock.ErrTaken) || s.revoked != 1 {
			t.Errorf("refused: %v, %d leases revoked", err, s.revoked)
		}
		s.txn = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Take(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || s.revoked != 2 {
			t.Errorf("unanswered: %v, %d leases revoked", err, s.revoked)
		}
		expectValid(t, l, 0)
	})
}
