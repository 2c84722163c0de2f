// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// bound is how long a test waits at most for a call that should take less than a second.
const bound = 30 * time.Second

// patience is how long a test waits on a busy machine before it fails.
const patience = 5 * time.Minute

// Names under which the test binary acts as a program that is mistaken for etcd.
const (
	asHanging  = "program-that-hangs"
	asBabbling = "program-that-never-stops-printing"
	asPrinter  = "program-that-prints-its-environment"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == execshim.Command {
		_ = execshim.Main(os.Args[2:]) // returns only after it has printed an error
		os.Exit(1)
	}
	switch filepath.Base(os.Args[0]) {
	case asHanging:
		<-time.After(bound)
		return
	case asBabbling:
		for line := strings.Repeat("x", 4096); ; {
			if _, err := fmt.Println(line); err != nil {
				os.Exit(1)
			}
		}
	case asPrinter:
		fmt.Printf("etcd Version: 3.6.%d\n", len(os.Environ()))
		return
	}
	goleak.VerifyTestMain(m)
}

// within returns a context that ends after bound.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// quick returns raft timings that elect a leader in about half a second.
func quick() testbed.ClusterOptions {
	return testbed.ClusterOptions{Heartbeat: 50 * time.Millisecond, Election: 500 * time.Millisecond}
}

// connect returns a client whose calls take at most a second.
func connect(t *testing.T, endpoints ...string) *cluster.Client {
	t.Helper()
	return connectWith(t, cluster.Options{Endpoints: endpoints, CallTimeout: time.Second})
}

func connectWith(t *testing.T, o cluster.Options) *cluster.Client {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	c, err := cluster.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// members reads the member list until the client gets one.
func members(t *testing.T, c *cluster.Client) cluster.Membership {
	t.Helper()
	var list cluster.Membership
	testbed.Eventually(t, bound, "the member list is read", func() bool {
		var err error
		list, err = c.Members(t.Context())
		return err == nil
	})
	return list
}

// cut returns an endpoint that accepts connections to the member and forwards nothing.
func cut(t *testing.T, m *testbed.Member) string {
	t.Helper()
	proxy := testbed.NewProxy(t, strings.TrimPrefix(m.Options.ClientURL, "http://"))
	proxy.Set(testbed.Cut())
	return "http://" + proxy.Addr()
}

// noListener returns an endpoint where nothing listens.
func noListener(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
}

// learnerOptions returns the options of a member that can be started after its peer URL was added to the cluster.
func learnerOptions(t *testing.T, c *testbed.Cluster) testbed.MemberOptions {
	t.Helper()
	ports := testbed.FreePorts(t, 2)
	o := c.Members[0].Options
	o.Name, o.Dir, o.State = "learner", t.TempDir(), "existing"
	o.ClientURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	o.PeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	o.InitialCluster += ",learner=" + o.PeerURL
	return o
}

func start(t *testing.T, o testbed.MemberOptions) *testbed.Member {
	t.Helper()
	m, err := testbed.StartMember(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.StopAfter(t)
	return m
}

// withLearner runs a voter and a caught-up learner.
func withLearner(t *testing.T) (*testbed.Cluster, *testbed.Member) {
	t.Helper()
	c := testbed.StartCluster(t, 1, quick())
	o := learnerOptions(t, c)
	if _, err := connect(t, c.Endpoints()...).AddLearner(within(t), o.PeerURL); err != nil {
		t.Fatal(err)
	}
	m := start(t, o)
	if err := m.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	return c, m
}
