// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// repeatable returns the calls that try endpoints until a voter answers, and fail if none does.
func repeatable() map[string]func(context.Context, *cluster.Client) error {
	const noLease = clientv3.LeaseID(4711)
	answered := func(err error) error {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil // this error is the leader's answer
		}
		return fmt.Errorf("got %w, want %w", err, rpctypes.ErrLeaseNotFound)
	}
	return map[string]func(context.Context, *cluster.Client) error{
		"read": func(ctx context.Context, c *cluster.Client) error {
			_, err := c.Read(ctx, cluster.Span{Start: "/a", End: "/b"})
			return err
		},
		"members": func(ctx context.Context, c *cluster.Client) error {
			_, err := c.Members(ctx)
			return err
		},
		"renew": func(ctx context.Context, c *cluster.Client) error {
			_, err := c.KeepAliveOnce(ctx, noLease)
			return answered(err)
		},
		"revoke": func(ctx context.Context, c *cluster.Client) error { return answered(c.Revoke(ctx, noLease)) },
	}
}

func TestADeadEndpointCostsAtMostOneTimeoutAndOnlyOnce(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	for name, call := range repeatable() {
		c := connect(t, cut(t, etcd.Members[0]), etcd.Endpoints()[0])
		began := time.Now()
		if err := call(within(t), c); err != nil {
			t.Errorf("%s with a first endpoint that hangs: %v", name, err)
		}
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("%s with a first endpoint that hangs took %v, the timeout is 1s", name, took)
		}
		began = time.Now()
		if err := call(within(t), c); err != nil || time.Since(began) > time.Second {
			t.Errorf("%s the second time: %v after %v", name, err, time.Since(began))
		}
	}
}

func TestAnEndpointThatRefusesCostsNoTimeout(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	for name, call := range repeatable() {
		c := connectWith(t, cluster.Options{
			Endpoints:   []string{noListener(t), etcd.Endpoints()[0]},
			CallTimeout: 10 * time.Second,
		})
		began := time.Now()
		if err := call(within(t), c); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
	}
}

func TestTwoHangingEndpointsDoNotHideTheOthersFromAnImpatientCaller(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	m := etcd.Members[0]
	for name, call := range repeatable() {
		c := connectWith(t, cluster.Options{
			Endpoints:   []string{cut(t, m), cut(t, m), m.Options.ClientURL},
			CallTimeout: 300 * time.Millisecond,
		})
		var err error
		for range 2 { // an attempt has time for two hanging endpoints
			ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
			err = call(ctx, c)
			cancel()
		}
		if err != nil {
			t.Errorf("%s the second time: %v", name, err)
		}
	}
}

func TestAWriteIsSentOnceAndTheNextOneGoesElsewhere(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, cut(t, etcd.Members[0]), etcd.Endpoints()[0])
	began := time.Now()
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("/k", "1")); err == nil || time.Since(began) > 2*time.Second {
		t.Errorf("to an endpoint that hangs: %v after %v", err, time.Since(began))
	}
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("/k", "2")); err != nil {
		t.Errorf("the next: %v", err)
	}
	got, err := c.Read(within(t), cluster.Span{Start: "/k", End: "/l"})
	if err != nil || len(got.Pairs) != 1 || got.Pairs[0].CreateRevision != got.Pairs[0].ModRevision {
		t.Errorf("got %+v, %v; want one write", got, err)
	}
}

func TestIfNoEndpointAnswersTheErrorNamesEachOne(t *testing.T) {
	t.Parallel()
	a, b := noListener(t), noListener(t)
	c := connect(t, a, b)
	for name, call := range repeatable() {
		err := call(within(t), c)
		if !errors.Is(err, cluster.ErrUnreachable) || !contains(err, a) || !contains(err, b) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Members(within(t)); !contains(err, "the client is closed") {
		t.Errorf("after Close: %v", err)
	}
}

func TestALearnerInTheConfiguredListIsSkipped(t *testing.T) {
	t.Parallel()
	etcd, learner := withLearner(t)
	for name, call := range repeatable() {
		c := connect(t, learner.Options.ClientURL, etcd.Endpoints()[0])
		if err := call(within(t), c); err != nil {
			t.Errorf("%s with a learner first in the list: %v", name, err)
		}
	}
}

func TestLearnersAreNotUsedOnceTheMembersAreKnown(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	url, connections := countConnections(t)
	o := learnerOptions(t, etcd)
	o.ListenClientURL, o.ClientURL = o.ClientURL, url
	c := connect(t, etcd.Endpoints()...)
	if _, err := c.AddLearner(within(t), o.PeerURL); err != nil {
		t.Fatal(err)
	}
	start(t, o)
	var learner cluster.Member
	testbed.Eventually(t, bound, "the learner publishes its client URL", func() bool {
		learner, _ = members(t, c).ByPeerURL(o.PeerURL)
		return slices.Equal(learner.ClientURLs, []string{url})
	})
	for name, call := range repeatable() {
		members(t, c)
		if err := etcd.Members[0].Pause(); err != nil {
			t.Fatal(err)
		}
		if err := call(within(t), c); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("%s while no voter answers: %v", name, err)
		}
		if err := etcd.Members[0].Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("the learner was called %d times", n)
	}
	c.Statuses(within(t), []cluster.Member{learner}) // the learner's status comes from the learner itself
	if connections.Load() == 0 {
		t.Error("no connection was counted, so this test cannot detect one")
	}
}

// countConnections listens, counts connections, and closes them.
func countConnections(t *testing.T) (url string, count *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count = &atomic.Int64{}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return "http://" + listener.Addr().String(), count
}

func TestReadsReturnValuesWithTheirRevisions(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, etcd.Endpoints()...)
	lease, ttl, err := c.Grant(within(t), 1)
	if err != nil || ttl < 1 {
		t.Fatalf("a lease of %ds, %v", ttl, err)
	}
	var revisions []int64
	for _, key := range []string{"/p/a", "/p/b", "/p/c", "/q"} {
		answer, err := c.Txn(within(t), []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
			clientv3.OpPut(key, "v"+key))
		if err != nil || !answer.Succeeded {
			t.Fatalf("%+v, %v", answer, err)
		}
		revisions = append(revisions, answer.Header.Revision)
	}
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("/p/b", "again", clientv3.WithLease(lease))); err != nil {
		t.Fatal(err)
	}
	all, err := c.Read(within(t), cluster.Span{Start: "/p/a", End: "/p/c"})
	if err != nil || len(all.Pairs) != 2 || all.Revision != revisions[3]+1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	b := all.Pairs[1]
	if b.Key != "/p/b" || string(b.Value) != "again" || b.CreateRevision != revisions[1] ||
		b.ModRevision != revisions[3]+1 || b.Lease != int64(lease) {
		t.Errorf("got %+v", b)
	}
	spans, err := c.Read(within(t), cluster.Span{Start: "/p/c", End: "/z"}, cluster.Span{Start: "/p/a"},
		cluster.Span{Start: "/none"})
	if err != nil || spans.Revision != all.Revision || len(spans.Pairs) != 3 || spans.Pairs[0].Key != "/p/c" ||
		spans.Pairs[2].Key != "/p/a" || string(spans.Pairs[2].Value) != "v/p/a" {
		t.Errorf("several spans: %+v, %v", spans, err)
	}
	counted, err := c.Read(within(t), cluster.Span{Start: "/p/", End: "/p0", Count: true}, cluster.Span{Start: "/q"})
	if err != nil || counted.Counted != 3 || len(counted.Pairs) != 1 {
		t.Errorf("a span that is only counted: %+v, %v", counted, err)
	}
	last, err := c.ReadLast(within(t), "/p/", 2)
	if err != nil || len(last.Pairs) != 2 || last.Pairs[0].Key != "/p/c" || last.Pairs[1].Key != "/p/b" {
		t.Errorf("the last two: %+v, %v", last, err)
	}
	refused, err := c.Txn(within(t), []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision("/q"), "=", 0)},
		clientv3.OpDelete("/p/a"))
	if err != nil || refused.Succeeded {
		t.Errorf("a transaction whose condition fails: %+v, %v", refused, err)
	}
}

func TestReadAtNeedsNoQuorum(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 3, quick())
	leader, err := etcd.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, leader.Options.ClientURL)
	for i := range 100 { // more than a page
		put(t, c, fmt.Sprintf("/a/%03d", i), "x")
	}
	put(t, c, "/b", "y")
	spans := []cluster.Span{{Start: "/a/", End: "/a0"}, {Start: "/b"}, {Start: "/a/", End: "/a0", Count: true}}
	want, err := c.Read(within(t), spans...)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range etcd.Members {
		if m != leader {
			if err := m.Pause(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Read(within(t), spans...); err == nil {
		t.Error("a linearizable read was answered without a quorum")
	}
	got, err := c.ReadAt(within(t), leader.Options.ClientURL, spans...)
	if err != nil || !reflect.DeepEqual(got, want) || len(got.Pairs) != 101 || got.Counted != 100 {
		t.Errorf("%v: %d pairs, %d counted, at revision %d; before, %d, %d, at %d", err, len(got.Pairs), got.Counted,
			got.Revision, len(want.Pairs), want.Counted, want.Revision)
	}
}
