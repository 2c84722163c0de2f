// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/recovery/rebuild"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// The model of quorum loss claims which clusters serve, for every set of running members with old data or with data
// made from the survivor's.
func TestRealEtcdMadeFromASurvivorServesAsTheModelClaims(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newLossBench(t, version)
			b.compare("the survivor alone, with its old data", []uint8{1, 0, 0})
			b.checkRefuted([]uint8{1, 0, 0})
			b.recover()
			b.compare("the recovered cluster", []uint8{1, 0, 0})
			b.compare("the recovered cluster and a host that returns late", []uint8{1, 1, 0})
			b.compare("the late host alone", []uint8{0, 1, 0})
			b.compare("the recovered cluster and an old majority, which operators must prevent", []uint8{1, 1, 1})
			b.compare("the old majority alone", []uint8{0, 1, 1})
		})
	}
}

// lossBench is three real members, and the world that they must match.
type lossBench struct {
	t       *testing.T
	cluster *testbed.Cluster
	sc      QuorumLoss
	w       lossWorld
	ids     map[uint64]uint8 // cluster IDs, as the model numbers them
	claim   func(w *lossWorld, cluster uint8, from int) bool
}

func newLossBench(t *testing.T, version string) *lossBench {
	t.Helper()
	b := &lossBench{
		t: t, sc: QuorumLoss{Voters: 3}, ids: map[uint64]uint8{},
		cluster: testbed.StartCluster(t, 3, testbed.ClusterOptions{Version: version}),
	}
	b.w, b.claim = b.sc.initial(), b.sc.serves
	for i := range b.cluster.Members {
		id, _, serves := b.read(i, longPatience)
		if !serves {
			t.Fatalf("%s does not serve", hostName(i))
		}
		b.ids[id] = oldCluster
	}
	if len(b.ids) != 1 {
		t.Fatalf("the members belong to the clusters %x", b.ids)
	}
	b.run([]uint8{0, 0, 0})
	return b
}

// run starts and kills members, so that exactly the given ones run.
func (b *lossBench) run(which []uint8) {
	b.t.Helper()
	for i, m := range b.cluster.Members {
		h := &b.w.hosts[i]
		switch {
		case h.runs == 1 && which[i] == 0:
			if err := m.Kill9(); err != nil {
				b.t.Fatal(err)
			}
			_ = m.Wait(b.t.Context()) // it was killed
		case h.runs == 0 && which[i] == 1:
			if err := m.Restart(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
		}
		h.runs = which[i]
	}
}

// read retries a linearizable read from a member until it succeeds. It returns the cluster's ID and its number of
// members.
func (b *lossBench) read(i int, patience time.Duration) (id uint64, members int, serves bool) {
	b.t.Helper()
	client, err := b.cluster.Members[i].Client()
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
		got, err := client.Get(ctx, "key")
		if err == nil {
			if list, err := client.MemberList(ctx); err == nil {
				cancel()
				return got.Header.ClusterId, len(list.Members), true
			}
		}
		<-ctx.Done()
		cancel()
	}
	return 0, 0, false
}

// compare runs the given members, and compares with the model which of them serve, and which cluster.
func (b *lossBench) compare(what string, which []uint8) {
	b.t.Helper()
	for _, differs := range b.differences(which) {
		b.t.Errorf("%s: %s", what, differs)
	}
}

// checkRefuted checks that etcd refutes the false claim that every member serves.
func (b *lossBench) checkRefuted(which []uint8) {
	b.t.Helper()
	b.claim = func(*lossWorld, uint8, int) bool { return true }
	if len(b.differences(which)) == 0 {
		b.t.Error("a false claim is not refuted")
	}
	b.claim = b.sc.serves
}

func (b *lossBench) differences(which []uint8) (all []string) {
	b.t.Helper()
	b.run(which)
	for i := range b.cluster.Members {
		if which[i] == 0 {
			continue
		}
		want := b.claim(&b.w, b.w.hosts[i].data, i)
		patience := shortPatience
		if want {
			patience = longPatience
		}
		id, members, serves := b.read(i, patience)
		switch {
		case serves != want:
			all = append(all, fmt.Sprintf("%s serves: %v, the model claims %v\n%s", hostName(i), serves, want,
				b.cluster.Members[i].LogTail(20)))
		case serves && b.ids[id] != b.w.hosts[i].data:
			all = append(all, fmt.Sprintf("%s belongs to cluster %x, the model claims number %d", hostName(i), id,
				b.w.hosts[i].data))
		case serves && members != b.members(b.w.hosts[i].data):
			all = append(all, fmt.Sprintf("the cluster of %s has %d members", hostName(i), members))
		}
	}
	return all
}

// members returns the number of members of a cluster. No host joins in this test.
func (b *lossBench) members(cluster uint8) int {
	if cluster == oldCluster {
		return len(b.cluster.Members)
	}
	return 1
}

// recover makes a new cluster from the first member's data.
func (b *lossBench) recover() {
	b.t.Helper()
	b.run([]uint8{0, 0, 0})
	m := b.cluster.Members[0]
	p := rebuild.Place{DataDir: filepath.Join(m.Options.Dir, "data")}
	l, err := rebuild.Read(p)
	if err != nil {
		b.t.Fatal(err)
	}
	work := recovery.Work{
		Plan: "abcdefghijkl", Cluster: 0xfeedfacecafe, Old: l.Cluster, Member: l.Member, Term: l.Term, Index: l.Index,
		Name: m.Options.Name, ClientURL: m.Options.ClientURL, PeerURL: m.Options.PeerURL,
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := rebuild.Rebuild(ctx, p, work, m.Options.Binary, nil, nil); err != nil {
		b.t.Fatal(err)
	}
	for { // a child process that another test has forked may still hold the released lock
		if _, err = rebuild.Swap(p, work, time.Now()); err == nil || !strings.Contains(err.Error(), "has it open") {
			break
		}
		select {
		case <-ctx.Done():
			b.t.Fatal(err)
		case <-time.After(tick):
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.w.hosts[0].data, b.w.hosts[0].recorded = recoveredCluster(1), recoveredCluster(1)
	b.ids[uint64(work.Cluster)] = recoveredCluster(1)
}
