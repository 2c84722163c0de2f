// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// realRequests makes requests through the leader of a real cluster of three voters.
type realRequests struct {
	t      *testing.T
	etcd   *testbed.Cluster
	leader *testbed.Member
	judge  *judge
	asks   requests
}

func newRealRequests(t *testing.T) *realRequests {
	t.Helper()
	r := &realRequests{t: t, etcd: testbed.StartCluster(t, 3, testbed.ClusterOptions{})}
	client, err := cluster.New(cluster.Options{
		Endpoints: r.etcd.Endpoints(), CallTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if r.asks.list, err = client.Members(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.leader, err = r.etcd.Leader(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.asks.list.Members {
		if m.Name == r.leader.Options.Name {
			r.asks.own = m
		}
	}
	began := time.Now()
	now := func() time.Duration { return time.Since(began) + time.Hour }
	r.judge = &judge{now: now, opt: Options{Etcd: client, Now: now, Sources: Sources{Requests: client}}}
	return r
}

// probe makes one round of requests.
func (r *realRequests) probe() {
	q := &r.asks
	url := q.own.ClientURLs[0]
	q.take(r.judge.request(r.t.Context(), url, "/quorumd/demo/request", true, q.list.Members), "n1", false)
}

// pause pauses count members: only the leader if leader is set, otherwise only others.
func (r *realRequests) pause(count int, leader bool) {
	r.t.Helper()
	for _, m := range r.etcd.Members {
		if (m == r.leader) != leader || count == 0 {
			continue
		}
		if count--; m.Pause() != nil {
			r.t.Fatalf("cannot pause %s", m.Options.Name)
		}
	}
}

func TestOnlyAMemberThatHangsAloneCountsAsHung(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		followers, leaders int
		hangs              bool
	}{
		"all answer":                           {},
		"one follower is paused":               {followers: 1},
		"there is no quorum":                   {followers: 2},
		"only the leader is paused":            {leaders: 1, hangs: true},
		"the leader and a follower are paused": {leaders: 1, followers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRealRequests(t)
			r.probe()
			if got := r.asks.seen; !got.Known || got.Hung != 0 || !got.Read.Known || !got.Write.Known {
				t.Fatalf("at first: %+v", got)
			}
			r.pause(c.followers, false)
			r.pause(c.leaders, true)
			for range 3 {
				r.probe()
			}
			got := r.asks.seen
			if hangs := got.Known && got.Hung >= 2 && got.Others >= got.Needed; hangs != c.hangs {
				t.Errorf("got %+v", got)
			}
			t.Logf("%+v", got)
		})
	}
}
