// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"sync"
)

// bell wakes all who wait for the next published round.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// rung gives a channel that is closed when the bell is rung next.
func (b *bell) rung() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// LookAgain waits until Status gives what was seen after the call, so that whoever has just changed something finds it
// there. It ends with the context's error when the loop does not come to it before.
func (a *Agent) LookAgain(ctx context.Context) error {
	begun := a.begun.Load() // this round may have looked already
	for {
		published := a.published.rung()
		if r := a.current.Load(); r != nil && r.Number > begun && r.Looked() {
			return nil
		}
		a.Wake() // again: the round that took the wish in may have begun before
		select {
		case <-ctx.Done():
			return fmt.Errorf("no new picture yet: %w", ctx.Err())
		case <-published:
		}
	}
}
