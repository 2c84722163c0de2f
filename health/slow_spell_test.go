// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// slowMember returns a bench of a member whose disk was fast for ten minutes and then slow for the given time.
func slowMember(t *testing.T, slow time.Duration) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.each(slow, 150*ms)
	b.want(Slow)
	return b
}

func TestASlowDiskReportsAtOnceHowLongItOnceTookToHeal(t *testing.T) {
	t.Parallel()
	b := slowMember(t, 12*time.Minute)
	if b.result.HealsAfter != 0 || b.result.Recovers || !b.result.SlowNow {
		t.Errorf("in its first slow spell: heals after %s, recovers: %t, slow now: %t", b.result.HealsAfter,
			b.result.Recovers, b.result.SlowNow)
	}
	b.each(3*time.Minute, ms)
	b.want(Slow)
	first := b.result.HealsAfter
	if apart := first - 12*time.Minute; max(apart, -apart) > time.Minute || !b.result.Recovers {
		t.Errorf("after a spell of 12 min: heals after %s, recovers: %t", first, b.result.Recovers)
	}
	b.each(5*time.Minute, 150*ms)
	if b.result.HealsAfter != first || b.result.Recovers || !b.result.SlowNow {
		t.Errorf("in a second spell: heals after %s, recovers: %t, slow now: %t", b.result.HealsAfter,
			b.result.Recovers, b.result.SlowNow)
	}
	b.each(3*time.Minute, ms)
	if b.result.HealsAfter != first {
		t.Errorf("two spells of 12 and 5 min count as one of %s", b.result.HealsAfter)
	}
	b.each(13*time.Minute, ms)
	if b.disk() != Warm || b.result.SlowNow || b.result.HealsAfter != 0 {
		t.Errorf("%s 16 min after the last slow write: slow now: %t, heals after %s", b.disk(), b.result.SlowNow,
			b.result.HealsAfter)
	}
}

func TestASlowDiskIsDefectiveIfADriveReportsErrorsOrItIsSlowAllDay(t *testing.T) {
	t.Parallel()
	b := slowMember(t, 3*time.Minute)
	if b.result.Defective {
		t.Error("a disk that is only slow is defective")
	}
	if f := (Finding{Code: DriveHot}); f.ofDefect() {
		t.Error("a hot drive is defective")
	}
	broken := slowMember(t, 3*time.Minute)
	for i := range broken.hardware.Drives.All {
		broken.hardware.Drives.All[i].Failed = true
	}
	broken.each(3*time.Minute, 150*ms)
	if !broken.result.Defective {
		t.Errorf("a slow disk with a drive that reports a failure is not defective: %+v", broken.result.Findings)
	}
	for hour := range slowHours + 1 {
		b.j.compared.history.AddSlow(time.Date(2026, 11, 24, hour, 0, 0, 0, time.UTC), slowCounts)
	}
	if b.look(); !b.result.Defective {
		t.Error("a disk that is slow again and again is not defective")
	}
}

// A single hanging write must not hide how long an earlier slow spell took to end.
func TestAStalledDiskStillReportsHowLongItOnceTookToHeal(t *testing.T) {
	t.Parallel()
	b := slowMember(t, 3*time.Minute)
	b.j.compared.history.AddSlow(b.wall.Add(b.now), 40*time.Minute)
	b.next.InFlight, b.next.InFlightOp = 2*time.Second, "fdatasync"
	b.now += time.Second
	b.look()
	b.want(Stalled)
	if b.result.HealsAfter != 40*time.Minute {
		t.Errorf("heals after %s", b.result.HealsAfter)
	}
}
