// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package keyspace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorumd/quorumd/agent/sim/keyspace"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestTheStoreAnswersLikeARealEtcd(t *testing.T) {
	t.Parallel()
	server := connect(t)
	store := keyspace.New()
	random := rand.New(rand.NewPCG(1, 1))
	committed, refused := 0, 0
	for i := range 2000 {
		sent := transaction(random, store.Revision())
		want, wantErr := server.Txn(t.Context(), sent)
		got, err := store.Txn(sent)
		if wantErr != nil || err != nil {
			if !errors.Is(rpctypes.Error(wantErr), rpctypes.Error(err)) {
				t.Fatalf("transaction %d, %v: etcd returns %v, the store %v", i, sent, wantErr, err)
			}
			refused++
			continue
		}
		for _, header := range []*pb.ResponseHeader{want.Header, got.Header} {
			header.ClusterId, header.MemberId, header.RaftTerm = 0, 0, 0
		}
		if want.Succeeded {
			committed++
		}
		if want, got = read(want), read(got); !proto.Equal(want, got) {
			t.Fatalf("transaction %d, %v: etcd returns\n%v, the store\n%v", i, sent, want, got)
		}
	}
	if committed < 500 || refused < 10 {
		t.Errorf("%d transactions succeeded, %d were refused: the test proves little", committed, refused)
	}
}

// read returns an answer without the results of writes, which no caller uses.
func read(a *pb.TxnResponse) *pb.TxnResponse {
	out := &pb.TxnResponse{Header: a.Header, Succeeded: a.Succeeded}
	for _, part := range a.Responses {
		if found := part.GetResponseRange(); found != nil {
			found.Header = nil
			out.Responses = append(out.Responses, part)
		}
	}
	return out
}

// transaction returns a random transaction that writes or reads a few keys, under up to two conditions.
func transaction(random *rand.Rand, revision int64) *pb.TxnRequest {
	key := func() []byte { return fmt.Appendf(nil, "k%02d", random.IntN(12)) }
	near := func() int64 { return max(0, revision-random.Int64N(4)) }
	out := &pb.TxnRequest{}
	for range random.IntN(3) {
		c := &pb.Compare{Key: key(), Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{}}
		if random.IntN(2) == 0 {
			c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: near()}
		}
		out.Compare = append(out.Compare, c)
	}
	written := map[string]bool{}
	reads := random.IntN(3) == 0
	for range 1 + random.IntN(3) {
		op := &pb.RequestOp{}
		k := key()
		switch kind := random.IntN(3); {
		case reads:
			r := &pb.RangeRequest{Key: k, CountOnly: random.IntN(4) == 0, Limit: random.Int64N(4)}
			if random.IntN(3) > 0 {
				r.RangeEnd = []byte("k09")
			}
			if revision > 100 && random.IntN(2) == 0 {
				r.Revision = near() + random.Int64N(2)
			}
			op.Request = &pb.RequestOp_RequestRange{RequestRange: r}
		case written[string(k)]: // etcd accepts no two writes of a key in one transaction
			continue
		case kind == 0:
			op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: k}}
		default:
			put := &pb.PutRequest{Key: k, Value: fmt.Append(nil, random.IntN(1000))}
			if random.IntN(20) == 0 {
				put.Lease = 42 // an unknown lease
			}
			op.Request = &pb.RequestOp_RequestPut{RequestPut: put}
		}
		written[string(k)] = true
		out.Success = append(out.Success, op)
	}
	return out
}

func connect(t *testing.T) pb.KVClient {
	t.Helper()
	etcd := testbed.StartCluster(t, 1, testbed.ClusterOptions{
		Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Extra: []string{"--unsafe-no-fsync"},
	})
	c, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := c.Get(ctx, "k", clientv3.WithCountOnly()); err != nil {
		t.Fatal(err)
	}
	return pb.NewKVClient(c.ActiveConnection())
}

func TestALeaseDeletesItsKeysWhenItExpiresAndNotBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := keyspace.New()
		l := store.Grant(10 * time.Second)
		put := &pb.PutRequest{Key: []byte("a"), Lease: l.ID}
		if _, err := store.Txn(&pb.TxnRequest{Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: put}},
		}}); err != nil {
			t.Fatal(err)
		}
		pass := func(d time.Duration) {
			<-time.After(d)
			store.Expire()
		}
		pass(9 * time.Second)
		if _, err := store.Renew(l.ID); err != nil || store.Get("a") == nil {
			t.Fatalf("after 9 of 10 s: %v, %v", store.Get("a"), err)
		}
		pass(10*time.Second - 1)
		if store.Get("a") == nil {
			t.Fatal("the lease ended too early")
		}
		before := store.Revision()
		pass(1)
		if _, err := store.Renew(l.ID); !errors.Is(err, rpctypes.ErrGRPCLeaseNotFound) || store.Get("a") != nil {
			t.Errorf("after the lease expired: %v, %v", store.Get("a"), err)
		}
		if store.Revision() != before+1 {
			t.Errorf("the expiry created %d revisions", store.Revision()-before)
		}
	})
}
