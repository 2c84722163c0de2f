// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

func hostConfig() config.Config {
	var c config.Config
	c.Host.Name = "n2"
	c.Etcd.DataDir = "/data"
	c.Etcd.ClientURL, c.Etcd.PeerURL = "http://c2", "http://p2"
	c.Etcd.ListenClientURL, c.Etcd.ListenPeerURL = "http://lc2", "http://lp2"
	return c
}

func TestJoinEnvironmentListsAllMembersByPeerURL(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Membership.Members = []cluster.Member{
		{ID: 0xa1, Name: "n1", PeerURLs: []string{"http://p1", "http://p1b"}},
		{ID: 0xa2, PeerURLs: []string{"http://p2"}},
		{ID: 0xa3, PeerURLs: []string{"http://p3"}},
	}
	env := environment(hostConfig(), r, &policy.View{})
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

func TestNewClusterEnvironmentNamesOnlyThisHost(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.Environment = map[string]string{"ETCD_QUOTA_BACKEND_BYTES": "8589934592"}
	r := &round.Round{Bootstrap: &hoststate.BootstrapRequest{Token: "token"}}
	env := environment(c, r, &policy.View{Bootstrap: policy.Bootstrap{Requested: true}})
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

func TestEnvironmentAfterASnapshotRestoreMakesNoNewCluster(t *testing.T) {
	t.Parallel()
	env := environment(hostConfig(), &round.Round{}, &policy.View{Recovery: &policy.Recovery{Snapshot: true}})
	if env["ETCD_INITIAL_CLUSTER_STATE"] != "existing" || env["ETCD_INITIAL_CLUSTER"] != "n2=http://p2" {
		t.Errorf("environment is %v", env)
	}
}

// Only an environment that this process has written counts, because the process cannot read any other.
func TestEnvironmentIsReadyOnceThisProcessHasWrittenIt(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	r := &round.Round{Bootstrap: &hoststate.BootstrapRequest{Token: "token"}}
	ready := func() bool { return NewBuilder(c, "boot-1", "", false).View(r, nil).Unit.EnvReady }
	wanted := environment(c, r, &policy.View{Bootstrap: policy.Bootstrap{Requested: true}})
	for name, did := range map[string]struct {
		wrote map[string]string
		ready bool
	}{
		"nothing":                {nil, false},
		"of a join":              {environment(c, r, &policy.View{}), false},
		"of the new cluster":     {wanted, true},
		"of another new cluster": {c.Environment(c.SingleMember(), "another"), false},
	} {
		if r.Did.Environment = did.wrote; ready() != did.ready {
			t.Errorf("written %s: ready %t", name, !did.ready)
		}
	}
}
