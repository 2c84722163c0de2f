// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestDiscoveredEndpointsStayKnown(t *testing.T) {
	t.Parallel()
	c, err := cluster.New(cluster.Options{
		Endpoints: []string{"http://n1:1"}, Discovers: true, CallTimeout: time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	is := func(complete bool, want ...string) {
		t.Helper()
		got, err := c.Known()
		if !slices.Equal(got, want) || (err == nil) != complete ||
			!complete && !errors.Is(err, cluster.ErrNotDiscovered) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
	}
	is(false, "http://n1:1")
	c.Discovered([]string{"http://n1:1", "http://n2:1", "http://n3:1"}, nil)
	is(true, "http://n1:1", "http://n2:1", "http://n3:1")
	c.Discovered([]string{"http://n3:1"}, nil)
	is(true, "http://n1:1", "http://n3:1", "http://n2:1")
	c.Discovered(nil, errors.New("the answer is empty"))
	is(false, "http://n1:1", "http://n3:1", "http://n2:1")
	for i := range 500 {
		c.Discovered([]string{fmt.Sprintf("http://n%d:2", i)}, nil)
	}
	got, err := c.Known()
	if err != nil || len(got) != 129 || got[0] != "http://n1:1" || got[1] != "http://n499:2" {
		t.Errorf("%d are kept: %v %v", len(got), got[:2], err)
	}
}

func TestAClusterIsFoundByDiscoveryAlone(t *testing.T) {
	t.Parallel()
	member := testbed.StartCluster(t, 1, quick()).Members[0].Options.ClientURL
	c, err := cluster.New(cluster.Options{
		Endpoints: []string{"http://127.0.0.1:1"}, Discovers: true, CallTimeout: time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Members(t.Context()); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("no member is known, but the error is %v", err)
	}
	c.Discovered([]string{member}, nil)
	if _, err := c.Members(t.Context()); err != nil {
		t.Error(err)
	}
}

// A discovered endpoint is used only if a trusted CA has signed its certificate and the certificate names it. A forged
// service record therefore has no effect.
func TestADiscoveredEndpointIsUsedOnlyIfItsCertificateNamesIt(t *testing.T) {
	t.Parallel()
	ca, other := newCA(t), newCA(t)
	serve := func(by *testbed.CA) (port string) {
		t.Helper()
		certs, err := by.Issue("etcd", testbed.CertOptions{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
		must(t, err)
		o := quick()
		o.TLS = &certs
		_, port, _ = strings.Cut(testbed.StartCluster(t, 1, o).Endpoints()[0], "127.0.0.1:")
		return port
	}
	own, foreign := serve(ca), serve(other)
	c := connectWith(t, cluster.Options{
		Endpoints: []string{strings.Replace(noListener(t), "http:", "https:", 1)}, Discovers: true,
		TLS: files(t)(ca.Issue("client", testbed.CertOptions{})), CallTimeout: time.Second,
	})
	for target, wantErr := range map[string]string{
		"https://localhost:" + own:     "certificate is not valid for any names, but wanted to match localhost",
		"https://127.0.0.1:" + foreign: "certificate signed by unknown authority",
	} {
		c.Discovered([]string{target}, nil)
		if _, err := c.Members(within(t)); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Members through %s returns %v", target, err)
		}
		if err := c.Diagnose(within(t), target); !contains(err, wantErr) {
			t.Errorf("Diagnose of %s returns %v, want %q", target, err, wantErr)
		}
	}
	c.Discovered([]string{"https://localhost:" + own, "https://127.0.0.1:" + own}, nil)
	if list := members(t, c); len(list.Members) != 1 {
		t.Errorf("the target in its certificate lists %+v", list)
	}
}
