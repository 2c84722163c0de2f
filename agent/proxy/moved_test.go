// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// The connections to an excluded voter are closed at random moments within the spread. Otherwise all its clients would
// connect to the next voter at the same moment.
func TestConnectionsToALeavingVoterAreClosedEvenlyOverTheSpread(t *testing.T) {
	t.Parallel()
	const (
		spread = 10 * time.Second
		many   = 400
		parts  = 4
	)
	var elapsed time.Duration // set by the test, because the machine may be slow
	table := newTable("127.0.0.1:2379", spread, func() time.Duration { return elapsed })
	leaves := Voter{Name: "n1", Address: "192.0.2.1:2379", Use: true}
	stays := Voter{Name: "n2", Address: "192.0.2.2:2379", Use: true}
	table.update(List{Voters: []Voter{leaves, stays}})
	upstreams := table.upstreams
	for range many {
		table.add(upstreams[0], &link{})
		table.add(upstreams[1], &link{})
	}
	leaves.Use = false
	table.update(List{Voters: []Voter{leaves, stays}})
	elapsed = moveAfter - time.Nanosecond
	table.move()
	for _, at := range upstreams[0].links {
		if !at.IsZero() {
			t.Fatalf("a connection is scheduled to close before its voter has been excluded for %s", moveAfter)
		}
	}
	elapsed = moveAfter
	began := time.Now()
	table.move()
	ended := time.Now()
	var in [parts]int
	for _, at := range upstreams[0].links {
		if at.Before(began) || at.After(ended.Add(spread)) {
			t.Fatalf("a connection closes in %s, want at most %s", at.Sub(ended), spread)
		}
		in[min(int(at.Sub(began)*parts/spread), parts-1)]++
	}
	for i, n := range in {
		if n < many/parts/2 { // 100 are expected; chance yields fewer than 50 less than once in a million runs
			t.Errorf("%d of %d connections close in part %d of %d of the spread", n, many, i+1, parts)
		}
	}
	for _, at := range upstreams[1].links {
		if !at.IsZero() {
			t.Fatal("a connection to the other voter is scheduled to close")
		}
	}
}

// The proxy starts before etcd, and before an agent has written a list. It resets the first clients immediately, and
// serves later ones as soon as an etcd answers, without a restart.
func TestProxyStartedBeforeEtcdServesAsSoonAsEtcdDoes(t *testing.T) {
	t.Parallel()
	ports := testbed.FreePorts(t, 2)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	f := run(t, func(o *Options) { o.Static = []string{address} })
	if conn, name := f.client(t); name != "" {
		t.Fatalf("%s answers %q before etcd runs", conn.RemoteAddr(), name)
	}
	m, err := testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "n1", Dir: t.TempDir(), ClientURL: "http://" + address,
		PeerURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	})
	must(t, err)
	m.StopAfter(t)
	testbed.Eventually(t, bound, "etcd to answer through the proxy", func() bool {
		return healthy(t.Context(), f.Addr())
	})
}

// healthy reports whether an etcd at this address reports that it is healthy.
func healthy(ctx context.Context, at net.Addr) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: bound}).Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}
