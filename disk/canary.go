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
	// canaryLimit is how late a 10 ms timer may be before a sample counts as contaminated. An idle machine stays below
	// 2 ms; eight busy loops on two CPUs caused 64 ms at the 99th percentile.
	canaryLimit = 5 * time.Millisecond
	// canaryShare limits the total lateness during an operation: a sample counts as contaminated only if the
	// lateness exceeds 1/canaryShare of the latency.
	canaryShare = 4
)

// canary detects CPU starvation: it sleeps for 10 ms at a time and adds up how late it wakes. It runs only from shortly
// before an operation until its end, because it would otherwise account for most of the probe's cost. An operation of
// less than 10 ms ends before the canary wakes. For such an operation, the canary uses how late the prober woke from
// its sleep just before the operation.
type canary struct {
	timer *time.Timer
	armed atomic.Bool
	dozed atomic.Int64 // when the current sleep began, on Monotonic
	late  atomic.Int64 // total lateness since the canary was armed, without wake-ups within the limit
}

func newCanary() *canary {
	c := &canary{}
	c.timer = time.AfterFunc(canaryPeriod, c.woken) // the first wake-up has no effect, because the canary is not armed
	return c
}

// woken ends a sleep and begins the next one. If the canary was armed again in the meantime, woken ends the new sleep
// early, which adds nothing.
func (c *canary) woken() {
	if !c.armed.Load() {
		return
	}
	now := Monotonic()
	began := time.Duration(c.dozed.Swap(int64(now)))
	c.late.Add(int64(lateness(began, now)))
	c.timer.Reset(canaryPeriod)
}

// doze sleeps for one period and arms the canary with the delay of that sleep.
func (c *canary) doze(ctx context.Context) {
	began := Monotonic()
	nap(ctx, canaryPeriod)
	c.arm(lateness(began, Monotonic()))
}

// arm starts watching; late is the delay measured so far.
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

// contaminated reports whether CPU starvation since the canary was armed was significant for an operation with
// the given latency. A single late wake-up during a long operation is usually not significant: one of hundreds is late
// on any machine.
func (c *canary) contaminated(latency, now time.Duration) bool {
	late := time.Duration(c.late.Load()) + lateness(time.Duration(c.dozed.Load()), now)
	return late*canaryShare > max(latency, canaryShare*canaryLimit)
}

// lateness returns how much longer than canaryPeriod a sleep was; 0 within the limit.
func lateness(began, now time.Duration) time.Duration {
	if late := now - began - canaryPeriod; late > canaryLimit {
		return late
	}
	return 0
}
