// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// clusterBound is how long it may take until every member of a new cluster answers. On an idle machine it takes about a
// second.
const clusterBound = 60 * time.Second

// ClusterOptions describe a static cluster.
type ClusterOptions struct {
	Version   string        // version of etcd, such as "v3.6"; Small if empty
	Heartbeat time.Duration // heartbeat interval; if 0, etcd's default of 100 ms
	Election  time.Duration // election timeout; if 0, etcd's default of 1 s
	TLS       *CertFiles    // certificate of all members, valid for 127.0.0.1; no TLS if nil
	Extra     []string      // further flags of every member
}

// Cluster is a group of members that were started together.
type Cluster struct {
	Members []*Member // n1, n2, …
}

// StartCluster starts n members, n1 to nN, on 127.0.0.1 and returns when each answers a linearizable read. The members
// are killed when the test ends; if it failed, the ends of their logs are shown.
func StartCluster(t testing.TB, n int, o ClusterOptions) *Cluster {
	t.Helper()
	if o.Version == "" {
		o.Version = Small
	}
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	binary, dir, ports := Etcd(t, o.Version), t.TempDir(), FreePorts(t, 2*n)
	var initial []string
	for i := range n {
		initial = append(initial, fmt.Sprintf("n%d=%s://127.0.0.1:%d", i+1, scheme, ports[n+i]))
	}
	c := &Cluster{}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		options := MemberOptions{
			Binary: binary, Name: name, Dir: filepath.Join(dir, name),
			ClientURL:      fmt.Sprintf("%s://127.0.0.1:%d", scheme, ports[i]),
			PeerURL:        fmt.Sprintf("%s://127.0.0.1:%d", scheme, ports[n+i]),
			InitialCluster: strings.Join(initial, ","), Token: fmt.Sprintf("testbed-%d", ports[0]),
			Heartbeat: o.Heartbeat, Election: o.Election, TLS: o.TLS, Extra: o.Extra,
		}
		if err := os.Mkdir(options.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		m, err := StartMember(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		m.StopAfter(t)
		c.Members = append(c.Members, m)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clusterBound)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// WaitReady waits until every member is ready; see Member.WaitReady.
func (c *Cluster) WaitReady(ctx context.Context) error {
	for _, m := range c.Members {
		if err := m.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Endpoints returns the client URLs of all members.
func (c *Cluster) Endpoints() []string {
	var urls []string
	for _, m := range c.Members {
		urls = append(urls, m.Options.ClientURL)
	}
	return urls
}

// Client returns a client of all members, which is closed when the test ends.
func (c *Cluster) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := newClient(c.Endpoints(), c.Members[0].Options.TLS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Leader returns the member that reports itself as the leader. Members that do not answer within a second are skipped.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	var failed []error
	for _, m := range c.Members {
		leads, err := m.leads(ctx)
		if leads {
			return m, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("cannot find the leader: no member reports leadership: %w", errors.Join(failed...))
}

func (m *Member) leads(ctx context.Context) (bool, error) {
	client, err := m.Client()
	if err != nil {
		return false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Options.ClientURL)
	if err != nil {
		return false, fmt.Errorf("%s: %w", m.Options.Name, err)
	}
	return status.Header.MemberId == status.Leader, nil
}
