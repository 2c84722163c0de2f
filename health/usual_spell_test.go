// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// withBackup returns a bench of an HDD whose history contains a spell at this hour: for half an hour, writes took eight
// times the usual time.
func withBackup(t *testing.T) *bench {
	t.Helper()
	b := compared(t, 14*ms)
	for _, rung := range Rungs() {
		if rung <= 8 {
			b.j.compared.history.AddSpell(b.wall.Add(b.now), rung, 30*time.Minute)
		}
	}
	b.j.compared.learned()
	return b
}

func TestAUsualSpellIsHabitualUntilItsSlowWritesNoLongerCount(t *testing.T) {
	t.Parallel()
	b := withBackup(t)
	b.each(25*time.Minute, 115*ms)
	b.want(Slow)
	if !b.result.Habitual || !b.result.SlowNow {
		t.Errorf("in the spell: habitual: %t, slow now: %t", b.result.Habitual, b.result.SlowNow)
	}
	for range 10 {
		b.each(30*time.Second, 14*ms)
		if b.result.SlowNow && !b.result.Habitual {
			t.Error("after the spell its writes count as unusual")
		}
	}
	if b.result.Habitual {
		t.Error("five minutes after the spell it is still habitual")
	}
}

func TestASpellIsUsualAtTheHourInWhichItBegan(t *testing.T) {
	t.Parallel()
	b := compared(t, 14*ms)
	early := b.wall.Add(b.now).Truncate(time.Hour).Add(10 * time.Minute)
	b.wall = early.Add(-b.now) // the spell begins early in its hour, and lasts into the second hour after that
	for _, rung := range Rungs() {
		if rung <= 8 {
			for day := range 3 {
				addSpell(&b.j.compared.history.Days[day].Found, early.Add(-50*time.Minute), rung, 110*time.Minute)
			}
		}
	}
	b.j.compared.learned()
	if b.each(115*time.Minute, 115*ms); !b.result.Habitual {
		t.Errorf("in its second hour: %s, habitual: %t", b.disk(), b.result.Habitual)
	}
}

func TestASlowSpellThatThePastDoesNotExplainIsNotHabitual(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ span, latency time.Duration }{
		"it lasts longer":                {50 * time.Minute, 115 * ms},
		"its writes take longer":         {5 * time.Minute, 240 * ms},
		"its writes take half a second":  {5 * time.Minute, 510 * ms},
		"it is not slower than at usual": {5 * time.Minute, 14 * ms},
	} {
		b := withBackup(t)
		if b.each(c.span, c.latency); b.result.Habitual {
			t.Errorf("%s: habitual", name)
		}
	}
	worst := compared(t, ms)
	for _, rung := range Rungs() {
		worst.j.compared.history.AddSpell(worst.wall.Add(worst.now), rung, 30*time.Minute)
	}
	worst.j.compared.learned()
	if worst.each(5*time.Minute, 400*ms); worst.result.Habitual {
		t.Error("a habit of 32 times explains 400 times")
	}
	b := compared(t, 14*ms)
	if b.each(5*time.Minute, 115*ms); b.result.Habitual || b.disk() != Slow {
		t.Errorf("without such a habit: %s, habitual: %t", b.disk(), b.result.Habitual)
	}
}

// The writes of a slow spell are not slow episodes, which are a sign of a disk that is otherwise fast.
func TestASlowSpellIsOneSlowEpisodeAtMost(t *testing.T) {
	t.Parallel()
	b := withBackup(t)
	for range 20 {
		b.each(30*time.Second, 115*ms)
		b.each(30*time.Second, 90*ms)
	}
	if n := b.result.Writes.Tails; n > 2 {
		t.Errorf("%d slow episodes", n)
	}
}

// After a slow write the probe rests, so a few slow writes can be a tenth of the writes of the last 40 s.
func TestAFewSlowWritesDoNotRaiseTheComparedPercentile(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.each(10*time.Minute, ms)
	b.each(5*time.Second, 150*ms)
	if w := b.result.Writes; b.result.State == OK || w.P90 != 150*ms || w.LeastP90 != ms {
		t.Errorf("%s, 90th percentile %s, the lower one %s", b.result.State, w.P90, w.LeastP90)
	}
	if b.each(time.Minute, 150*ms); b.result.Writes.LeastP90 != 150*ms {
		t.Errorf("after a minute it is %s", b.result.Writes.LeastP90)
	}
}

func TestOnlyUnusuallyManySlowEpisodesAreCompared(t *testing.T) {
	t.Parallel()
	for usual, counts := range map[int]bool{0: true, 48: false} { // usual is a number of slow episodes a day
		b := compared(t, ms)
		b.j.UseHistory(historyOf(ms, usual))
		for range tailsFewest {
			b.each(time.Second, 200*ms)
			b.each(time.Minute, ms)
		}
		if w := b.result.Writes; w.Tails != tailsFewest || (w.LeastTails == w.Tails) != counts {
			t.Errorf("%d a day are usual: %d episodes, %d compared", usual, w.Tails, w.LeastTails)
		}
	}
}

func TestADiskIsAsUsualUnlessItsMedianOrItsSlowestTenthIsSlower(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		young  bool
		own    []time.Duration
		expect bool
	}{
		"three slow writes in a row":           {false, []time.Duration{ms}, true},
		"a median twice as long":               {false, []time.Duration{2 * ms}, false},
		"one slow write in seven":              {false, tenthSlow(ms), false},
		"nothing but a past that is too short": {true, []time.Duration{ms}, false},
	} {
		b := compared(t, ms)
		for day := range b.j.compared.history.Days {
			b.j.compared.history.Days[day].Tenths = map[int]int{bucketOf(2 * ms): dayFewest}
		}
		if c.young {
			b.j.compared.history.Days = b.j.compared.history.Days[1:]
		}
		b.answering(6*time.Minute, ms, c.own...)
		if b.each(3*time.Second, 150*ms); b.disk() == OK || b.result.AsUsual != c.expect {
			t.Errorf("%s: %s, as usual: %t", name, b.disk(), b.result.AsUsual)
		}
	}
}

func TestItIsUrgentWhileHalfOfTheNewestWritesAreNoticeablySlow(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	for _, c := range []struct {
		span, latency time.Duration
		urgent        bool
	}{
		{20 * time.Second, 9 * ms, false},
		{9 * time.Second, 12 * ms, false},
		{12 * time.Second, 12 * ms, true},
		{9 * time.Second, ms, true},
		{12 * time.Second, ms, false},
	} {
		if b.each(c.span, c.latency); b.result.Urgent != c.urgent {
			t.Errorf("after %s of writes that take %s: urgent: %t", c.span, c.latency, b.result.Urgent)
		}
	}
	hdd := compared(t, 14*ms)
	if hdd.each(time.Minute, 26*ms); hdd.result.Urgent {
		t.Error("an HDD that is less than twice as slow as usual is urgent")
	}
	if hdd.each(time.Minute, 30*ms); !hdd.result.Urgent {
		t.Error("an HDD that is more than twice as slow as usual is not urgent")
	}
}

func TestAWarmDiskRecoversOnceItsWritesHaveBeenFastForMinutes(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	if _, found := b.untilSlower(time.Minute, 8*ms); !found || b.result.Recovers {
		t.Fatalf("found: %t, recovers: %t", found, b.result.Recovers)
	}
	b.j.compared.track.remember(OK, b.now) // so that the finding lasts ten minutes
	fast := time.Duration(0)
	for ; b.result.State == Warm && !b.result.Recovers; fast += time.Second {
		b.each(time.Second, ms)
	}
	if b.result.State != Warm || fast < warmRecovers {
		t.Errorf("%s after %s, recovers: %t", b.result.State, fast, b.result.Recovers)
	}
	if b.each(time.Minute, 8*ms); b.result.Recovers {
		t.Error("it recovers while its writes are slow again")
	}
}

func TestAFindingIsAScheduledJobSoonerInAYoungHistory(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]int{2: 1, 3: 2, 4: 3, HistoryDays: scheduleDays} {
		h := historyOf(ms, 0)
		h.Days = h.Days[HistoryDays-days:]
		at := func(day int) time.Time { return time.Date(2026, 11, 16+day, 3, 0, 0, 0, time.UTC) }
		for n := range want {
			if got := h.Longest(at(days), 8); got != 0 {
				t.Errorf("%d days, findings on %d: %s", days, n, got)
			}
			addSpell(&h.Days[n].Found, at(n), 8, 30*time.Minute)
		}
		if got := h.Longest(at(days), 8); got != 30*time.Minute {
			t.Errorf("%d days, findings on %d: %s", days, want, got)
		}
	}
}
