// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// Discovery returns endpoints of a different cluster while this host's cluster is down. The client keeps the voters of
// its own cluster, writes nothing to the other cluster, and logs that cluster once. It finds this host's cluster again
// as soon as a voter answers, although no configured or discovered endpoint leads to it.
func TestAnotherClusterDoesNotReplaceThisHostsCluster(t *testing.T) {
	t.Parallel()
	ours, theirs := testbed.StartCluster(t, 1, quick()), testbed.StartCluster(t, 1, quick())
	way := testbed.NewProxy(t, strings.TrimPrefix(ours.Endpoints()[0], "http://"))
	var log bytes.Buffer
	c, err := cluster.New(cluster.Options{
		Endpoints: []string{"http://" + way.Addr()}, Discovers: true, CallTimeout: time.Second,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	must(t, err)
	defer c.Close()
	own := members(t, c)
	c.SetClusterID(own.ClusterID)
	members(t, c)

	way.Set(testbed.Cut()) // the endpoint at which the client found its own cluster
	c.Discovered(theirs.Endpoints(), nil)
	must(t, ours.Members[0].Pause())
	foreign := func() bool {
		list, err := c.Members(within(t))
		return err == nil && list.ClusterID != own.ClusterID
	}
	testbed.Eventually(t, bound, "only the other cluster answers", foreign)
	for range 2 {
		if !foreign() {
			t.Error("the other cluster's list is not returned")
		}
	}
	put := func() error {
		_, err := c.Txn(within(t), nil, clientv3.OpPut("a", "b"))
		return err
	}
	if err := put(); !errors.Is(err, cluster.ErrForeignCluster) {
		t.Errorf("the other cluster is written to: %v", err)
	}
	if _, err := c.AddLearner(within(t), "http://127.0.0.9:2380"); !errors.Is(err, cluster.ErrForeignCluster) {
		t.Errorf("the other cluster gets a member: %v", err)
	}
	if _, err := c.KeepAliveOnce(within(t), 7); !errors.Is(err, cluster.ErrForeignCluster) {
		t.Errorf("a lease is renewed at the other cluster: %v", err)
	}
	if err := c.Revoke(within(t), 7); !errors.Is(err, cluster.ErrForeignCluster) {
		t.Errorf("a lease is revoked at the other cluster: %v", err)
	}
	if n := strings.Count(log.String(), "answer for another cluster"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, log.String())
	}

	must(t, ours.Members[0].Resume())
	testbed.Eventually(t, bound, "this host's cluster is used again", func() bool {
		list, err := c.Members(within(t))
		return err == nil && list.ClusterID == own.ClusterID
	})
	for range 5 {
		if list := members(t, c); list.ClusterID != own.ClusterID {
			t.Fatal("the other cluster is used while this host's cluster answers")
		}
	}
	if err := put(); err != nil {
		t.Error(err)
	}
	theirOwn, err := theirs.Members[0].Client()
	must(t, err)
	defer theirOwn.Close()
	got, err := theirOwn.Get(within(t), "a")
	if err != nil || len(got.Kvs) > 0 {
		t.Errorf("the other cluster contains %v, %v", got, err)
	}
}

// Before a host has recorded its cluster, any cluster that answers counts as its own.
func TestAHostWithoutAClusterAcceptsAnyThatAnswers(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, etcd.Endpoints()...)
	c.SetClusterID(0)
	list := members(t, c)
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("a", "b")); err != nil {
		t.Error(err)
	}
	c.SetClusterID(list.ClusterID + 1)
	if other := members(t, c); other.ClusterID != list.ClusterID {
		t.Errorf("the only cluster that answers is not returned: %+v", other)
	}
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("a", "b")); !errors.Is(err, cluster.ErrForeignCluster) {
		t.Errorf("a write to a cluster that is not this host's: %v", err)
	}
	c.SetClusterID(list.ClusterID) // as after a recovery
	members(t, c)
	if _, err := c.Txn(within(t), nil, clientv3.OpPut("a", "b")); err != nil {
		t.Error(err)
	}
}

// Another server may answer at a reused address and refuse every request.
func TestARefusedMemberListDoesNotHideThisHostsCluster(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	refuses := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	refuses.Config.Protocols = new(http.Protocols)
	refuses.Config.Protocols.SetUnencryptedHTTP2(true)
	refuses.Start()
	defer refuses.Close()

	alone := connect(t, refuses.URL)
	if _, err := alone.Members(within(t)); !cluster.Denied(err) {
		t.Fatalf("it does not refuse: %v", err)
	}
	c := connect(t, append([]string{refuses.URL}, etcd.Endpoints()...)...)
	for range 3 {
		if list := members(t, c); len(list.Members) != 1 {
			t.Errorf("listed are %+v", list)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A host was off while its cluster was recovered under another ID, so no member of its own cluster is left. Dead
// members of the recovered cluster, and endpoints known from before, must not take up the time for endpoints that
// answer. Otherwise the host would never detect the recovery.
func TestEndpointsOfAnotherClusterAreTriedBeforeSilentOnes(t *testing.T) {
	t.Parallel()
	const patience = 100 * time.Millisecond
	answer, dead := []string{"http://127.0.0.1:1", "http://127.0.0.2:1"}, "http://127.0.0.3:1"
	members := append(slices.Clone(answer), dead)
	etcd := func(ctx context.Context, _ string, _, reply any, conn *grpc.ClientConn, _ grpc.UnaryInvoker,
		_ ...grpc.CallOption,
	) error {
		if !slices.Contains(answer, "http://"+path.Base(conn.Target())) {
			<-ctx.Done()
			return ctx.Err()
		}
		switch reply := reply.(type) {
		case *pb.MemberListResponse:
			reply.Header = &pb.ResponseHeader{ClusterId: 2}
			for i, url := range members {
				reply.Members = append(reply.Members, &pb.Member{ID: uint64(i + 1), ClientURLs: []string{url}})
			}
		case *pb.RangeResponse:
			reply.Header = &pb.ResponseHeader{ClusterId: 2}
		}
		return nil
	}
	c := connectWith(t, cluster.Options{
		Endpoints:   append(answer, "http://127.0.0.4:1", dead, "http://127.0.0.5:1"),
		CallTimeout: patience, Dial: []grpc.DialOption{grpc.WithChainUnaryInterceptor(etcd)},
	})
	c.SetClusterID(1)
	for attempt := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := c.Members(ctx)
		cancel()
		if err != nil {
			t.Errorf("attempt %d: no member list: %v", attempt, err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		_, err = c.Read(ctx, cluster.Span{Start: "a"})
		cancel()
		if err != nil {
			t.Errorf("attempt %d: no time is left for a live member: %v", attempt, err)
		}
	}
}
