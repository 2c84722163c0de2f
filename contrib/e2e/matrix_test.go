// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// unsafe is a version below the minimum for membership changes.
const unsafe = "v3.4"

// withVersions sets the etcd version of each host, and allows the unsafe version if it is among them.
func withVersions(t *testing.T, versions ...string) func(int, *testbed.HostOptions) {
	return func(i int, o *testbed.HostOptions) {
		o.Etcd = testbed.Etcd(t, versions[i-1])
		if slices.Contains(versions, unsafe) {
			o.Set["cluster.allowUnsafeVersion"] = "true"
		}
	}
}

// TestMatrix forms a cluster of every version to test with, and one of each pair in pairs, including those that quorumd
// must refuse.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run("a cluster of "+version, func(t *testing.T) {
			t.Parallel()
			o := worldOptions{
				hosts: 4, voters: 3, standbys: 1,
				each: withVersions(t, version, version, version, version),
			}
			if version == unsafe { // only joins and promotions are supported with it
				o.hosts, o.standbys = 3, 0
			}
			w := newWorld(t, o)
			w.start()
			w.bootstrap()
			w.verify(3, o.standbys)
			w.waitRolesAgree()
			for _, h := range w.hosts {
				if !h.runsVersion(version) {
					t.Errorf("%s does not run etcd %s", h.Options.Name, version)
				}
				if warned := h.logHas("allowUnsafeVersion is set"); warned != (version == unsafe) {
					t.Errorf("the agent of %s has warned: %v", h.Options.Name, warned)
				}
			}
		})
		if version == unsafe {
			t.Run(version+" is refused unless it is accepted", func(t *testing.T) {
				t.Parallel()
				expectRefusedUnlessAllowed(t)
			})
		}
	}
	for _, p := range pairs() {
		if !slices.Contains(versions(), p.cluster) || !slices.Contains(versions(), p.host) {
			continue
		}
		if p.joins {
			t.Run(p.host+" joins "+p.cluster, func(t *testing.T) { t.Parallel(); joinAndPromote(t, p.cluster, p.host) })
		} else {
			t.Run(p.host+" stays out of "+p.cluster, func(t *testing.T) {
				t.Parallel()
				expectStaysOut(t, p.cluster, p.host)
			})
		}
	}
}

// pair contains the versions of a cluster and of a host, and whether the host can join.
type pair struct {
	cluster, host string
	joins         bool
}

func pairs() []pair {
	return []pair{
		{"v3.4", "v3.5", true},
		{"v3.4", "v3.6", false}, // a learner would crash the leader's etcd, and again at every start
		{"v3.5", "v3.4", false},
		{"v3.5", "v3.6", true},
		{"v3.5", "v3.7", false},
		{"v3.6", "v3.5", false},
		{"v3.6", "v3.7", true},
		{"v3.7", "v3.6", false},
	}
}

// joinAndPromote makes two hosts of one version join a voter of another, up to their promotion.
func joinAndPromote(t *testing.T, cluster, host string) {
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: withVersions(t, cluster, host, host)})
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	for i, version := range []string{cluster, host, host} {
		if !w.hosts[i].runsVersion(version) {
			t.Errorf("%s does not run etcd %s", w.hosts[i].Options.Name, version)
		}
	}
}

// expectStaysOut checks that a host reports why it does not join, that it neither starts its etcd nor adds it as a
// member, and that the cluster keeps running.
func expectStaysOut(t *testing.T, cluster, host string) {
	w := newWorld(t, worldOptions{
		hosts: 2, voters: 1, standbys: 1, set: quickTimes(),
		each: withVersions(t, cluster, host),
	})
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start()
	w.bootstrap()
	before := n1.etcdPID()
	w.eventually("the host is refused", func() bool { return n2.healthy() && n2.waitsFor(policy.VersionIncompatible) })
	w.never(3*time.Second, "n2 is added, or its etcd was started", func() bool {
		listed, _ := w.is(n2)
		return listed || n2.etcdPID() != 0 || len(n2.dataDirs()) > 0
	})
	if pid := n1.etcdPID(); pid != before || !n1.writes() {
		t.Errorf("the leader was process %d, is %d, and writes: %v", before, pid, n1.writes())
	}
	w.verify(1, 0)
}

// expectRefusedUnlessAllowed starts two hosts with the unsafe version. At first, only one of them is configured to
// allow it.
func expectRefusedUnlessAllowed(t *testing.T) {
	w := newWorld(t, worldOptions{
		hosts: 2, voters: 1, standbys: 1, set: quickTimes(),
		each: func(i int, o *testbed.HostOptions) {
			o.Etcd = testbed.Etcd(t, unsafe)
			if i == 1 {
				o.Set["cluster.allowUnsafeVersion"] = "true"
			}
		},
	})
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start()
	w.bootstrap()
	w.eventually("the host is refused", func() bool { return n2.healthy() && n2.waitsFor(policy.VersionUnsafe) })
	w.never(2*time.Second, "n2 is added, or its etcd was started", func() bool {
		listed, _ := w.is(n2)
		return listed || n2.etcdPID() != 0
	})
	s, _ := n2.status()
	if text := s.Reasons[0].Text + s.Reasons[0].Remedy; !strings.Contains(text, "3.4.") ||
		!strings.Contains(text, "cluster.allowUnsafeVersion") {
		t.Errorf("the reason does not name the version and the remedy: %s", text)
	}
	if n1.logHas("allowUnsafeVersion is set") == n2.logHas("allowUnsafeVersion is set") {
		t.Error("only n1 warns")
	}

	n2.stop()
	n2.Options.Set["cluster.allowUnsafeVersion"] = "true"
	if err := n2.WriteConfig(); err != nil {
		t.Fatal(err)
	}
	w.start(n2)
	w.verify(1, 1)
}

// runsVersion reports whether the host's etcd reports this minor version.
func (h *host) runsVersion(version string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	status, err := h.etcd.Status(ctx, h.etcd.Endpoints()[0])
	return err == nil && strings.HasPrefix(status.Version, strings.TrimPrefix(version, "v")+".")
}
