// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	canaryPeriod = 10 * time.Millisecond
	// canaryLimit is what a 10 ms timer may be late before a sample counts as contaminated. An idle machine stays below
	// 2 ms; eight busy loops on two processors gave 64 ms at the 99th percentile.
	canaryLimit = 5 * time.Millisecond
	// canaryShare: the wakes must be late by a quarter of the operation's latency in sum.
	canaryShare = 4
)

// canary notices that the processor is short: it asks to be woken after 10 ms, again and again, and adds up by how much
// the wakes came too late. It only runs from shortly before an operation until its end, as it would be most of the
// probe's cost.
type canary struct {
	wake  chan struct{}
	armed atomic.Bool
	dozed atomic.Int64 // when the present doze began, on Monotonic
	late  atomic.Int64 // since it was armed, in sum; wakes within the limit do not count
}

func newCanary() *canary { return &canary{wake: make(chan struct{}, 1)} }

// run is the canary's goroutine.
func (c *canary) run(ctx context.Context) {
	timer := time.NewTimer(canaryPeriod)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for c.armed.Load() && ctx.Err() == nil {
			began := Monotonic()
			c.dozed.Store(int64(began))
			timer.Reset(canaryPeriod)
			<-timer.C
			c.late.Add(int64(lateness(began, Monotonic())))
		}
	}
}

func (c *canary) arm() {
	c.late.Store(0)
	c.dozed.Store(int64(Monotonic()))
	c.armed.Store(true)
	select {
	case c.wake <- struct{}{}:
	default: // it has not even noticed the last call
	}
}

func (c *canary) disarm() { c.armed.Store(false) }

// contaminated says whether the processor was short since the canary was armed, in a measure that matters to an
// operation that took so long. In an operation of many seconds one of hundreds of wakes is late on any machine.
func (c *canary) contaminated(latency, now time.Duration) bool {
	late := time.Duration(c.late.Load()) + lateness(time.Duration(c.dozed.Load()), now)
	return late*canaryShare > max(latency, canaryShare*canaryLimit)
}

// lateness is by how much a doze was too long, 0 within the limit.
func lateness(began, now time.Duration) time.Duration {
	if late := now - began - canaryPeriod; late > canaryLimit {
		return late
	}
	return 0
}
