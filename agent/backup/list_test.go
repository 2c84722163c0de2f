// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestNewestSnapshotBelongsToTheClusterThatSavedLast(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	one := func(cluster string, revision int64, taken time.Duration) Snapshot {
		name := fmt.Sprint(cluster, revision)
		return Snapshot{Manifest: Manifest{
			Name: name, ClusterID: cluster, TakenAt: noon.Add(taken), Contents: record.Contents{Revision: revision},
		}}
	}
	ahead := 1000 * time.Hour
	for name, c := range map[string]struct {
		all  []Snapshot
		want string
	}{
		"of one cluster by revision, whatever its clocks say": {
			[]Snapshot{one("a", 1, 3*time.Hour), one("a", 2, ahead), one("a", 3, -ahead)}, "a3 a2 a1",
		},
		"of a rebuilt cluster": {
			[]Snapshot{one("a", 900, 0), one("a", 800, time.Hour), one("b", 5, 2*time.Hour), one("b", 6, 3*time.Hour)},
			"b6 b5 a900 a800",
		},
		"even if the old one's clock was ahead": {
			[]Snapshot{one("a", 900, ahead), one("b", 5, 5*time.Hour)}, "b5 a900",
		},
	} {
		// the store receives each snapshot an hour after the previous one
		stored := map[string]time.Time{}
		for i, s := range c.all {
			stored[s.Name] = noon.Add(time.Duration(i+1) * time.Hour)
		}
		sortNewest(c.all, func(s Snapshot) time.Time { return stored[s.Name] })
		var got []string
		for _, s := range c.all {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
