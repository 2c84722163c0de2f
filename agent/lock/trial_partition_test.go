// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// partition makes a network fail. It returns when no request reaches etcd any longer.
type partition func(ctx context.Context, proxy *testbed.Proxy) error

// partitions returns the partitions that the trials use in turn.
func partitions() []partition {
	return []partition{cutOff, answersLostFirst, answersLate, connectionsReset}
}

func cutOff(_ context.Context, proxy *testbed.Proxy) error {
	proxy.Set(testbed.Cut())
	return nil
}

// answersLostFirst first holds back only answers, so that renewals still reach etcd for a while.
func answersLostFirst(ctx context.Context, proxy *testbed.Proxy) error {
	proxy.Set(testbed.Faults{HoldResponses: true})
	err := wait(ctx, randomly(0, trialTTL))
	proxy.Set(testbed.Cut())
	return err
}

// answersLate delivers answers at about the time when the renewed lease expires.
func answersLate(ctx context.Context, proxy *testbed.Proxy) error {
	proxy.Set(testbed.Faults{HoldResponses: true})
	err := wait(ctx, randomly(0, 2*renewEvery))
	proxy.Set(testbed.Cut())
	if err == nil {
		err = wait(ctx, randomly(trialTTL/2, trialTTL*5/4))
	}
	proxy.Set(testbed.Faults{HoldRequests: true})
	return err
}

func connectionsReset(_ context.Context, proxy *testbed.Proxy) error {
	proxy.Set(testbed.Faults{Refuse: true})
	proxy.Reset()
	return nil
}

// acrossPartition cuts a holder off, and heals the network after the next holder has the lock.
func (c *court) acrossPartition(ctx context.Context, r rule, n int, fail partition) (outcome, error) {
	name := fmt.Sprintf("partition-%d", n)
	proxy, err := c.network()
	if err != nil {
		return outcome{}, err
	}
	defer proxy.Close()
	// One timeout ends before the lease expires, the other waits for a late answer.
	callTimeout := []time.Duration{trialTTL / 4, 2 * trialTTL}[n%2]
	h, err := r.hold(ctx, "http://"+proxy.Addr(), name, callTimeout, func() {})
	if err != nil {
		return outcome{}, err
	}
	defer h.close()
	w := watch(h)
	defer w.stop()

	type taken struct {
		at  time.Duration
		err error
	}
	next := make(chan taken, 1)
	go func() {
		at, err := c.next(ctx, r, name)
		next <- taken{at, err}
	}()
	if err := wait(ctx, randomly(0, 2*renewEvery)); err != nil {
		return outcome{}, err
	}
	if err := fail(ctx, proxy); err != nil {
		return outcome{}, err
	}
	took := <-next
	if took.err != nil {
		return outcome{}, took.err
	}
	if err := wait(ctx, randomly(0, afterwards)); err != nil {
		return outcome{}, err
	}
	proxy.Set(testbed.Faults{}) // delayed messages arrive now
	if err := wait(ctx, afterwards); err != nil {
		return outcome{}, err
	}
	return outcome{margin: took.at - w.lastActed(), late: h.late()}, nil
}

func TestNoTwoHoldersAcrossPartitions(t *testing.T) {
	t.Parallel()
	c, ways := newCourt(t), partitions()
	judge(t, "partitions", try(t, 200, 40, func(ctx context.Context, n int) (outcome, error) {
		return c.acrossPartition(ctx, ourLock, n, ways[n/2%len(ways)])
	}))
}
