// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll runs calls that may hang in the background, and keeps their newest value. Reading the value never
// blocks.
package poll

import (
	"context"
	"math"
	"sync"
	"time"
)

// Look keeps the newest value of a call that may hang. At most one call is in progress. While it hangs, no other
// starts, and the value grows old.
type Look[T any] struct {
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

// Refresh starts a call unless one is in progress or the last one began less than every ago. bound is the timeout of
// the call's context.
func (l *Look[T]) Refresh(ctx context.Context, now func() time.Duration, every, bound time.Duration,
	look func(context.Context) (T, error),
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := now()
	if l.busy || (l.tried != 0 && began-l.tried < every) {
		return
	}
	l.busy, l.tried, l.bound = true, began, bound
	go func() {
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		value, err := look(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy = false
		if l.discard {
			l.discard, l.tried = false, 0
			return
		}
		l.err = err
		if err == nil {
			l.has, l.value, l.at = true, value, began
		}
	}()
}

// Get returns the newest value and the error of the last call. ok reports whether there is a value that is not older
// than oldest.
func (l *Look[T]) Get(now, oldest time.Duration) (value T, err error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.has || now-l.at > oldest {
		return value, l.err, false
	}
	return l.value, l.err, true
}

// Age returns the age of the newest value, or the longest duration if there is none.
func (l *Look[T]) Age(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.has {
		return math.MaxInt64
	}
	return now - l.at
}

// Hung reports whether a call has been in progress for more than twice its timeout.
func (l *Look[T]) Hung(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy && now-l.tried > 2*l.bound
}

// Forget discards the value, and the result of a call in progress, because both are from before a change.
func (l *Look[T]) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.has, l.tried, l.discard = false, 0, l.busy
}
