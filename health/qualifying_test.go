// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

func TestAQualifyingRunMustBeWithinEachLimit(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		slow  int
		took  time.Duration
		fits  bool
		words string
	}{
		"p99 under its limit":      {30, 10 * ms, true, ""},
		"p99 at its limit":         {31, 10 * ms, false, "fsync p99 10 ms over 3000 WAL-like writes, limit 10 ms"},
		"p99.9 under its limit":    {3, 50 * ms, true, ""},
		"p99.9 at its limit":       {4, 50 * ms, false, "fsync p99.9 50 ms over 3000 WAL-like writes, limit 50 ms"},
		"the slowest at its limit": {1, 500 * ms, true, ""},
		"the slowest over it": {
			1, 500*ms + 1, false,
			"fsync maximum 500 ms over 3000 WAL-like writes, limit 500 ms",
		},
		"all far too slow": {3000, 48 * ms, false, "fsync p99 48 ms over 3000 WAL-like writes, limit 10 ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, DefaultThresholds())
			b.each(time.Second, ms)
			b.burst(run.slow, run.took)
			b.burst(3000-run.slow, ms)
			if fits := b.disk() == OK && b.result.Qualified; fits != run.fits {
				t.Fatalf("the run passes is %v: %s", fits, b.result.Text)
			}
			b.hasText(run.words)
			if !run.fits && (b.result.State != Qualifying || b.result.Code != DiskUnfit) {
				t.Errorf("it did not pass and is %s %s", b.result.State, b.result.Code)
			}
		})
	}
}

func TestARunThatFailedPassesOnceTheDiskHasRecovered(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	b.burst(1234, 48*ms)
	b.hasText("1234 of 3000 WAL-like writes measured, fsync p99 48 ms so far, limit 10 ms")
	if f := b.result.Figures; f.QualifyDone != 1234 || f.QualifyNeed != 3000 {
		t.Errorf("progress is %d of %d", f.QualifyDone, f.QualifyNeed)
	}
	b.burst(1766, 48*ms)
	b.burst(2969, ms) // 31 slow writes are left in the run
	b.want(Qualifying)
	b.burst(50, ms)
	b.want(OK)
	if !b.result.Qualified {
		t.Error("not qualified")
	}
}

func TestARunWithSlowLastWritesDoesNotPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	b.burst(2989, ms)
	b.burst(11, 11*ms) // p99 of all is 1 ms, yet the latest are a sign of WARM
	b.want(Qualifying)
	b.hasText("11 of the last 300 writes took longer than 10 ms, limit 10")
	b.burst(300, ms)
	b.want(OK)
}

func TestContaminatedSamplesDoNotCountInTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	b.burst(1000, ms)
	for range 310 {
		b.contaminated(disk.LaneWAL, ms)
	}
	b.look()
	b.hasText("1000 of 3000 WAL-like writes measured, fsync p99 1 ms so far, limit 10 ms; 310 discarded because of " +
		"CPU starvation")
}

func TestTheDirectLaneAloneDoesNotQualify(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.pass(5000*time.Second, ms)
	b.want(Qualifying)
	b.hasText("0 of 3000")
}

func TestQualifiedOutlastsWarmAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		by   func(b *bench)
		kept bool
	}{
		"WARM":    {func(b *bench) { b.warm() }, true},
		"OK":      {func(b *bench) { b.warm(); b.until(OK, time.Hour) }, true},
		"SLOW":    {func(b *bench) { b.warm(); b.each(2*time.Second, 600*ms); b.want(Slow) }, false},
		"STALLED": {func(b *bench) { b.next.InFlight = 2 * time.Second; b.look() }, false},
		"silence": {func(b *bench) { b.now += time.Minute; b.look() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := spare(t)
			end.by(b)
			if b.result.Qualified != end.kept {
				t.Errorf("%s: qualified is %v", b.disk(), b.result.Qualified)
			}
		})
	}
}
