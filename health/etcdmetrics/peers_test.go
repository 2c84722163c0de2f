// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdmetrics

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
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

func TestPeersAreReadWithTheirReceivedBytes(t *testing.T) {
	t.Parallel()
	r, err := Parse(strings.NewReader(threePeers))
	want := map[uint64]health.Peer{0xa1: {Received: 1.5e7, Active: true}, 0xb2: {Received: 100}, 0: {Received: 3}}
	if err != nil || !maps.Equal(r.Peers, want) {
		t.Errorf("got %+v, %v", r.Peers, err)
	}
}

func TestTheAnsweringMembersIDIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		`{server_id="e2bf92c556e3d4a9"} 1`:                         0xe2bf92c556e3d4a9,
		`{server_id="no ID"} 1`:                                    0,
		`{other="a1"} 1`:                                           0,
		"{server_id=\"a1\"} 1\netcd_server_id{server_id=\"a2\"} 1": 0,
	} {
		r, err := Parse(strings.NewReader("# TYPE etcd_server_id gauge\netcd_server_id" + text + "\n"))
		if err != nil || r.Member != want {
			t.Errorf("%s: %x, %v, want %x", text, r.Member, err, want)
		}
	}
}

func TestImpossiblePeersAreIgnored(t *testing.T) {
	t.Parallel()
	for what, c := range map[string][2]string{
		"another version":        {"etcd_network_active_peers", "etcd_other"},
		"a name that is no ID":   {`Remote="b2"`, `Remote="n2"`},
		"no name":                {`Remote="b2"`, `Other="b2"`},
		"a negative count":       {`Remote="b2"} 0`, `Remote="b2"} -1`},
		"no number":              {`Remote="b2"} 0`, `Remote="b2"} NaN`},
		"bytes without end":      {"1.5e+07", "+Inf"},
		"bytes without a sender": {`From="b2"`, `From="-"`},
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

// receiver measures what one etcd receives from another while the leader stays the same. On a busy machine, the leader
// soon changes.
type receiver struct {
	t       *testing.T
	cluster *testbed.Cluster
	choose  func(leader *testbed.Member) (at, of *testbed.Member)
	leader  *testbed.Member
	at, of  *testbed.Member // the receiver, and the member it receives from
	id      uint64          // member ID of the sender
	last    float64
}

// growth returns how many more bytes were received since the last call; ok is false if that is unknown, or the count
// restarts because the leader changed.
func (e *receiver) growth() (more float64, ok bool) {
	leader, err := e.cluster.Leader(e.t.Context())
	if err != nil {
		e.leader = nil
		return 0, false
	}
	began := leader != e.leader
	if began {
		var of *testbed.Member
		if e.at, of = e.choose(leader); of != e.of {
			e.of, e.id = of, memberID(e.t, of)
		}
		e.leader = leader
	}
	reader, err := New(e.at.Options.ClientURL, func() *tls.Config { return nil })
	if err != nil {
		e.t.Fatal(err)
	}
	seen := reader.Read(e.t.Context())
	before := e.last
	e.last = seen.Peers[e.id].Received
	if seen.Peers == nil {
		e.leader = nil
	}
	return e.last - before, seen.Peers != nil && !began
}

func memberID(t *testing.T, m *testbed.Member) (id uint64) {
	t.Helper()
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testbed.Eventually(t, time.Minute, m.Options.Name+" reports its ID", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, err := client.Status(ctx, m.Options.ClientURL)
		if err == nil {
			id = status.Header.GetMemberId()
		}
		return err == nil
	})
	return id
}

func (e *receiver) followers(leader *testbed.Member) []*testbed.Member {
	return slices.DeleteFunc(slices.Clone(e.cluster.Members), func(m *testbed.Member) bool { return m == leader })
}

func threeMembers(t *testing.T) *testbed.Cluster {
	t.Helper()
	c := testbed.StartCluster(t, 3, testbed.ClusterOptions{Extra: []string{"--unsafe-no-fsync"}})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestALeaderReceivesFromAMemberUntilItIsKilled(t *testing.T) {
	t.Parallel()
	e := &receiver{t: t, cluster: threeMembers(t)}
	e.choose = func(leader *testbed.Member) (at, of *testbed.Member) { return leader, e.followers(leader)[0] }
	times := 0
	testbed.Eventually(t, time.Minute, "traffic from it, three times in a row", func() bool {
		if more, ok := e.growth(); !ok {
			times = 0
		} else if more > 0 {
			times++
		}
		return times == 3
	})
	dead := e.of
	if err := dead.Kill9(); err != nil {
		t.Fatal(err)
	}
	e.choose = func(leader *testbed.Member) (at, of *testbed.Member) { return leader, dead }
	since := time.Now()
	testbed.Eventually(t, time.Minute, "no traffic from it for a second", func() bool {
		if more, ok := e.growth(); !ok || more != 0 {
			since = time.Now()
		}
		return time.Since(since) > time.Second
	})
}

// All members are connected, but a follower sends only to the leader.
func TestAFollowerReceivesNothingFromAnotherFollower(t *testing.T) {
	t.Parallel()
	e := &receiver{t: t, cluster: threeMembers(t)}
	e.choose = func(leader *testbed.Member) (at, of *testbed.Member) {
		both := e.followers(leader)
		return both[0], both[1]
	}
	since := time.Now()
	testbed.Eventually(t, time.Minute, "no traffic from the other for 5 s, while a third leads", func() bool {
		if more, ok := e.growth(); !ok || more != 0 {
			since = time.Now()
		}
		return time.Since(since) > 5*time.Second
	})
}
