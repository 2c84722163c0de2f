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

	"github.com/quorumd/quorumd/agent/lock"
)

// leaseServer keeps leases and one key, in virtual time. It ends a lease in the very moment it may:
// real etcd is later, which would hide an overlap.
type leaseServer struct {
	mu       sync.Mutex
	random   *rand.Rand
	ends     map[clientv3.LeaseID]time.Time
	revision int64
	created  int64            // the key's create revision; 0 when it is not there
	owner    clientv3.LeaseID // the lease of the key
}

// expire ends what has run out.
func (s *leaseServer) expire() {
	for id, end := range s.ends {
		if !time.Now().Before(end) {
			s.drop(id)
		}
	}
}

func (s *leaseServer) drop(id clientv3.LeaseID) {
	delete(s.ends, id)
	if s.owner == id && s.created != 0 {
		s.revision++
		s.created = 0
	}
}

// network is one host's way to the server: every request and every answer takes its own time, or
// is lost.
type network struct {
	server *leaseServer
	lease  clientv3.LeaseID // what was granted last
}

const simulatedTTL = 10

// travel takes up to a bit more than a lease, mostly much less; lost says that it never arrives.
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

// call carries a request there and its answer back. A request arrives even when its caller has
// given up.
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
			n.server.expire()
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
	s := n.server
	id, err := call(ctx, n, func() (clientv3.LeaseID, error) {
		id := clientv3.LeaseID(s.random.Int64())
		s.ends[id] = time.Now().Add(time.Duration(ttl) * time.Second)
		return id, nil
	})
	n.lease = id
	return id, ttl, err
}

// Txn knows two: to take the key when it is absent, and to ask whether it is the caller's.
func (n *network) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	s, lease := n.server, n.lease
	want := conditions[0].GetCompare().GetCreateRevision()
	return call(ctx, n, func() (*clientv3.TxnResponse, error) {
		ok := s.created == want
		if ok && len(then) > 0 {
			if _, alive := s.ends[lease]; !alive {
				return nil, rpctypes.ErrLeaseNotFound
			}
			s.revision++
			s.created, s.owner = s.revision, lease
		}
		return &clientv3.TxnResponse{Header: &pb.ResponseHeader{Revision: s.revision}, Succeeded: ok}, nil
	})
}

func (n *network) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	s := n.server
	return call(ctx, n, func() (int64, error) {
		if _, alive := s.ends[id]; !alive {
			return 0, rpctypes.ErrLeaseNotFound
		}
		s.ends[id] = time.Now().Add(simulatedTTL * time.Second)
		return simulatedTTL, nil
	})
}

func (n *network) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	_, err := call(ctx, n, func() (bool, error) {
		n.server.drop(id)
		return true, nil
	})
	return err
}

// host is a loop like the agent's: it renews what it holds, tries to take what it does not, and
// now and then gives it back or stands still.
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
		changed() // nothing else makes a validity longer
	}
}

func TestInAnyScheduleOfDelaysAndLossesOneHostMayActAtMost(t *testing.T) {
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

// simulate runs four hosts for ten minutes and counts how often the lock changes hands.
func simulate(t *testing.T, seed uint64) (takeovers int) {
	began := time.Now()
	server := &leaseServer{random: rand.New(rand.NewPCG(seed, 1)), ends: map[clientv3.LeaseID]time.Time{}}
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
