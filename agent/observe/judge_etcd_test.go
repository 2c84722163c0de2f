// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

func TestDatabaseSizeIsComparedWithTheSmallestOtherVoter(t *testing.T) {
	t.Parallel()
	members := []cluster.Member{
		{ID: 1, PeerURLs: []string{"http://n1:2380"}},
		{ID: 2, PeerURLs: []string{"http://n2:2380"}},
		{ID: 3, PeerURLs: []string{"http://n3:2380"}},
		{ID: 4, PeerURLs: []string{"http://n4:2380"}},
		{ID: 5, PeerURLs: []string{"http://n5:2380"}, Learner: true},
		{ID: 6, PeerURLs: []string{"http://n6:2380"}},
	}
	status := func(id uint64, size int64) cluster.Status { return cluster.Status{MemberID: id, DBSize: size} }
	r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
	r.Membership = cluster.Membership{Members: members}
	r.Statuses = map[uint64]cluster.Status{
		1: status(1, 900), 2: status(2, 400), 3: status(3, 300), 4: {Err: errors.New("no answer in time")},
		5: status(5, 10), 6: status(7, 20), // a different member answers at member 6's URL
	}
	own := r.Statuses[1]
	own.Errors = []string{"alarm:NOSPACE"}
	r.Statuses[1] = own
	j := &judge{opt: Options{Config: config.Config{Etcd: config.Etcd{PeerURL: "http://n1:2380"}}}}
	got := j.local(t.Context(), r)
	if got.OwnSize != known(900) || got.SmallestSize != known(300) || got.Alarms != known(1) || len(got.Errors) != 1 {
		t.Errorf("got %+v", got)
	}
	r.Statuses = map[uint64]cluster.Status{1: own}
	if got := j.local(t.Context(), r); got.OwnSize != known(900) || got.SmallestSize.Known {
		t.Errorf("alone: %+v", got)
	}
	r.Statuses[1] = cluster.Status{Err: errors.New("no answer in time")}
	if got := j.local(t.Context(), r); got.OwnSize != (health.Figure{}) || got.Alarms.Known {
		t.Errorf("without its status: %+v", got)
	}
}

func TestOnlyAHostWithAMemberChecksTheCertificatesOfMembers(t *testing.T) {
	t.Parallel()
	c := config.Config{Etcd: config.Etcd{PeerURL: "https://n1:2380", ClientURL: "https://n1:2379"}}
	active := systemd.Status{LoadState: "loaded", State: systemd.Active}
	listed := func(members ...cluster.Member) *round.Round {
		r := &round.Round{Unit: active}
		r.Listed, r.Membership = true, cluster.Membership{Members: members}
		return r
	}
	own := cluster.Member{ID: 1, PeerURLs: []string{c.Etcd.PeerURL}, ClientURLs: []string{c.Etcd.ClientURL}}
	other := cluster.Member{ID: 2, PeerURLs: []string{"https://n2:2380"}, ClientURLs: []string{"https://n2:2379"}}
	both := []string{"https://n1:2379", "https://n1:2380", "https://n2:2379", "https://n2:2380"}
	for _, s := range []struct {
		what  string
		round *round.Round
		shows []string
		want  []string
	}{
		{"a member", listed(own, other), nil, both},
		{"no member", listed(other), both, nil},
		{"member list unknown", &round.Round{Unit: active}, both, both},
		{"member list never known", &round.Round{Unit: active}, nil, both[:1]},
		{"never known, and etcd does not run here", &round.Round{Unit: systemd.Status{LoadState: "loaded"}}, nil, nil},
	} {
		j := &judge{opt: Options{Config: c}, shows: s.shows}
		if got := j.membersURLs(s.round); !slices.Equal(got, s.want) {
			t.Errorf("%s: %v, want %v", s.what, got, s.want)
		}
	}
}

func TestMetricsAreReadEverySecondAfterAMemberFallsSilentThenLessOften(t *testing.T) {
	t.Parallel()
	missed := network.Reading{Member: 3, Missed: true, MissedAt: time.Hour}
	for name, c := range map[string]struct {
		seen network.Reading
		at   time.Duration
		want time.Duration
	}{
		"all members accept connections":  {network.Reading{Member: 3}, time.Hour, metricsEvery},
		"a member accepts no connections": {missed, time.Hour + 10*time.Second, askedEvery},
		"a member has accepted no connections for a while": {
			missed, time.Hour + missedKnown + time.Second, silentEvery,
		},
	} {
		r := &round.Round{At: c.at, Probes: []network.Reading{c.seen}}
		seen := health.EtcdReading{HasLeader: known(1)}
		if got := metricsPace(r, false, seen, true); got != c.want {
			t.Errorf("%s: every %s, want %s", name, got, c.want)
		}
	}
	if got := metricsPace(&round.Round{}, true, health.EtcdReading{}, false); got != askedEvery {
		t.Errorf("another host asks: every %s", got)
	}
	fell := &round.Round{FellSilent: true}
	if got := metricsPace(fell, false, health.EtcdReading{HasLeader: known(1)}, true); got != askedEvery {
		t.Errorf("no answer from a member in this round: every %s", got)
	}
	if got := metricsPace(&round.Round{}, false, health.EtcdReading{}, true); got != silentEvery {
		t.Errorf("etcd has reported nothing: every %s", got)
	}
}

func TestCertificatesAreCheckedAgainWhenTheMembersChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, left := time.Now(), time.Hour
		var looked []int
		j := &judge{opt: Options{
			Config: config.Config{Etcd: config.Etcd{PeerURL: "https://n1:2380", ClientURL: "https://n1:2379"}},
			Now:    func() time.Duration { return time.Since(began) + time.Hour },
			Sources: Sources{Certificates: func(_ context.Context, urls []string) health.CertificateReading {
				looked = append(looked, len(urls))
				all := make([]health.Certificate, len(urls))
				for i := range all {
					all[i].Left = left
				}
				return health.CertificateReading{Known: true, All: all}
			}},
		}}
		own := cluster.Member{ID: 1, PeerURLs: []string{"https://n1:2380"}, ClientURLs: []string{"https://n1:2379"}}
		r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
		r.Listed, r.Membership.Members = true, []cluster.Member{own}
		look := func() health.CertificateReading {
			seen := j.certificates(t.Context(), r)
			synctest.Wait()
			return seen
		}
		for range 20 { // for 10 min, a round every 30 s
			look()
			time.Sleep(30 * time.Second) //nolint:forbidigo // virtual time
		}
		r.Membership.Members = []cluster.Member{own, {ID: 2, ClientURLs: []string{"https://n2:2379"}}}
		look()
		if seen := look(); !slices.Equal(looked, []int{2, 3}) || len(seen.All) != 3 {
			t.Errorf("checked %v URLs, got %+v", looked, seen)
		}
		left = 0
		for range 20 {
			look()
			time.Sleep(30 * time.Second) //nolint:forbidigo // virtual time
		}
		look() // the certificates have expired, and an operator is about to renew them
		before := len(looked)
		time.Sleep(expiredEvery) //nolint:forbidigo // virtual time
		if look(); len(looked) != before+1 {
			t.Errorf("checked %d times within %s after one expired, want once", len(looked)-before, expiredEvery)
		}
	})
}

func TestCertificatesOfAReturningVoterAreListedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, up := time.Now(), false
		looked := 0
		const returns = "https://n2:2379"
		j := &judge{opt: Options{
			Config: config.Config{Etcd: config.Etcd{PeerURL: "https://n1:2380", ClientURL: "https://n1:2379"}},
			Now:    func() time.Duration { return time.Since(began) + time.Hour },
			Sources: Sources{Certificates: func(_ context.Context, urls []string) health.CertificateReading {
				looked++
				out := health.CertificateReading{Known: true}
				for _, url := range urls {
					if up || url != returns {
						out.All = append(out.All, health.Certificate{Name: url, Left: time.Hour})
					}
				}
				return out
			}},
		}}
		r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
		r.Listed = true
		r.Membership.Members = []cluster.Member{
			{ID: 1, PeerURLs: []string{"https://n1:2380"}, ClientURLs: []string{"https://n1:2379"}},
			{ID: 2, ClientURLs: []string{returns}},
		}
		r.Statuses = map[uint64]cluster.Status{1: {MemberID: 1}, 2: {MemberID: 2, Err: context.DeadlineExceeded}}
		listed := func() bool {
			j.certificates(t.Context(), r)
			synctest.Wait()
			seen := j.certificates(t.Context(), r) // the next round
			time.Sleep(2 * time.Second)            //nolint:forbidigo // virtual time
			return slices.ContainsFunc(seen.All, func(c health.Certificate) bool { return c.Name == returns })
		}
		for range 30 {
			if listed() {
				t.Fatal("a voter that is down is listed")
			}
		}
		if looked != 1 {
			t.Errorf("%d looks in a minute, want 1", looked)
		}
		up = true
		r.Statuses[2] = cluster.Status{MemberID: 2}
		if !listed() {
			t.Error("a voter that has returned is not listed in the next round")
		}
		for range 30 {
			listed()
		}
		if looked != 2 {
			t.Errorf("%d looks, want one more than before the return", looked)
		}
	})
}

// A voter that does not answer makes every round long. Requests from other hosts, and etcd's reports, arrive in the
// middle of a round.
func TestEtcdReportSinceTheRequestIsNotTakenForOlder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() time.Duration { return time.Since(began) + time.Hour }
		received := 0.0
		j := &judge{now: now, opt: Options{
			Config: config.Config{Timing: config.Timing{Interval: time.Second}}, Now: now,
			Sources: Sources{EtcdMetrics: func(context.Context) health.EtcdReading {
				received++
				return health.EtcdReading{Peers: map[uint64]health.Peer{3: {Received: received}}}
			}},
		}}
		r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
		for n := range 24 {
			r.At = now()
			time.Sleep(2 * time.Second) //nolint:forbidigo // virtual time: the round waits for an answer
			if n == 20 {
				r.AskedSince = now()
			}
			j.local(t.Context(), r)
			synctest.Wait()
		}
		if !r.Connections.Known || r.Connections.At < r.AskedSince {
			t.Errorf("8 s after the request, etcd's report is %v older than it", r.AskedSince-r.Connections.At)
		}
	})
}
