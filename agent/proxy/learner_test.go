// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// startLearner adds a learner to a cluster of one voter, and starts it.
func startLearner(t *testing.T, c *testbed.Cluster) *testbed.Member {
	t.Helper()
	o, ports := c.Members[0].Options, testbed.FreePorts(t, 2)
	voter := o.Name + "=" + o.PeerURL
	o.Name, o.Dir, o.State = "learner", t.TempDir(), "existing"
	o.ClientURL, o.PeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	o.InitialCluster = voter + "," + o.Name + "=" + o.PeerURL
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	_, err := c.Client(t).MemberAddAsLearner(ctx, []string{o.PeerURL})
	must(t, err)
	m, err := testbed.StartMember(t.Context(), o)
	must(t, err)
	m.StopAfter(t)
	return m
}

func TestThePortOfALearnerServesSerializableReadsAlone(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*bound)
	defer cancel()
	_, err := c.Client(t).Put(ctx, "key", "value")
	must(t, err)
	m := startLearner(t, c)
	f := run(t, func(o *Options) { o.List, o.Static = "", []string{Address([]string{m.Options.ClientURL})} })
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + f.Addr().String()}, Logger: zap.NewNop(),
	})
	must(t, err)
	defer client.Close()
	testbed.Eventually(t, bound, "a serializable read to return the value", func() bool {
		got, err := client.Get(ctx, "key", clientv3.WithSerializable())
		return err == nil && len(got.Kvs) == 1 && string(got.Kvs[0].Value) == "value"
	})
	_, write := client.Put(ctx, "key", "other")
	_, read := client.Get(ctx, "key")
	for what, err := range map[string]error{"write": write, "linearizable read": read} {
		if err == nil || !strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)) {
			t.Errorf("%s: %v, want that a learner refuses it", what, err)
		}
	}
	if strings.Contains(f.logged.String(), "list of voters") {
		t.Errorf("the proxy of a learner needs no list: %s", f.logged)
	}

	must(t, m.Kill9())
	if err := m.Wait(ctx); errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, name := f.client(t); name != "" {
		t.Errorf("the port answers %q although the learner is down", name)
	}
	f.waitForLog(t, "this host's learner did not accept them")
	must(t, m.Restart(t.Context()))
	testbed.Eventually(t, bound, "a read after the learner's return", func() bool {
		_, err := client.Get(ctx, "key", clientv3.WithSerializable())
		return err == nil
	})
}

func TestThePortOfALearnerIsNeverOutOfDate(t *testing.T) {
	t.Parallel()
	n1 := serve(t, "n1")
	f := run(t, func(o *Options) { o.List, o.Static = "", []string{n1.Addr().String()} })
	f.now.Add(int64(2 * staleAfter))
	f.follow()
	if _, name := f.client(t); name != "n1" || strings.Contains(f.Status(), "old") || f.logged.String() != "" {
		t.Errorf("%q answers; %s; %s", name, f.Status(), f.logged)
	}
}
