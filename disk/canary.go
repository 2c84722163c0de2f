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
// the wakes came too late. It only does so from shortly before an operation until its end, as it would be most of the
// probe's cost. An operation that ends sooner wakes it not at all: the doze before it was the prober's own.
type canary struct {
	timer *time.Timer
	armed atomic.Bool
	dozed atomic.Int64 // when the present doze began, on Monotonic
	late  atomic.Int64 // since it was armed, in sum; wakes within the limit do not count
}

func newCanary() *canary {
	c := &canary{}
	c.timer = time.AfterFunc(canaryPeriod, c.woken) // it finds nothing to watch yet
	return c
}

// woken ends a doze and begins the next one. One that comes when the canary has been armed anew ends that first doze,
// and adds nothing to it.
func (c *canary) woken() {
	if !c.armed.Load() {
		return
	}
	now := Monotonic()
	began := time.Duration(c.dozed.Swap(int64(now)))
	c.late.Add(int64(lateness(began, now)))
	c.timer.Reset(canaryPeriod)
}

// doze waits for a period, and arms the canary with by how much that was too long.
func (c *canary) doze(ctx context.Context) {
	began := Monotonic()
	nap(ctx, canaryPeriod)
	c.arm(lateness(began, Monotonic()))
}

// arm begins to watch, with what has been late already.
func (c *canary) arm(late time.Duration) {
	c.late.Store(int64(late))
	c.dozed.Store(int64(Monotonic()))
	c.armed.Store(true)
	c.timer.Reset(canaryPeriod)
}

func (c *canary) disarm() {
	c.armed.Store(false)
	c.timer.Stop()
}

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
