// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// bound is the maximum time that a test waits for a call that should take a few seconds.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asHolder {
		os.Exit(holderMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// within returns a context that ends after bound.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// boottime returns the time of the clock that agents use for the lock. All processes of a machine share that clock.
func boottime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// startEtcd runs one member whose minimum TTL of leases is the shortest possible: one second, which is 1.5 times the
// election timeout, rounded up. It does not sync to the disk, because no test here depends on that.
func startEtcd(t *testing.T) *testbed.Member {
	t.Helper()
	return testbed.StartCluster(t, 1, testbed.ClusterOptions{
		Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Extra: []string{"--unsafe-no-fsync"},
	}).Members[0]
}

// connect returns a client like the agent's.
func connect(endpoint string, callTimeout time.Duration) (*cluster.Client, error) {
	return cluster.New(cluster.Options{
		Endpoints: []string{endpoint}, CallTimeout: callTimeout, Logger: slog.New(slog.DiscardHandler),
	})
}

// options returns the options of a host in the cluster of that name.
func options(clusterName, host string, ttl, margin time.Duration) lock.Options {
	return lock.Options{
		Keys: record.KeysFor(clusterName), Host: host, Name: host, TTL: ttl, Margin: margin, Now: boottime,
		Wall: time.Now,
	}
}

// bench is an etcd with the hosts a and b, which have not taken the lock yet.
type bench struct {
	t      *testing.T
	member *testbed.Member
	etcd   *clientv3.Client // direct access, without the lock
	store  *cluster.Client
	keys   record.Keys
	a, b   *lock.Lock
}

const (
	benchTTL    = bound
	benchMargin = 100 * time.Millisecond
	shortTTL    = time.Second // for tests that wait for a lease to expire
)

func newBench(t *testing.T) *bench {
	t.Helper()
	s := &bench{t: t, member: startEtcd(t), keys: record.KeysFor("c")}
	s.store = s.connect(s.member.Options.ClientURL, bound)
	etcd, err := s.member.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	s.etcd = etcd
	s.a, s.b = s.host("a", s.store, benchTTL), s.host("b", s.store, benchTTL)
	return s
}

func (s *bench) connect(endpoint string, callTimeout time.Duration) *cluster.Client {
	s.t.Helper()
	store, err := connect(endpoint, callTimeout)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { store.Close() })
	return store
}

func (s *bench) host(name string, store lock.Store, ttl time.Duration) *lock.Lock {
	return lock.New(store, options("c", name, ttl, benchMargin))
}

// proxied returns a breakable connection to etcd, with calls that time out after a second.
func (s *bench) proxied() (*cluster.Client, *testbed.Proxy) {
	s.t.Helper()
	proxy := testbed.NewProxy(s.t, strings.TrimPrefix(s.member.Options.ClientURL, "http://"))
	return s.connect("http://"+proxy.Addr(), time.Second), proxy
}

func (s *bench) take(l *lock.Lock, seenOp int64) {
	s.t.Helper()
	if err := l.Take(within(s.t), seenOp); err != nil {
		s.t.Fatal(err)
	}
}

// get reads a key with its create and modification revisions; there reports whether the key exists.
func (s *bench) get(key string) (value string, created, modified int64, there bool) {
	s.t.Helper()
	answer, err := s.etcd.Get(within(s.t), key)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return "", 0, 0, false
	}
	kv := answer.Kvs[0]
	return string(kv.Value), kv.CreateRevision, kv.ModRevision, true
}

func (s *bench) locked() bool {
	s.t.Helper()
	_, _, _, there := s.get(s.keys.Lock())
	return there
}

// op returns the operation record and the revision at which it was last written.
func (s *bench) op() (record.Op, int64) {
	s.t.Helper()
	value, _, modified, there := s.get(s.keys.Op())
	if !there {
		return record.Op{}, 0
	}
	op, err := record.Decode[record.Op]([]byte(value))
	if err != nil {
		s.t.Fatal(err)
	}
	return op, modified
}

func (s *bench) leases() int {
	s.t.Helper()
	answer, err := s.etcd.Leases(within(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(answer.Leases)
}

// robbed returns a bench in which a has taken the lock, and b has taken it over unnoticed because the key was deleted,
// as by an operator's mistake.
func robbed(t *testing.T) *bench {
	t.Helper()
	s := newBench(t)
	s.take(s.a, 0)
	if _, err := s.etcd.Delete(within(t), s.keys.Lock()); err != nil {
		t.Fatal(err)
	}
	s.take(s.b, 0)
	if !s.a.MayAct() {
		t.Fatal("a may not act, although it has made no call")
	}
	return s
}
