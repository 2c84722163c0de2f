// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll runs calls in the background, because they may hang, and keeps their newest value. Reading the value
// never blocks.
package poll

import (
	"context"
	"math"
	"sync"
	"time"
)

// Poller keeps the newest value of a call that may hang. At most one call is in progress. While it hangs, no other call
// starts, and the value ages.
type Poller[T any] struct {
	mu      sync.Mutex
	busy    bool
	has     bool
	value   T
	err     error
	at      time.Duration // when the call that returned the value began
	tried   time.Duration // when the last call began
	bound   time.Duration // timeout of the last call
	discard bool          // the call in progress began before Forget
}

// Refresh starts a call unless one is in progress, or less time than every has passed since the last one began. bound
// is the timeout of the call's context.
func (p *Poller[T]) Refresh(ctx context.Context, now func() time.Duration, every, bound time.Duration,
	call func(context.Context) (T, error),
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := now()
	if p.busy || (p.tried != 0 && began-p.tried < every) {
		return
	}
	p.busy, p.tried, p.bound = true, began, bound
	go func() {
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		value, err := call(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
		if p.discard {
			p.discard, p.tried = false, 0
			return
		}
		p.err = err
		if err == nil {
			p.has, p.value, p.at = true, value, began
		}
	}()
}

// Get returns the newest value and the error of the last call. If there is no value, or it is older than oldest, ok is
// false and the value is zero.
func (p *Poller[T]) Get(now, oldest time.Duration) (value T, err error, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.has || now-p.at > oldest {
		return value, p.err, false
	}
	return p.value, p.err, true
}

// Age returns the age of the newest value, or the longest duration if there is none.
func (p *Poller[T]) Age(now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.has {
		return math.MaxInt64
	}
	return now - p.at
}

// Hung reports whether a call has been in progress for more than twice its timeout.
func (p *Poller[T]) Hung(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy && now-p.tried > 2*p.bound
}

// Forget discards the value, and the result of a call in progress, because both are from before a change.
func (p *Poller[T]) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has, p.discard = false, p.busy
	if !p.busy {
		p.tried = 0
	}
}
