// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package lock holds the leased lock, which decides which agent acts, and the operation record, which describes the
// operation in flight. It promises:
//
//   - MayAct is true for at most one agent at a time. Validity is counted from just before the request is sent, so it
//     always ends before the server's lease does. A late answer, a paused process or a partition only shortens it. The
//     etcd client's session counts from the receipt of the answer, and in a measurement, its validity overlapped with
//     the next holder's.
//   - The lock lives only while its owner calls Renew. No goroutine keeps a wedged owner's lock alive.
//   - Every write to the operation record is a transaction. It fails unless the caller still holds the lock and the
//     record is still the one that the caller read.
//   - A lock is released by revoking its lease, never by deleting the key: a write still in flight then fails instead
//     of leaving a key without an owner.
//
// The package is independent of what the lock protects.
package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/record"
)

// Store is the part of etcd that the lock needs. Every call is bounded by its context, uses voters only, and may have
// been applied even if it returns an error.
type Store interface {
	// Txn commits the operations in then if all conditions are true.
	Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (*clientv3.TxnResponse, error)
	// Grant creates a lease, and returns the TTL chosen by the server, in seconds.
	Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error)
	// KeepAliveOnce renews a lease, and returns the remaining TTL, in seconds.
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error)
	// Revoke ends a lease and deletes its keys.
	Revoke(ctx context.Context, id clientv3.LeaseID) error
}

// Errors that the lock returns. After an error from etcd, the outcome is unknown.
var (
	// ErrTaken means that another host holds the lock, or that a record has changed since the caller read it.
	ErrTaken = errors.New("another host holds the lock, or a record has changed")
	// ErrLost means that this agent no longer holds the lock.
	ErrLost = errors.New("the lock is lost")
	// ErrTooLate means that the remaining validity is too short for the step.
	ErrTooLate = errors.New("the lock expires too soon")
)

// revokeTimeout bounds revoking a lease. The lease expires anyway.
const revokeTimeout = 2 * time.Second

// Options configure a lock.
type Options struct {
	Keys   record.Keys
	Host   string // host ID
	Name   string // host name, for display
	TTL    time.Duration
	Margin time.Duration // the validity ends this long before the server's lease does
	// Now is a clock that includes time in suspend (CLOCK_BOOTTIME).
	Now func() time.Duration
	// Wall is the wall clock, for display only.
	Wall func() time.Time
}

// Lock is one agent's handle on the lock. Its methods may be called concurrently, because the control loop does not
// always wait until a step has ended.
type Lock struct {
	store Store
	opt   Options

	mu         sync.Mutex
	lease      clientv3.LeaseID
	token      int64 // create revision of this agent's lock key; 0 if the lock is not held
	validUntil time.Duration
}

// New returns a lock that is not held.
func New(store Store, opt Options) *Lock { return &Lock{store: store, opt: opt} }

// Token returns the fencing token: the create revision of the lock key, or 0 if the lock is not held. Each new holder
// has a larger token.
func (l *Lock) Token() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// ValidFor returns how long this agent is certain to hold the lock; 0 if it is not certain.
func (l *Lock) ValidFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == 0 {
		return 0
	}
	return max(0, l.validUntil-l.opt.Now())
}

// MayAct reports whether this agent is certain to hold the lock at this moment.
func (l *Lock) MayAct() bool { return l.ValidFor() > 0 }

// Take tries once to take the lock. If this agent already holds the lock, Take does nothing while the lock is valid,
// and renews it otherwise. seenOp is the modification revision of the operation record that the caller owns or may
// adopt; 0 means that there must be none. Take returns ErrTaken if another host holds the lock, or if the operation
// record has a different revision.
func (l *Lock) Take(ctx context.Context, seenOp int64) error {
	if l.MayAct() {
		return nil
	}
	if l.Token() != 0 { // expired by this host's clock, but perhaps not yet by the server's
		return l.Renew(ctx)
	}
	sent := l.opt.Now()
	lease, ttl, err := l.store.Grant(ctx, int64(l.opt.TTL/time.Second))
	if err != nil {
		return fmt.Errorf("cannot take the lock: cannot get a lease: %w", err)
	}
	value, err := record.Encode(record.Lock{Host: l.opt.Host, Name: l.opt.Name, Since: l.opt.Wall()})
	if err != nil {
		return err
	}
	key := l.opt.Keys.Lock()
	answer, err := l.store.Txn(ctx,
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0), l.opIs(seenOp)},
		clientv3.OpPut(key, string(value), clientv3.WithLease(lease)))
	switch {
	case err != nil: // the transaction may still be applied, but not after the lease is revoked
		_ = l.revoke(ctx, lease) // if this fails, the lease expires
		return fmt.Errorf("cannot take the lock: %w", err)
	case !answer.Succeeded:
		_ = l.revoke(ctx, lease) // if this fails, the lease expires
		return ErrTaken
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.token = lease, answer.Header.GetRevision()
	l.validUntil = sent + time.Duration(ttl)*time.Second - l.opt.Margin
	return nil
}

// Renew extends the validity of a held lock. An error leaves the validity unchanged, except for ErrLost: then the lock
// is no longer held.
func (l *Lock) Renew(ctx context.Context) error {
	l.mu.Lock()
	lease, held := l.lease, l.token != 0
	l.mu.Unlock()
	if !held {
		return ErrLost
	}
	sent := l.opt.Now()
	ttl, err := l.store.KeepAliveOnce(ctx, lease)
	if isLeaseGone(err) || (err == nil && ttl <= 0) {
		l.forget()
		return ErrLost
	}
	if err != nil {
		return fmt.Errorf("cannot renew the lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.validUntil = max(l.validUntil, sent+time.Duration(ttl)*time.Second-l.opt.Margin)
	return nil
}

// Confirm checks that a step may start: the remaining validity covers budget plus spare, and a new transaction shows
// that this agent still holds the lock. It returns the step's context, which ends after budget, before the validity
// does.
func (l *Lock) Confirm(ctx context.Context, budget, spare time.Duration) (context.Context, context.CancelFunc, error) {
	token := l.Token()
	if token == 0 {
		return nil, nil, ErrLost
	}
	if err := l.covers(budget + spare); err != nil {
		return nil, nil, err
	}
	answer, err := l.store.Txn(ctx, []clientv3.Cmp{l.isOurs(token)})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot confirm the lock: %w", err)
	}
	if !answer.Succeeded {
		l.forget()
		return nil, nil, ErrLost
	}
	if err := l.covers(budget); err != nil {
		return nil, nil, err
	}
	stepCtx, cancel := context.WithTimeout(ctx, budget)
	return stepCtx, cancel, nil
}

// covers returns an error if the remaining validity is too short for the step.
func (l *Lock) covers(need time.Duration) error {
	if left := l.ValidFor(); left < need {
		return fmt.Errorf("%w: %s left, %s needed", ErrTooLate, durationfmt.Text(left.Round(time.Millisecond)),
			durationfmt.Text(need))
	}
	return nil
}

// Release releases the lock by revoking its lease. From then on, this agent does not hold the lock, whether or not etcd
// answers.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	l.forget()
	if lease == 0 {
		return nil
	}
	return l.revoke(ctx, lease)
}

// revoke revokes a lease even if the caller's context has ended, because an orphaned key would block the next holder
// until the lease expires.
func (l *Lock) revoke(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	if err := l.store.Revoke(ctx, lease); err != nil && !isLeaseGone(err) {
		return fmt.Errorf("cannot revoke the lock's lease, which expires in %s: %w",
			durationfmt.Text(l.opt.TTL), err)
	}
	return nil
}

func (l *Lock) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.token, l.validUntil = 0, 0, 0
}

// isOurs returns the condition that the lock key is still the one that this agent created.
func (l *Lock) isOurs(token int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.opt.Keys.Lock()), "=", token)
}

// opIs returns the condition that the operation record was last written at revision; 0 means that there is none.
func (l *Lock) opIs(revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(l.opt.Keys.Op()), "=", revision)
}
