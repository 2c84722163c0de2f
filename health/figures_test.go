// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

func TestTheTextMatchesTheTableAndDiscardedSamplesAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	// Direct writes are faster than WAL-like ones; some of the latter look slow because of CPU starvation.
	for range 600 {
		b.now += 500 * time.Millisecond
		b.sample(disk.LaneDirect, ms)
		b.sample(disk.LaneWAL, 3*ms)
		b.contaminated(disk.LaneWAL, 800*ms)
		b.look()
	}
	f := b.result.Figures
	if f.WAL.P99 != 3*ms || f.Direct.P99 != ms {
		t.Errorf("the p99 of the lanes are %s and %s", f.WAL.P99, f.Direct.P99)
	}
	if got, want := fsyncOf(b.j).recentSummary(), "fsync p99 "+show(f.WAL.P99)+
		" over the last 300 writes, limit 10 ms"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	if f.LeftOut != 121 || f.Samples != 363 {
		t.Errorf("%d of %d samples of the last minute are discarded, want 121 of 363", f.LeftOut, f.Samples)
	}
}

func TestTheTableOfAQualifyingRunCoversTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	b.burst(600, 2*ms)
	f := b.result.Figures
	if b.disk() != Qualifying || f.WAL.Count != f.QualifyDone || f.WAL.Count < 600 {
		t.Errorf("%s: %d samples in the table, %d in the run", b.disk(), f.WAL.Count, f.QualifyDone)
	}
	b.hasText("fsync p99 " + show(f.WAL.P99) + " so far")
}
