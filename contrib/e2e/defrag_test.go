// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// fragment writes 60 MiB, deletes half of it, and compacts, so that half of every database file is free.
func (w *world) fragment() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	value, client := string(bytes.Repeat([]byte("x"), 1<<20)), w.hosts[0].etcd
	for i := range 60 {
		if _, err := client.Put(ctx, fmt.Sprintf("/filler/%d/%d", i%2, i), value); err != nil {
			w.t.Fatal(err)
		}
	}
	answer, err := client.Delete(ctx, "/filler/0/", clientv3.WithPrefix())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.Compact(ctx, answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		w.t.Fatal(err)
	}
	for _, h := range w.hosts {
		w.eventually("the database of "+h.Options.Name+" has free space", func() bool {
			// etcd counts freed pages only after it has written again
			_, failed := client.Put(ctx, "/filler/1/last", "")
			s, err := h.etcd.Status(ctx, h.etcd.Endpoints()[0])
			return failed == nil && err == nil && s.DbSize-s.DbSizeInUse > 25<<20
		})
	}
}

// snap returns the path of a file in the directory that contains the database of the host's etcd.
func (h *host) snap(name string) string {
	return filepath.Join(h.DataDir(), "member", "snap", name)
}

// databaseSize returns the size of the host's database file.
func (h *host) databaseSize() int64 {
	h.w.t.Helper()
	info, err := os.Stat(h.snap("db"))
	if err != nil {
		h.w.t.Fatal(err)
	}
	return info.Size()
}

// defrag starts a defragmentation of these hosts, or of all.
func (h *host) defrag(force bool, hosts ...string) (control.Rollout, string) {
	h.w.t.Helper()
	return ask(h, control.RolloutRequest{
		Work: policy.WorkDefrag, Hosts: hosts, Reason: "a large compaction", Force: force,
	}, h.Client.StartRollout)
}

// equalHashes waits until all members have the same hash of their keys at the same revision.
func (w *world) equalHashes() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	w.eventually("all members have the same hash", func() bool {
		s, err := w.hosts[0].etcd.Status(ctx, w.hosts[0].etcd.Endpoints()[0])
		if err != nil {
			return false
		}
		hashes := map[uint32]bool{}
		for _, h := range w.hosts {
			answer, err := h.etcd.HashKV(ctx, h.etcd.Endpoints()[0], s.Header.Revision)
			if err != nil {
				return false
			}
			hashes[answer.Hash] = true
		}
		return len(hashes) == 1
	})
}

func TestADefragmentationShrinksEveryDatabaseWithoutAFailedWrite(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	w.fragment()
	first := w.hosts[0]
	_, refused := first.defrag(false, "n2")
	if !strings.Contains(refused, "a defragmentation of n2 is not worth the restart") {
		t.Fatalf("a defragmentation of little space: %q", refused)
	}
	load := w.retrying(50)
	before := map[string]int64{}
	for _, h := range w.hosts {
		before[h.Options.Name] = h.databaseSize()
	}
	began := time.Now()
	if _, refused := first.defrag(true); refused != "" {
		t.Fatal(refused)
	}
	w.within(4*formation, "the defragmentation is done", func() bool { return first.rolloutIs(record.RolloutDone) })
	t.Logf("the defragmentation of three hosts took %.1f s", time.Since(began).Seconds())
	checkReport(t, load)
	for _, h := range w.hosts {
		name, after := h.Options.Name, h.databaseSize()
		t.Logf("%s: %d KiB before, %d KiB after", name, before[name]>>10, after>>10)
		if after > before[name]-25<<20 {
			t.Errorf("the database of %s has %d bytes, and had %d", name, after, before[name])
		}
		for _, left := range []string{"db.before-defrag", "db.tmp.quorumd-defrag"} {
			if _, err := os.Lstat(h.snap(left)); err == nil {
				t.Errorf("%s still exists on %s", left, name)
			}
		}
	}
	w.equalHashes()
	// the compaction has removed the history that w.verify reads
	w.eventually("no operation is left, and three voters", func() bool {
		return w.absent(w.keys().Op()) && w.has(3, 0)
	})
}

func TestAFailedDefragmentationStartsEtcdAgainAndStopsTheRollout(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	w.fragment()
	victim := w.hosts[1]
	// a directory that is not empty cannot be removed
	if err := os.MkdirAll(victim.snap("db.before-defrag/full"), 0o700); err != nil {
		t.Fatal(err)
	}
	size, load := victim.databaseSize(), w.retrying(50)
	if _, refused := victim.defrag(true, victim.Options.Name); refused != "" {
		t.Fatal(refused)
	}
	w.within(4*formation, "the rollout has stopped", func() bool { return victim.rolloutIs(record.RolloutStopped) })
	s, _ := victim.status()
	if !strings.Contains(s.Rollout.Text, "db.before-defrag") {
		t.Errorf("the rollout stopped because %q", s.Rollout.Text)
	}
	if now := victim.databaseSize(); now < size {
		t.Errorf("the database has %d bytes, and had %d", now, size)
	}
	checkReport(t, load)
	w.equalHashes()
	// the compaction has removed the history that w.verify reads
	w.eventually("no operation is left, and three voters", func() bool {
		return w.absent(w.keys().Op()) && w.has(3, 0)
	})
}
