// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/sim/keyspace"
)

// leaseServer is a server that expires a lease at the earliest allowed moment. A real etcd does so later, which would
// hide an overlap.
type leaseServer struct {
	mu     sync.Mutex
	random *rand.Rand
	store  *keyspace.Store
}

// network is one host's connection to the server: every request and every answer is delayed independently, or lost.
type network struct {
	pb.KVClient // nil; sent implements Txn
	server      *leaseServer
}

const simulatedTTL = 10

// travel returns a random delay, sometimes longer than a lease and mostly much shorter; lost means that the message
// never arrives.
func (n *network) travel() (d time.Duration, lost bool) {
	r := n.server.random
	switch r.IntN(10) {
	case 0:
		return 0, true
	case 1, 2:
		return time.Duration(r.Int64N(int64(simulatedTTL * 1.2 * float64(time.Second)))), false
	default:
		return time.Duration(r.Int64N(int64(200 * time.Millisecond))), false
	}
}

// call delivers a request and its answer, unless they are lost. The request arrives even if its caller has given up.
func call[T any](ctx context.Context, n *network, serve func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	n.server.mu.Lock()
	there, lost := n.travel()
	back, lostBack := n.travel()
	n.server.mu.Unlock()
	if !lost {
		time.AfterFunc(there, func() {
			n.server.mu.Lock()
			n.server.store.Expire()
			value, err := serve()
			n.server.mu.Unlock()
			if !lostBack {
				time.AfterFunc(back, func() { answer <- result{value, err} })
			}
		})
	}
	select {
	case r := <-answer:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (n *network) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	id, err := call(ctx, n, func() (int64, error) {
		return n.server.store.Grant(time.Duration(ttl) * time.Second).ID, nil
	})
	return clientv3.LeaseID(id), ttl, err
}

func (n *network) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return clientv3.NewKVFromKVClient(sent{n}, nil).Txn(ctx).If(conditions...).Then(then...).Commit()
}

// sent receives a transaction in the form in which etcd's client sends it.
type sent struct{ *network }

func (s sent) Txn(ctx context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call(ctx, s.network, func() (*pb.TxnResponse, error) { return s.server.store.Txn(in) })
}

func (n *network) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	return call(ctx, n, func() (int64, error) {
		_, err := n.server.store.Renew(int64(id))
		return simulatedTTL, rpctypes.Error(err)
	})
}

func (n *network) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	_, err := call(ctx, n, func() ([]string, error) { return n.server.store.Revoke(int64(id)) })
	return rpctypes.Error(err)
}

// host is a loop like the agent's: it renews the lock while it holds it, and otherwise tries to take it. Sometimes it
// releases the lock, or pauses.
func host(ctx context.Context, l *lock.Lock, random *rand.Rand, changed func()) {
	for {
		pause := time.Second
		if random.IntN(20) == 0 {
			pause = time.Duration(random.Int64N(int64(2 * simulatedTTL * time.Second)))
		}
		if wait(ctx, pause) != nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, 8*time.Second)
		switch {
		case l.Token() == 0:
			_ = l.Take(bounded, 0)
		case random.IntN(20) == 0:
			_ = l.Release(bounded)
		default:
			_ = l.Renew(bounded)
		}
		cancel()
		changed() // nothing else extends the validity
	}
}

func TestAtMostOneHostMayActUnderRandomDelaysAndLosses(t *testing.T) {
	t.Parallel()
	const schedules = 300
	takeovers := 0
	for seed := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) { takeovers += simulate(t, seed) })
	}
	if takeovers < 10*schedules {
		t.Errorf("the lock changed hands only %d times: this test has shown little", takeovers)
	}
	t.Logf("%d schedules of 10 minutes, 4 hosts, no margin: the lock changed hands %d times, and never had two holders",
		schedules, takeovers)
}

// simulate runs four hosts for ten minutes and counts how many times the lock changes hands.
func simulate(t *testing.T, seed uint64) (takeovers int) {
	began := time.Now()
	server := &leaseServer{random: rand.New(rand.NewPCG(seed, 1)), store: keyspace.New()}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var hosts []*lock.Lock
	for i := range 4 {
		o := options("c", string(rune('a'+i)), simulatedTTL*time.Second, 0)
		o.Now = func() time.Duration { return time.Since(began) }
		hosts = append(hosts, lock.New(&network{server: server}, o))
	}
	var mu sync.Mutex
	var last int64
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		var holders []int64
		for _, l := range hosts {
			if l.MayAct() {
				holders = append(holders, l.Token())
			}
		}
		if len(holders) > 1 {
			t.Errorf("seed %d: after %v the holders of the tokens %v may act", seed, time.Since(began), holders)
		}
		if len(holders) == 1 && holders[0] != last {
			last = holders[0]
			takeovers++
		}
	}
	var running sync.WaitGroup
	for i, l := range hosts {
		running.Go(func() { host(ctx, l, rand.New(rand.NewPCG(seed, 2+uint64(i))), look) })
	}
	running.Wait()
	return takeovers
}
