// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestRecentCoversTheSpanAtAnyReadingInterval(t *testing.T) {
	t.Parallel()
	const span = 5 * time.Minute
	for _, every := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		var k Recent
		for at := time.Second; at <= 20*time.Minute; at += every {
			h := Histogram{Known: true, Bounds: []float64{1}, Counts: []uint64{uint64(at / time.Second), 0}}
			grown, over := k.Take(at, h, span)
			if seconds := uint64(over / time.Second); grown.Count() != seconds {
				t.Fatalf("every %s, after %s: %d in %s, want %d", every, at, grown.Count(), over, seconds)
			}
			if at > span+every && (over < span || over > span+span/10+every) {
				t.Fatalf("every %s, after %s: span %s", every, at, over)
			}
			if len(k.at) > recentKept {
				t.Fatalf("every %s: %d readings are kept", every, len(k.at))
			}
		}
		restarted := Histogram{Known: true, Bounds: []float64{1}, Counts: []uint64{1, 0}}
		if _, over := k.Take(21*time.Minute, restarted, span); over != 0 {
			t.Errorf("every %s: another etcd is counted since %s", every, over)
		}
	}
}
