// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	trialBound = 2 * bound // for one trial, which takes about four seconds
	afterwards = 300 * time.Millisecond
)

// court is the etcd of many concurrent trials, each with its own lock.
type court struct {
	address string // of etcd, host:port
	etcd    *clientv3.Client
	store   *cluster.Client
}

func newCourt(t *testing.T) *court {
	t.Helper()
	m := startEtcd(t)
	etcd, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	store, err := connect(m.Options.ClientURL, trialBound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &court{address: strings.TrimPrefix(m.Options.ClientURL, "http://"), etcd: etcd, store: store}
}

// outcome is the result of one trial.
type outcome struct {
	margin time.Duration // from the holder's last action until the next holder had the lock
	late   int           // renewals answered more than the TTL after they were sent
}

// next waits for the lock as the next holder, and returns the moment at which it acquired the lock.
func (c *court) next(ctx context.Context, r rule, name string) (time.Duration, error) {
	if r == ourLock {
		return c.nextLock(ctx, name)
	}
	session, err := concurrency.NewSession(c.etcd, concurrency.WithTTL(60))
	if err != nil {
		return 0, err
	}
	defer session.Close()
	err = concurrency.NewMutex(session, name).Lock(ctx)
	return boottime(), err
}

// nextLock tries again after each change of the key.
func (c *court) nextLock(ctx context.Context, name string) (time.Duration, error) {
	l := lock.New(c.store, options(name, "next", trialTTL, trialMargin))
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := c.etcd.Watch(watchCtx, ourLock.key(name))
	for {
		err := l.Take(ctx, 0)
		took := boottime()
		if err == nil {
			return took, l.Release(ctx)
		}
		if !errors.Is(err, lock.ErrTaken) {
			return 0, err
		}
		if _, ok := <-changes; !ok {
			return 0, fmt.Errorf("the lock was not free in time: %w", ctx.Err())
		}
	}
}

// try runs a number of trials, at most atATime concurrently, and returns their results, the worst first.
func try(t *testing.T, trials, atATime int, run func(ctx context.Context, n int) (outcome, error)) []outcome {
	t.Helper()
	var mu sync.Mutex
	var all []outcome
	var running sync.WaitGroup
	numbers := make(chan int)
	for range atATime {
		running.Go(func() {
			for n := range numbers {
				ctx, cancel := context.WithTimeout(t.Context(), trialBound)
				o, err := run(ctx, n)
				cancel()
				mu.Lock()
				if err != nil {
					t.Errorf("trial %d: %v", n, err)
				} else {
					all = append(all, o)
				}
				mu.Unlock()
			}
		})
	}
	for n := range trials {
		numbers <- n
	}
	close(numbers)
	running.Wait()
	slices.SortFunc(all, func(a, b outcome) int { return int(a.margin - b.margin) })
	return all
}

func overlaps(all []outcome) int {
	return len(all) - len(slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.margin < 0 }))
}

// judge fails the test if a holder acted after the next one had the lock, or if no answer came late.
func judge(t *testing.T, what string, all []outcome) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no trial came to an end")
	}
	late := 0
	for _, o := range all {
		late += o.late
	}
	worst, median := all[0].margin, all[len(all)/2].margin
	if most := all[len(all)-1].margin; most > trialBound {
		t.Errorf("a holder has never acted: it stopped %v before the next one had the lock", most)
	}
	t.Logf("%d trials across %s: %d overlaps, worst margin %v, median %v; %d renewals were answered after the lease "+
		"had ended",
		len(all), what, overlaps(all), worst.Round(time.Microsecond), median.Round(time.Millisecond), late)
	for _, o := range all[:overlaps(all)] {
		t.Errorf("a holder acted %v after the next one had the lock", -o.margin)
	}
	if late == 0 {
		t.Error("no answer came late: the worst case was not tried")
	}
}

func randomly(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

// network starts a separate proxy for a trial.
func (c *court) network() (*testbed.Proxy, error) {
	return testbed.StartProxy("127.0.0.1:0", c.address)
}
