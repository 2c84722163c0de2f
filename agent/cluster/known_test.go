// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestWhatWasDiscoveredOnceStaysKnown(t *testing.T) {
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

func TestAClusterIsFoundByWhatWasDiscoveredAlone(t *testing.T) {
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
		t.Errorf("nobody was told of: %v", err)
	}
	c.Discovered([]string{member}, nil)
	if _, err := c.Members(t.Context()); err != nil {
		t.Error(err)
	}
}
