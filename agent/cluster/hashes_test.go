// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// compactAt writes once and compacts the history before that write. When every member has completed the compaction, it
// returns the revision of the write.
func compactAt(t *testing.T, c *testbed.Cluster, own *cluster.Client, list cluster.Membership) int64 {
	t.Helper()
	ctx := within(t)
	answer, err := c.Client(t).Put(ctx, "key", "value")
	must(t, err)
	must(t, own.Compact(ctx, answer.Header.Revision))
	for {
		complete := 0
		for _, h := range own.Hashes(ctx, list.Members, answer.Header.Revision) {
			if h.Err == nil && h.Compacted != answer.Header.Revision {
				complete++
			}
		}
		if complete == len(list.Members) {
			return answer.Header.Revision
		}
		select {
		case <-ctx.Done():
			t.Fatal("a member does not complete the compaction")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestTheLastCompactionIsReadFromEtcd(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	ctx, own := within(t), connect(t, c.Endpoints()...)
	list, err := own.Members(ctx)
	must(t, err)
	if got, err := own.LastCompaction(ctx); err != nil || got != 0 {
		t.Errorf("before any compaction: %d, %v", got, err)
	}
	for range 2 {
		want := compactAt(t, c, own, list)
		if got, err := own.LastCompaction(ctx); err != nil || got != want {
			t.Errorf("the last compaction is %d, %v; want %d", got, err, want)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := own.LastCompaction(cancelled); err == nil {
		t.Error("a cancelled read returns a compaction")
	}
}

func TestTheHashOfACorruptMemberDiffers(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 3, quick())
	ctx, own := within(t), connect(t, c.Endpoints()...)
	_, err := c.Client(t).Put(ctx, "balance", "one hundred")
	must(t, err)
	list, err := own.Members(ctx)
	must(t, err)
	sums := func(revision int64) map[uint32]int {
		out := map[uint32]int{}
		for _, h := range own.Hashes(ctx, list.Members, revision) {
			if h.Err != nil {
				t.Fatal(h.Err)
			}
			out[h.Sum]++
		}
		return out
	}
	if got := sums(compactAt(t, c, own, list)); len(got) != 1 {
		t.Fatalf("the hashes of three intact members are %v", got)
	}
	bad := c.Members[1]
	must(t, bad.Terminate())
	_ = bad.Wait(ctx) // an error is expected: the signal ends the process
	must(t, testbed.Corrupt(filepath.Join(bad.Options.Dir, "data"), "one hundred"))
	must(t, bad.Restart(ctx))
	must(t, c.WaitReady(ctx))
	if got := sums(compactAt(t, c, own, list)); len(got) != 2 {
		t.Errorf("the hashes of two intact members and a corrupt one are %v", got)
	}
	list.Members[0].ID++
	for id, h := range own.Hashes(ctx, list.Members[:1], 1) {
		if h.Err == nil {
			t.Errorf("another member answers for %x", id)
		}
	}
}
