// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// TestRecoveryNeedsASnapshotOfProvenOrAcceptedOrigin covers the records of this host and of others.
func TestRecoveryNeedsASnapshotOfProvenOrAcceptedOrigin(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	sum := func(i int) string { return fmt.Sprintf("%064x", i) }
	recordedBy := func(name string, i int) []recovery.Facts {
		return []recovery.Facts{{Host: "n2"}, {Host: "n3", Manifests: []record.Manifest{
			{Name: name, SHA256: sum(i), Saved: at, Host: "n1"},
		}}}
	}
	for name, c := range map[string]struct {
		origin   record.Origin
		facts    []recovery.Facts
		unproven bool
		want     string // part of the evidence
		refused  string
	}{
		"recorded here":                   {record.OriginRecorded, nil, false, "matches the hash recorded at", ""},
		"replaced, by this host's record": {record.OriginExchanged, nil, true, "", "was replaced in the store"},
		"recorded by another host": {
			record.OriginUnproven, recordedBy("one", 1), false, "according to the record on n3", "",
		},
		"replaced, by another host's record": {
			record.OriginRecorded, recordedBy("one", 2), true, "", "was replaced in the store",
		},
		"recorded by no host": {record.OriginUnproven, recordedBy("two", 1), false, "", "--unproven-origin"},
		"accepted":            {record.OriginUnproven, nil, true, "unproven, because no host has a record of it", ""},
	} {
		s := control.Snapshot{
			Name: "one", SnapshotEvidence: record.SnapshotEvidence{
				ManifestSHA256: sum(1), Origin: c.origin, RecordedAt: &at, RecordedBy: "n1",
			},
		}
		got, err := originOf(s, c.facts, c.unproven)
		if c.refused != "" {
			if f, is := errors.AsType[*failure](err); !is || !strings.Contains(f.message+f.hint, c.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	s := control.Snapshot{Name: "one", TakenAt: at.Add(-time.Hour)}
	if got := newerMissing(s, []control.Snapshot{s}, recordedBy("two", 1)); !strings.Contains(got, "two was saved") {
		t.Errorf("a newer snapshot is missing from the store: %q", got)
	}
	if got := newerMissing(s, []control.Snapshot{s, {Name: "two"}}, recordedBy("two", 1)); got != "" {
		t.Errorf("the newer snapshot is in the store: %q", got)
	}
}
