// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// member returns a bench whose host has a member and is OK.
func member(t *testing.T) *bench {
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(300*time.Second, ms)
	b.want(OK)
	return b
}

// spare returns a bench whose host has no member and has passed its qualifying run.
func spare(t *testing.T) *bench {
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	b.burst(3000, ms)
	b.want(OK)
	if !b.result.Qualified {
		t.Fatal("not qualified")
	}
	return b
}

// warm makes the disk of a member WARM.
func (b *bench) warm() {
	b.each(11*time.Second, 20*ms)
	b.want(Warm)
}

func (b *bench) hasText(part string) {
	b.t.Helper()
	if !strings.Contains(b.result.Text, part) {
		b.t.Errorf("the text is %q, want %q in it", b.result.Text, part)
	}
}

// until lets seconds pass with one good sample each until the disk has the state, and returns how long it took.
func (b *bench) until(s State, limit time.Duration) time.Duration {
	b.t.Helper()
	from := b.now
	for b.disk() != s {
		if b.now-from >= limit {
			b.t.Fatalf("after %s the disk is still %s: %s", limit, b.disk(), fsyncOf(b.j).text())
		}
		b.each(time.Second, ms)
	}
	return b.now - from
}

func TestTheFirstStateIsUnknownWithItsProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.look()
	if b.result.State != Unknown || b.result.Code != DiskGathering || b.result.Qualified {
		t.Errorf("first: %+v", b.result)
	}
	b.each(42*time.Second, ms)
	b.hasText("42 of 300 samples gathered")
}

func TestARestingProbeIsNotSilent(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.NextIn = 20 * time.Second
	b.look()
	b.next.NextIn = 0
	b.now += 25 * time.Second
	b.look()
	b.want(OK)
	b.now++
	b.look()
	b.want(Unknown)
	b.hasText("no sample for 25 s; one is due every 1 s")
}

func TestAProbeThatCannotWriteIsSilentDespiteRetries(t *testing.T) {
	t.Parallel()
	b := member(t)
	for range 6 {
		b.now += time.Second
		b.next.Alive, b.next.NextIn, b.next.Err = true, time.Second, &DiskError{"wal write+sync", syscall.ENOSPC, b.now}
		b.look()
	}
	b.want(Unknown)
	b.hasText("no sample for 6 s; one is due every 1 s; wal write+sync: no space left on device")
	b.next.Err.At = b.now - time.Second // one write fails, the next succeeds
	b.each(300*time.Second, ms)
	b.want(OK)
}

func TestAWriteInFlightIsNotSilence(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.now += time.Minute
	b.next.InFlight = 900 * ms
	b.look()
	b.want(OK)
}

func TestSilenceReportsTheProbesError(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.now += 34 * time.Second
	b.next.Alive, b.next.Err = false, &DiskError{"open directory", syscall.EACCES, b.now}
	b.look()
	b.want(Unknown)
	b.hasText("no sample for 34 s; one is due every 1 s; the probe is not running; open directory: permission denied")
	if b.result.Code != DiskProbeDown || b.result.Remedy == "" {
		t.Errorf("code %s, remedy %q", b.result.Code, b.result.Remedy)
	}
}

func TestAfterSilenceOldSamplesDoNotCount(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.now += time.Minute
	b.look()
	b.each(299*time.Second, ms)
	b.want(Unknown)
	b.each(time.Second, ms)
	b.want(OK)
}

func TestSilenceDoesNotMakeAWarmDiskOK(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.now += time.Minute
	b.look()
	b.want(Unknown)
	b.each(299*time.Second, 6*ms) // over FsyncClear, so the disk would not have left WARM
	b.each(time.Second, 6*ms)
	b.want(Warm)
}

func TestASlowDiskDoesNotRecoverWithoutData(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.each(5*time.Second, 200*ms)
	b.want(Slow)
	for range 3600 {
		b.now += time.Second
		b.look()
	}
	b.want(Slow)
	b.hasText("no sample for 60 min, so this may be stale")
	b.each(15*time.Minute-time.Second, ms)
	b.want(Slow)
	b.each(time.Second, ms)
	b.want(Warm)
}

func TestASlowSampleOrMissingDataRestartsTheCleanTime(t *testing.T) {
	t.Parallel()
	for name, against := range map[string]func(b *bench){
		"a slow sample":                 func(b *bench) { b.each(time.Second, 100*ms) },
		"a slow write in flight":        func(b *bench) { b.next.InFlight = 100 * ms; b.look(); b.next.InFlight = 0 },
		"a minute without samples":      func(b *bench) { b.now += time.Minute; b.look() },
		"only contaminated for a while": func(b *bench) { b.spoil(5*time.Minute + time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := member(t)
			b.put(b.j.checks[0], Slow)
			b.each(time.Second, 100*ms)
			b.each(9*time.Minute, ms)
			against(b)
			if took := b.until(Warm, time.Hour); took != 15*time.Minute {
				t.Errorf("it took %s after that, want 15 min", took)
			}
		})
	}
}

func TestTheMemoryOfAJudgeIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Second, ms)
	for range 2 {
		for range samplesKept {
			b.sample(disk.LaneWAL, quiet+quiet)
		}
		b.now += time.Second
		b.look()
	}
	f := fsyncOf(b.j)
	if len(f.recent) != samplesKept || len(f.run) != 3000 || len(f.lanes[disk.LaneWAL]) != 300 {
		t.Errorf("it keeps %d, %d of the run, %d of the lane", len(f.recent), len(f.run), len(f.lanes[disk.LaneWAL]))
	}
	b.now += 2 * time.Minute
	b.sample(disk.LaneWAL, ms)
	b.look()
	b.sample(disk.LaneWAL, ms)
	b.look()
	if len(f.recent) > 900 {
		t.Errorf("two minutes later it still keeps %d", len(f.recent))
	}
}

func TestFewSamplesOverALongTimeAreNoRecovery(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.DirectInterval = 10 * time.Second
	b := newBench(t, limits)
	b.member = true
	b.put(b.j.checks[0], Slow)
	for range 299 {
		b.now += 10 * time.Second
		b.sample(disk.LaneDirect, ms)
		b.look()
	}
	b.want(Slow)
	b.now += 10 * time.Second
	b.sample(disk.LaneDirect, ms)
	b.look()
	b.want(Warm)
}

func TestTheSlowScoreKeepsADiskSlowUntilItHasFallen(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.put(b.j.checks[0], Slow)
	fsyncOf(b.j).dirty = 0
	fsyncOf(b.j).score.value = 100
	b.each(290*time.Second, ms) // 29 or 30 clean rounds of 3.3 points
	b.want(Slow)
	b.each(20*time.Second, ms)
	b.want(Warm)
}

func TestTheDirectLaneMustBeCalmBeforeADiskIsOK(t *testing.T) {
	t.Parallel()
	for last, want := range map[time.Duration]time.Duration{25 * ms: 17 * time.Second, 25*ms - 1: 8 * time.Second} {
		b := member(t)
		b.warm()
		b.each(290*time.Second, ms)
		b.each(time.Second, last)
		if took := b.until(OK, time.Hour); took != want {
			t.Errorf("after a sample of %s it took %s until OK, want %s", last, took, want)
		}
	}
}

func TestAStallIsFoundWhileItLastsAndEndsAsSlow(t *testing.T) {
	t.Parallel()
	b := spare(t)
	b.now += 2 * time.Second
	b.next.InFlight, b.next.InFlightOp = 2*time.Second, "wal write+sync"
	b.look()
	b.want(Stalled)
	b.hasText("wal write+sync in flight for 2 s, limit 1 s")
	b.now += 10 * time.Second
	b.next.InFlight += 10 * time.Second
	b.look()
	b.hasText("wal write+sync in flight for 12 s, limit 1 s")
	b.now += time.Second
	b.next.InFlight = 0
	b.sample(disk.LaneWAL, 12500*ms)
	b.look()
	b.want(Slow)
	b.each(15*time.Minute-time.Second, ms)
	b.want(Slow)
	b.each(time.Second, ms)
	b.want(Qualifying) // not WARM: the host has no member, and its disk is no longer qualified
}

func TestAStallThatReturnsAnErrorIsOver(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.InFlight = 2 * time.Second
	b.look()
	b.want(Stalled)
	b.now += time.Second
	b.next.InFlight, b.next.Err = 0, &DiskError{"wal write+sync", syscall.ENOSPC, b.now}
	b.look()
	b.want(Slow)
}

func TestAProbeThatVanishesDuringAStallDoesNotEndIt(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.InFlight = 2 * time.Second
	b.look()
	b.next.InFlight, b.next.Alive = 0, false
	b.now += time.Minute
	b.look()
	b.want(Stalled)
	b.hasText("so this may be stale")
}

// The probe of a restarted agent is refused while the hanging probe of the previous agent holds the lock.
func TestAStallIsNotOverBecauseAnotherProbeIsRefused(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.InFlight = 2 * time.Second
	b.look()
	b.now += time.Minute
	b.next.InFlight, b.next.Err = 0, &DiskError{"lock", syscall.EWOULDBLOCK, b.now}
	b.look()
	b.want(Stalled)
	b.hasText("so this may be stale")
}

func TestOnlyErrorsOfABrokenDiskMeanFailed(t *testing.T) {
	t.Parallel()
	broken := []syscall.Errno{
		syscall.EIO, syscall.EROFS, syscall.EBADMSG, syscall.EUCLEAN, syscall.ESHUTDOWN, syscall.ENODEV, syscall.ENXIO,
		syscall.ENODATA, syscall.EREMOTEIO, syscall.EILSEQ, syscall.ENOLINK, syscall.ETIMEDOUT,
	}
	for errno := syscall.Errno(1); errno < 134; errno++ {
		b := newBench(t, DefaultThresholds())
		b.next.Err = &DiskError{"direct write+sync", errno, b.now}
		b.look()
		if failed := b.disk() == Failed; failed != slices.Contains(broken, errno) {
			t.Errorf("%s: failed is %v", errno, failed)
		}
	}
	b := member(t)
	b.next.Err = &DiskError{"direct verify", syscall.EBADMSG, b.now}
	b.look()
	b.hasText("direct verify: read back different data from what was written")
}

func TestFailedLastsUntilResetAndAnOldErrorDoesNotCountAgain(t *testing.T) {
	t.Parallel()
	b := member(t)
	if err := b.j.Reset(); err == nil || !strings.HasPrefix(err.Error(), "cannot reset: ") {
		t.Errorf("with nothing to reset: %v", err)
	}
	b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
	b.pass(3*time.Hour, ms)
	b.want(Failed)
	if err := b.j.Reset(); err != nil {
		t.Fatal(err)
	}
	b.next.Err.At = b.now // at the time of the reset
	b.look()
	b.want(Qualifying)
	b.each(300*time.Second, ms)
	b.want(OK)
	if b.result.Qualified {
		t.Error("qualified without a run")
	}
	b.now += time.Second
	b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
	b.look()
	b.want(Failed)
}

func TestAResetWhileTheWriteStillHangsEndsInFailedAgain(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.InFlight = 31 * time.Second
	b.look()
	b.want(Failed)
	if err := b.j.Reset(); err != nil {
		t.Fatal(err)
	}
	var way []State
	for _, c := range b.look() {
		way = append(way, c.To)
	}
	if !slices.Equal(way, []State{Qualifying, Stalled, Failed}) {
		t.Errorf("states after the reset: %v", way)
	}
}

func TestSlowSamplesDuringCPUStarvationDoNotBlameTheDisk(t *testing.T) {
	t.Parallel()
	b := member(t)
	for i := range 120 {
		b.now += time.Second
		if i%2 == 0 {
			b.contaminated(disk.LaneDirect, 900*ms)
		} else {
			b.sample(disk.LaneDirect, ms)
		}
		b.look()
		b.want(OK)
	}
	if b.result.State != Warm || b.result.Code != CPUStarved || b.result.Findings[0].Component != Machine {
		t.Errorf("got %s %s", b.result.State, b.result.Code)
	}
	b.hasText("CPU starvation contaminated 30 of the last 61 samples, limit 20 %")
}

func TestTheWALLaneAloneDoesNotMakeAWarmDiskOK(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	for range 1000 {
		b.now += time.Second
		b.sample(disk.LaneWAL, ms)
		b.look()
	}
	b.want(Warm)
	b.until(OK, 2*time.Second)
}

func TestFreeSpaceMayBeUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member, b.next.Total = true, 0
	b.each(300*time.Second, ms)
	b.want(OK)
	if b.result.State != Unknown || b.result.Code != DiskSpaceUnknown {
		t.Errorf("got %s %s", b.result.State, b.result.Code)
	}
	b.hasText("free space unknown")
}

func TestCPUStarvationEndsAtTenPercentOfTenSamples(t *testing.T) {
	t.Parallel()
	for bad, want := range map[int]State{1: OK, 2: Warm} {
		b := member(t)
		cpuOf(b.j).lastBad = b.now
		b.put(b.j.checks[2], Warm)
		for i := range 40 { // one every 6.1 s is ten in the minute
			b.now += 6100 * ms
			b.pending = []disk.Sample{{End: b.now, Latency: ms, Contaminated: i%10 < bad}}
			b.look()
		}
		if got := cpuOf(b.j).track.State; got != want {
			t.Errorf("with %d of ten: %s", bad, got)
		}
	}
	b := member(t)
	cpuOf(b.j).recent, cpuOf(b.j).lastBad = nil, b.now
	b.put(b.j.checks[2], Warm)
	for range 40 { // one every 7 s is nine
		b.now += 7 * time.Second
		b.sample(disk.LaneDirect, ms)
		b.look()
	}
	if got := cpuOf(b.j).track.State; got != Warm {
		t.Errorf("with nine samples in the minute: %s", got)
	}
}

func TestTheFirstMinuteShowsNoCPUStarvation(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.spoil(60 * time.Second)
	if cpuOf(b.j).track.State != OK {
		t.Errorf("after 60 s: %s", cpuOf(b.j).track.State)
	}
	b.spoil(time.Second)
	if cpuOf(b.j).track.State != Warm {
		t.Errorf("after 61 s: %s", cpuOf(b.j).track.State)
	}
}

func TestFindingsAreWorstFirstAndTheWorstIsTheHealth(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.Free = 100 << 20
	b.look()
	since := b.now
	b.each(10*time.Second, ms)
	if b.result.State != Warm || b.result.Code != DiskSpaceLow || b.result.Since != since {
		t.Errorf("got %+v", b.result)
	}
	b.hasText("100 MiB free, limit 1 GiB")
	b.next.InFlight = 2 * time.Second
	b.look()
	if len(b.result.Findings) != 2 || b.result.Code != DiskStalled || b.result.Findings[1].Code != DiskSpaceLow ||
		b.result.Since != b.now {
		t.Errorf("got %+v", b.result)
	}
}

func TestTheFiguresCoverTheWindow(t *testing.T) {
	t.Parallel()
	b := member(t)
	for i := range 400 {
		b.now += time.Second
		b.sample(disk.LaneWAL, time.Duration(i+1)*10*time.Microsecond)
		b.contaminated(disk.LaneWAL, time.Hour)
	}
	b.next.InFlight, b.next.InFlightOp = 20*ms, "statfs"
	b.now += 3 * time.Second
	b.look()
	f := b.result.Figures
	want := LaneFigures{
		Count: 300, P50: 2500 * time.Microsecond, P99: 3970 * time.Microsecond, Max: 4 * ms,
		Age: 3 * time.Second, Span: 299 * time.Second,
	}
	if f.WAL != want {
		t.Errorf("the WAL lane has %+v, want %+v", f.WAL, want)
	}
	if f.Direct.Count != 300 || f.Direct.Age != 403*time.Second || f.Direct.Max != ms {
		t.Errorf("the direct lane has %+v", f.Direct)
	}
	if f.Age != 3*time.Second || f.InFlight != 20*ms || f.InFlightOp != "statfs" || f.Limit != 10*ms || f.Score != 1 ||
		f.Contaminated < 45 || f.QualifyNeed != 0 {
		t.Errorf("the figures are %+v", f)
	}
}

func TestImplausibleReadingsDoNoHarm(t *testing.T) {
	t.Parallel()
	b := member(t)
	now := b.now
	b.now -= time.Hour // a clock that goes backwards
	b.sample(disk.LaneDirect, -time.Second)
	b.look()
	b.now = now
	b.pending = []disk.Sample{
		{Lane: 7, End: now, Latency: time.Hour},
		{End: now + time.Hour, Latency: ms},
		{End: -1, Latency: ms},
	}
	b.next.InFlight, b.next.LastCompletion, b.next.UsageAge = -time.Hour, now+time.Hour, -1
	b.look()
	b.want(OK)
	b.next.InFlight = 2 * time.Second
	b.now += time.Second
	b.next.LastCompletion = now
	b.look()
	b.want(Stalled) // a completion in the future would have shown that the disk works
}
