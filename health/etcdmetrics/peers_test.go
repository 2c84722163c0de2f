// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdmetrics

import (
	"crypto/tls"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

const threePeers = `# TYPE etcd_network_active_peers gauge
etcd_network_active_peers{Local="1",Remote="a1"} 1
etcd_network_active_peers{Local="1",Remote="b2"} 0
# TYPE etcd_network_peer_received_bytes_total counter
etcd_network_peer_received_bytes_total{From="a1"} 1.5e+07
etcd_network_peer_received_bytes_total{From="b2"} 100
etcd_network_peer_received_bytes_total{From="0"} 3
`

func TestThePeersOfAnEtcdAreReadWithWhatHasComeFromThem(t *testing.T) {
	t.Parallel()
	r, err := Parse(strings.NewReader(threePeers))
	want := map[uint64]health.Peer{0xa1: {Received: 1.5e7}, 0xb2: {Received: 100}, 0: {Received: 3}}
	if err != nil || !maps.Equal(r.Peers, want) {
		t.Errorf("they are %+v, %v", r.Peers, err)
	}
}

func TestPeersThatMakeNoSenseAreNone(t *testing.T) {
	t.Parallel()
	for what, c := range map[string][2]string{
		"another version":      {"etcd_network_active_peers", "etcd_other"},
		"a name that is no ID": {`Remote="b2"`, `Remote="n2"`},
		"no name":              {`Remote="b2"`, `Other="b2"`},
		"a negative count":     {`Remote="b2"} 0`, `Remote="b2"} -1`},
		"no number":            {`Remote="b2"} 0`, `Remote="b2"} NaN`},
		"bytes without end":    {"1.5e+07", "+Inf"},
		"bytes from nobody":    {`From="b2"`, `From="-"`},
	} {
		spoilt := strings.ReplaceAll(threePeers, c[0], c[1])
		if spoilt == threePeers {
			t.Fatalf("%s: nothing to spoil", what)
		}
		if r, err := Parse(strings.NewReader(spoilt)); err != nil || r.Peers != nil {
			t.Errorf("%s: %+v, %v", what, r.Peers, err)
		}
	}
}

func TestTheEtcdThatLeadsHearsOfAMemberAllTheTimeAndNothingOnceItWasKilled(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 3, testbed.ClusterOptions{Extra: []string{"--unsafe-no-fsync"}})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var dead *testbed.Member
	for _, m := range c.Members {
		if m != leader {
			dead = m
		}
	}
	client, err := dead.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	status, err := client.Status(t.Context(), dead.Options.ClientURL)
	if err != nil {
		t.Fatal(err)
	}
	id := status.Header.GetMemberId()
	reader, err := New(leader.Options.ClientURL, func() *tls.Config { return nil })
	if err != nil {
		t.Fatal(err)
	}
	received := func() float64 { return reader.Read(t.Context()).Peers[id].Received }
	last := received()
	for range 3 {
		testbed.Eventually(t, time.Minute, "more has come from it", func() bool {
			before := last
			last = received()
			return last > before
		})
	}
	if err := dead.Kill9(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	testbed.Eventually(t, time.Minute, "nothing has come from it for a second", func() bool {
		before := last
		if last = received(); last != before {
			since = time.Now()
		}
		return time.Since(since) > time.Second
	})
}
