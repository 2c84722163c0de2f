// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hostConfig() config.Config {
	var c config.Config
	c.Host.Name = "n2"
	c.Etcd.DataDir = "/data"
	c.Etcd.ClientURL, c.Etcd.PeerURL = "http://c2", "http://p2"
	c.Etcd.ListenClientURL, c.Etcd.ListenPeerURL = "http://lc2", "http://lp2"
	return c
}

func TestTheEnvironmentOfAJoinListsAllMembersByPeerURL(t *testing.T) {
	t.Parallel()
	env := environment(hostConfig(), []cluster.Member{
		{ID: 0xa1, Name: "n1", PeerURLs: []string{"http://p1", "http://p1b"}},
		{ID: 0xa2, PeerURLs: []string{"http://p2"}},
		{ID: 0xa3, PeerURLs: []string{"http://p3"}},
	}, "")
	want := map[string]string{
		"ETCD_NAME": "n2", "ETCD_DATA_DIR": "/data",
		"ETCD_LISTEN_CLIENT_URLS": "http://lc2", "ETCD_LISTEN_PEER_URLS": "http://lp2",
		"ETCD_ADVERTISE_CLIENT_URLS": "http://c2", "ETCD_INITIAL_ADVERTISE_PEER_URLS": "http://p2",
		"ETCD_INITIAL_CLUSTER":       "a1=http://p1,a1=http://p1b,n2=http://p2,a3=http://p3",
		"ETCD_INITIAL_CLUSTER_STATE": "existing",
	}
	if !maps.Equal(env, want) {
		t.Fatalf("environment is %v, want %v", env, want)
	}
}

// unitOf is a unit that is as it was last seen.
type unitOf struct {
	Unit
	status systemd.Status
}

func (u unitOf) Status(context.Context) (systemd.Status, error) { return u.status, nil }

func TestAUnitIsAskedWhatItStartsAndWhetherABootDoes(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Timing.CallTimeout, c.Etcd.Binary = time.Second, "/usr/bin/etcd"
	for _, k := range []struct {
		status    systemd.Status
		program   string
		notAtBoot bool
	}{
		{systemd.Status{LoadState: "loaded", UnitFileState: "enabled", Program: "/usr/bin/etcd"}, "", false},
		{
			systemd.Status{LoadState: "loaded", UnitFileState: "disabled", Program: "/opt/etcd/etcd"},
			"/opt/etcd/etcd",
			true,
		},
		{systemd.Status{LoadState: "loaded"}, "", false}, // of a plain process
	} {
		a := &Agent{opt: Options{Config: c, Unit: unitOf{status: k.status}}, since: since{marks: map[string]mark{}}}
		r := &round.Round{}
		a.observeUnit(t.Context(), r)
		if u := r.View.Unit; u.Program != k.program || u.NotAtBoot != k.notAtBoot {
			t.Errorf("%+v: %+v", k.status, u)
		}
	}
}

func TestTheEnvironmentOfANewClusterNamesThisHostAlone(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.Environment = map[string]string{"ETCD_QUOTA_BACKEND_BYTES": "8589934592"}
	env := environment(c, nil, "token")
	for name, want := range map[string]string{
		"ETCD_INITIAL_CLUSTER": "n2=http://p2", "ETCD_INITIAL_CLUSTER_STATE": "new",
		"ETCD_INITIAL_CLUSTER_TOKEN": "token",
		"ETCD_QUOTA_BACKEND_BYTES":   "8589934592",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
}

func TestWhatHoldsIsCountedFromWhenItWasFirstSeen(t *testing.T) {
	t.Parallel()
	s := since{marks: map[string]mark{}}
	if d := s.of("membership", "a", 100, 1); d != 0 {
		t.Fatalf("a new value is %s old", d)
	}
	if d := s.of("membership", "a", 130, 2); d != 30 {
		t.Fatalf("the value is %s old, want 30ns", d)
	}
	if d := s.of("membership", "b", 140, 3); d != 0 {
		t.Fatalf("another value is %s old", d)
	}
	s.forget(4) // a round in which it was not looked at
	if d := s.of("membership", "b", 150, 5); d != 0 {
		t.Fatalf("after a break the value is %s old", d)
	}
}

func TestALearnerThatDoesNotAnswerMakesNoProgress(t *testing.T) {
	t.Parallel()
	s := since{marks: map[string]mark{}}
	limits := policy.Limits{PromoteLag: 10}
	m := policy.Member{ID: 1, Learner: true, Live: true, LagKnown: true, Lag: 50}
	at := func(now time.Duration, round uint64, live bool, applied uint64, paused bool) policy.Member {
		m.Live = live
		s.trackMember(&m, applied, limits, paused, now, round)
		s.forget(round)
		return m
	}
	at(0, 1, true, 100, false)
	if got := at(10, 2, true, 120, false); got.StalledFor != 0 || got.LiveFor != 10 {
		t.Fatalf("progress counts as stalled for %s, live for %s", got.StalledFor, got.LiveFor)
	}
	if got := at(20, 3, false, 0, false); got.StalledFor != 10 || got.LiveFor != 0 {
		t.Fatalf("silence is stalled for %s, live for %s", got.StalledFor, got.LiveFor)
	}
	if got := at(30, 4, false, 0, false); got.StalledFor != 20 || got.DownFor != 10 {
		t.Fatalf("further silence is stalled for %s, down for %s", got.StalledFor, got.DownFor)
	}
	if got := at(40, 5, true, 120, false); got.StalledFor != 30 {
		t.Fatalf("back with the same index it is stalled for %s, want 30ns", got.StalledFor)
	}
	if got := at(50, 6, true, 120, true); got.StalledFor != 0 {
		t.Fatalf("while paused it is stalled for %s", got.StalledFor)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
