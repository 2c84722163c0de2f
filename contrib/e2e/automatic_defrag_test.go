// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
)

// smallQuota is the quota of these tests. etcd's database file grows in steps of 16 MiB, so several steps must fit
// between any two limits.
const smallQuota = 400 << 20

// fillTo overwrites keys until every database file has reached this percentage of the quota, and then compacts the
// history, so that most of each file is free.
func (w *world) fillTo(percent int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 4*bound)
	defer cancel()
	var revision int64
	for n, value := 0, strings.Repeat("x", 1<<20); w.smallestFile(ctx) < smallQuota/100*percent; n++ {
		answer, err := w.hosts[0].etcd.Put(ctx, fmt.Sprintf("/filler/%d", n%8), value)
		if err != nil {
			w.t.Fatal(err)
		}
		revision = answer.Header.Revision
	}
	if _, err := w.hosts[0].etcd.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		w.t.Fatal(err)
	}
}

// smallestFile returns the size of the smallest database file.
func (w *world) smallestFile(ctx context.Context) int64 {
	w.t.Helper()
	least := int64(smallQuota)
	for _, h := range w.hosts {
		s, err := h.etcd.Status(ctx, h.etcd.Endpoints()[0])
		if err != nil {
			w.t.Fatal(err)
		}
		least = min(least, s.DbSize)
	}
	return least
}

// defragmentedItself reports whether the host's last operation was a defragmentation that its agent had requested.
func (h *host) defragmentedItself() bool {
	s, ok := h.status()
	end := s.LastMaintenance
	return ok && end != nil && end.Work == policy.WorkDefrag && end.By == "quorumd" && end.Code == policy.Cycled
}

// TestAgentsDefragmentTheirOwnMembers also shows that at most one member is down at a time, because the client's writes
// need two of three voters.
func TestAgentsDefragmentTheirOwnMembers(t *testing.T) {
	t.Parallel()
	later := time.Now().UTC().Add(6 * time.Hour).Format("15:04")
	evenLater := time.Now().UTC().Add(7 * time.Hour).Format("15:04")
	for name, c := range map[string]struct {
		percent int64
		set     map[string]string
	}{
		"in a maintenance window, above 80 % of the quota": {81, map[string]string{
			"space.defrag": "windows", "maintenance.windows": "[daily 00:00-24:00]",
		}},
		"outside of one, above 90 % of the quota": {91, map[string]string{
			"space.defrag": "windows", "maintenance.windows": "[daily " + later + "-" + evenLater + " UTC]",
		}},
		"before the NOSPACE alarm that they may remedy": {91, map[string]string{"space.noSpace": "remediate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.set["etcd.environment"] = fmt.Sprintf(`{ETCD_QUOTA_BACKEND_BYTES: "%d"}`, smallQuota)
			w := allVoters(t, worldOptions{hosts: 3, voters: 3, set: c.set})
			w.fillTo(c.percent)
			began, load := time.Now(), w.retrying(20)
			w.within(2*remedied, "every agent has defragmented its own member", func() bool {
				for _, h := range w.hosts {
					if !h.defragmentedItself() {
						return false
					}
				}
				return true
			})
			t.Logf("three members were defragmented within %.0f s", time.Since(began).Seconds())
			checkReport(t, load)
			for _, h := range w.hosts {
				if size := h.databaseSize(); size > smallQuota/4 {
					t.Errorf("the database of %s still has %d MiB", h.Options.Name, size>>20)
				}
			}
			if w.alarmed() {
				t.Error("etcd has raised an alarm")
			}
			w.equalHashes()
			w.eventually("no operation is left, and three voters", func() bool {
				return w.absent(w.keys().Op()) && w.has(3, 0)
			})
		})
	}
}
