// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
)

const (
	trialTTL    = 2 * time.Second
	trialMargin = 0 // the lock must keep its promises without a margin
	renewEvery  = trialTTL / 6
)

// holder holds the lock in one trial, under one of two rules.
type holder interface {
	// mayAct reports whether the holder may act. The tests check that at most one holder may act at any time.
	mayAct() bool
	// late returns how many renewals were answered more than the TTL after they were sent; always 0 for theirSession.
	late() int
	close()
}

// rule is a way to hold a lock in etcd.
type rule string

const (
	ourLock      rule = "lock"    // the lock of this package
	theirSession rule = "session" // the session and mutex of the etcd client, for comparison
)

// hold takes the lock through an endpoint. The holder calls renewing whenever it sends a renewal.
func (r rule) hold(ctx context.Context, endpoint, name string, callTimeout time.Duration,
	renewing func(),
) (holder, error) {
	if r == ourLock {
		return holdLock(ctx, endpoint, name, callTimeout, renewing)
	}
	return holdSession(ctx, endpoint, name, renewing)
}

// key returns the key that the next holder watches.
func (r rule) key(name string) string {
	if r == ourLock {
		return record.KeysFor(name).Lock()
	}
	return name
}

// lockHolder holds the lock as the agent does: one loop, one renewal at a time.
type lockHolder struct {
	*lock.Lock
	lateAnswers atomic.Int64
	stop        func()
}

func holdLock(ctx context.Context, endpoint, name string, callTimeout time.Duration, renewing func()) (holder, error) {
	store, err := connect(endpoint, callTimeout)
	if err != nil {
		return nil, err
	}
	h := &lockHolder{Lock: lock.New(store, options(name, "holder", trialTTL, trialMargin))}
	for !h.MayAct() { // a busy machine may need several attempts
		err := h.Take(ctx, 0)
		if err != nil && wait(ctx, 50*time.Millisecond) != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { h.loop(ctx, callTimeout, renewing) })
	h.stop = func() {
		cancel()
		running.Wait()
		_ = store.Close() // closing is not part of the trial
	}
	return h, nil
}

func (h *lockHolder) loop(ctx context.Context, callTimeout time.Duration, renewing func()) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		renewing()
		sent := boottime()
		bounded, cancel := context.WithTimeout(ctx, 2*callTimeout)
		err := h.Renew(bounded)
		cancel()
		if err == nil && boottime()-sent > trialTTL {
			h.lateAnswers.Add(1)
		}
	}
}

func (h *lockHolder) mayAct() bool { return h.MayAct() }
func (h *lockHolder) late() int    { return int(h.lateAnswers.Load()) }
func (h *lockHolder) close()       { h.stop() }

// sessionHolder holds the lock with the session of the etcd client.
type sessionHolder struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func holdSession(ctx context.Context, endpoint, name string, renewing func()) (holder, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithStatsHandler(renewals{renewing})},
	})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(trialTTL/time.Second)))
	if err == nil {
		err = concurrency.NewMutex(session, name).Lock(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &sessionHolder{client, session}, nil
}

func (h *sessionHolder) mayAct() bool {
	select {
	case <-h.session.Done():
		return false
	default:
		return true
	}
}

func (h *sessionHolder) late() int { return 0 }

func (h *sessionHolder) close() {
	h.session.Orphan()
	_ = h.client.Close() // closing is not part of the trial
}

// renewals reports when a client sends a renewal.
type renewals struct{ sent func() }

func (r renewals) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok {
		if _, ok := out.Payload.(*pb.LeaseKeepAliveRequest); ok {
			r.sent()
		}
	}
}

func (r renewals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r renewals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r renewals) HandleConn(context.Context, stats.ConnStats)                       {}

// watcher checks every millisecond whether a holder may act, and keeps the last time at which the answer was yes.
type watcher struct {
	last atomic.Int64
	stop func()
}

func watch(h holder) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{}
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			// Read the time first. In the opposite order, if the process is paused between the two calls, an answer
			// from before the pause would get a time after it.
			if now := boottime(); h.mayAct() {
				w.last.Store(int64(now))
			}
			<-tick.C
		}
	})
	w.stop = func() {
		cancel()
		running.Wait()
	}
	return w
}

func (w *watcher) lastActed() time.Duration { return time.Duration(w.last.Load()) }

// The test binary also runs as a child process that holds a lock and can be stopped by a signal. The child takes a
// rule, an endpoint, a name and a call timeout, and writes events to standard output until its standard input ends.
const (
	asHolder    = "hold-the-lock"
	saysHeld    = "held"
	saysRenewal = "renewing"
	saysReport  = "report" // followed by the time of lastActed and the number of answers that came late
)

func holderMain(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if len(args) != 4 {
		return fail(errors.New("usage: rule endpoint name callTimeout"))
	}
	callTimeout, err := time.ParseDuration(args[3])
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	h, err := rule(args[0]).hold(ctx, args[1], args[2], callTimeout, func() { fmt.Println(saysRenewal) })
	if err != nil {
		return fail(err)
	}
	w := watch(h)
	fmt.Println(saysHeld)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fail(err)
	}
	w.stop()
	fmt.Println(saysReport, strconv.FormatInt(int64(w.lastActed()), 10), h.late())
	return 0
}
