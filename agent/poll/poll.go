// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll does what may hang beside the loop that needs it: one look at a time, of which it keeps the newest
// value and its age. Nobody who asks for the value ever waits for the look.
package poll

import (
	"context"
	"math"
	"sync"
	"time"
)

// Look keeps the newest value of something that may hang. At most one look is under way: a look
// that hangs is never doubled, its value just grows old.
type Look[T any] struct {
	mu      sync.Mutex
	busy    bool
	has     bool
	value   T
	err     error
	at      time.Duration // when the value was looked at
	tried   time.Duration // when the last look began
	bound   time.Duration // of the look that is under way
	discard bool          // the value under way is of before something changed
}

// Refresh starts a look if the last one is older than every and none is under way. bound ends the
// context of the look.
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

// Get gives the newest value, its age, and the error of the last look. ok is false when there is
// no value or it is older than oldest.
func (l *Look[T]) Get(now, oldest time.Duration) (value T, err error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.has || now-l.at > oldest {
		return value, l.err, false
	}
	return l.value, l.err, true
}

// Age gives the age of the newest value, or the longest time there is when there is none.
func (l *Look[T]) Age(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.has {
		return math.MaxInt64
	}
	return now - l.at
}

// Hung tells whether a look is under way that should have come back long ago.
func (l *Look[T]) Hung(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy && now-l.tried > 2*l.bound
}

// Forget drops the value, because something has been done that changes it.
func (l *Look[T]) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.has, l.tried, l.discard = false, 0, l.busy
}
