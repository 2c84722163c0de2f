// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import "sync"

// bell wakes all goroutines that wait for the next published round.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// rung returns a channel that is closed when the bell rings next.
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
