// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const probed = "/quorumd/demo/request"

// TestAProbeWriteIsReplicatedAndChangesNothing stores a value under the probe's key, which a real deletion would
// remove.
func TestAProbeWriteIsReplicatedAndChangesNothing(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 3, quick())
	c, client, ctx := connect(t, etcd.Endpoints()...), etcd.Client(t), within(t)
	put, err := client.Put(ctx, probed, "of another program")
	must(t, err)
	list := members(t, c)
	before := c.Answers(ctx, list.Members)
	for range 10 {
		must(t, c.ProbeRead(ctx, etcd.Endpoints()[0], probed))
		must(t, c.ProbeWrite(ctx, etcd.Endpoints()[0], probed))
	}
	testbed.Eventually(t, bound, "every member has applied ten more entries", func() bool {
		after := c.Answers(ctx, list.Members)
		for id, s := range after {
			if s.Err != nil || s.Applied < before[id].Applied+10 {
				return false
			}
		}
		return true
	})
	got, err := client.Get(ctx, probed)
	must(t, err)
	if len(got.Kvs) != 1 || got.Header.Revision != put.Header.Revision {
		t.Errorf("the revision was %d and is %d, with %d keys", put.Header.Revision, got.Header.Revision, len(got.Kvs))
	}
}

func TestAProbeWriteNeedsNoSpace(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c, client, ctx := connect(t, etcd.Endpoints()...), etcd.Client(t), within(t)
	_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 7,
	})
	must(t, err)
	if _, err := client.Put(ctx, "key", "value"); err == nil {
		t.Fatal("etcd accepts a key in spite of the alarm")
	}
	must(t, c.ProbeWrite(ctx, etcd.Endpoints()[0], probed))
}

// TestOnlySilenceCountsAsUnanswered sends requests to an endpoint without a listener and to a paused member.
func TestOnlySilenceCountsAsUnanswered(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 2, quick())
	url := etcd.Endpoints()[0]
	c := connect(t, url)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if err := c.ProbeRead(short(), noListener(t), probed); err == nil || cluster.Unanswered(err) {
		t.Errorf("without a listener: %v", err)
	}
	if cluster.Unanswered(nil) {
		t.Error("no error counts as unanswered")
	}
	must(t, c.ProbeWrite(within(t), url, probed))
	must(t, etcd.Members[0].Pause())
	calls := map[string]func(ctx context.Context, endpoint, key string) error{
		"read": c.ProbeRead, "write": c.ProbeWrite,
	}
	for what, call := range calls {
		if err := call(short(), url, probed); !cluster.Unanswered(err) {
			t.Errorf("%s of a paused member: %v", what, err)
		}
	}
}
