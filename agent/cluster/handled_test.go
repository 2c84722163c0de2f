// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// etcd's own alerts fire if one in a hundred calls of a method fails.
func TestEtcdCountsNoCallOfAnIdleAgentAsFailed(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 3, quick())
	for _, m := range etcd.Members {
		c := connect(t, m.Options.ClientURL)
		lease, _, err := c.Grant(within(t), 60)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := c.KeepAliveOnce(within(t), lease); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Txn(within(t), nil, clientv3.OpPut("/a", "x", clientv3.WithLease(lease))); err != nil {
			t.Error(err)
		}
		since, err := c.SinceRenewal(within(t), int64(lease))
		if err != nil || since < 0 || since >= time.Minute {
			t.Errorf("not renewed for %s: %v", since, err)
		}
		if _, err := c.Read(within(t), cluster.Span{Start: "/a", End: "/b"}); err != nil {
			t.Error(err)
		}
		list, err := c.Members(within(t))
		if err != nil {
			t.Error(err)
		}
		c.Statuses(within(t), list.Members)
		if err := c.Revoke(within(t), lease); err != nil {
			t.Error(err)
		}
		if _, err := c.KeepAliveOnce(within(t), lease); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("a lease that is gone is renewed: %v", err)
		}
	}
	for _, m := range etcd.Members {
		ok := false
		for _, call := range handled(t, m) {
			ok = ok || call.method == "LeaseKeepAlive" && call.code == "OK"
			if call.fails() {
				t.Errorf("%s has counted %s calls of %s as %s", m.Options.Name, call.count, call.method, call.code)
			}
		}
		if !ok {
			t.Errorf("%s has counted no renewed lease at all", m.Options.Name)
		}
	}
}

// call is how many calls of a method have ended with a code.
type call struct{ code, method, count string }

// fails reports whether any call has ended with the code and etcd's alerting rules count the code as a failure.
func (c call) fails() bool {
	return c.count != "0" && regexp.MustCompile("^(Unknown|FailedPrecondition|ResourceExhausted|Internal|Unavailable|"+
		"DataLoss|DeadlineExceeded)$").MatchString(c.code)
}

// handled returns the calls counted by a member.
func handled(t *testing.T, m *testbed.Member) (all []call) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, m.Options.ClientURL+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line := regexp.MustCompile(`^grpc_server_handled_total\{grpc_code="(\w+)",grpc_method="(\w+)".*\} (\S+)$`)
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, 4<<20)); lines.Scan(); {
		if found := line.FindStringSubmatch(lines.Text()); found != nil {
			all = append(all, call{found[1], found[2], found[3]})
		}
	}
	return all
}
