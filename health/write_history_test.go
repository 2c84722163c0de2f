// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func TestASpellThatEndsByItselfIsLearnedAndAFindingIsNot(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.each(35*time.Second, 3*ms)
	b.each(2*time.Minute, ms)
	if got := b.j.compared.history.Longest(b.wall.Add(b.now), 3); got < 25*time.Second || got > 45*time.Second {
		t.Errorf("35 s were learned as %s", got)
	}
	before, _ := b.j.compared.history.Median()
	minutes := b.j.compared.history.Days[HistoryDays-1].measured()
	b.each(6*time.Hour, 3*ms)
	if _, found := b.slower(); !found {
		t.Fatal("six hours are no finding")
	}
	b.each(20*time.Minute, ms)
	if _, found := b.slower(); found {
		t.Fatal("it did not end")
	}
	if got := b.j.compared.history.Longest(b.wall.Add(b.now-6*time.Hour), 3); got > 70*time.Second {
		t.Errorf("the finding was learned as a habit of %s", got)
	}
	if after, _ := b.j.compared.history.Median(); (after - before).Abs() > 10*time.Microsecond {
		t.Errorf("the usual time rose from %s to %s", before, after)
	}
	if n := b.j.compared.history.Days[HistoryDays-1].measured() - minutes; n > 30 {
		t.Errorf("%d minutes were learned", n)
	}
}

func TestAnImpossibleHistoryIsRefused(t *testing.T) {
	t.Parallel()
	h := historyOf(ms, 3)
	h.AddSpell(time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC), 4, time.Hour)
	data, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeHistory(data)
	if err != nil || back.Longest(time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC), 4) != spellLongest {
		t.Errorf("%v, %+v", err, back)
	}
	for _, bad := range []string{
		`{"version":2}`, `{"version":1,"days":[{"date":1,"tails":-1}]}`, `{"version":1,"days":[{"minutes":{"999":1}}]}`,
		`{"version":1,"days":[{"minutes":{"9":-1}}]}`, `{"version":1,"days":[{"minutes":{"9":99999}}]}`,
		`{"version":1,"days":[{"spells":{"24":{"2":1}}}]}`, `{"version":1,"days":[{"spells":{"1":{"5":1}}}]}`,
		`{"version":1,"days":[{"spells":{"1":{"2":999999}}}]}`, `{"version":1,"days":[{},{},{},{},{},{},{},{},{}]}`,
		`{"version":1,"days":[{"minutes":{"9":NaN}}]}`, `[]`, ``, strings.Repeat(" ", historyBytes+1),
	} {
		if _, err := DecodeHistory([]byte(bad)); err == nil {
			t.Errorf("it reads %.80s", bad)
		}
	}
}

func TestAFindingThatRecursAtOneHourIsAScheduledJob(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) time.Time { return time.Date(2026, 11, 16+day, hour, 0, 0, 0, time.UTC) }
	h := historyOf(ms, 0)
	add := func(day, hour int) { addSpell(&h.Days[day].Found, at(day, hour), 8, 30*time.Minute) }
	add(1, 3)
	add(2, 4)
	if got := h.Longest(at(8, 3), 8); got != 0 {
		t.Errorf("after two days: %s", got)
	}
	add(5, 3)
	if got := h.Longest(at(8, 3), 8); got != 30*time.Minute {
		t.Errorf("after three days: %s", got)
	}
	if got := h.Longest(at(8, 9), 8); got != 0 {
		t.Errorf("at another hour: %s", got)
	}
	for hour := range 24 { // a disk that is slow for half of each hour
		for day := range HistoryDays {
			add(day, hour)
		}
	}
	if got := h.Longest(at(8, 3), 8); got != 0 {
		t.Errorf("a flapping disk has the habit %s", got)
	}
}

func TestTodaysOwnFindingIsNoScheduledJob(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	for complete := range 3 {
		h := History{Days: make([]Day, complete+1)}
		addSpell(&h.Days[complete].Found, at, 8, 30*time.Minute)
		if got := h.Longest(at, 8); got != 0 {
			t.Errorf("after %d complete days: %s", complete, got)
		}
		for i := range complete {
			addSpell(&h.Days[i].Found, at, 8, 20*time.Minute)
		}
		if got := h.Longest(at, 8); complete > 0 && got != 20*time.Minute {
			t.Errorf("after %d complete days with such findings: %s", complete, got)
		}
	}
}

func TestAClockThatJumpsForgetsNoDay(t *testing.T) {
	t.Parallel()
	h := historyOf(ms, 0)
	for i := range 1000 {
		h.Add(time.Unix(int64(i%7)*1e9, 0), 50*ms, 60*ms)
	}
	if median, ready := h.Median(); !ready || median > 2*ms || len(h.Days) != HistoryDays {
		t.Errorf("after a thousand jumps: %s, %v, %d days", median, ready, len(h.Days))
	}
}

func TestALoadThatAllVotersShareTeachesNoHabit(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.answering(10*time.Minute, 8*ms, 8*ms)
	for _, rung := range Rungs() {
		if got := b.j.compared.history.Longest(b.j.compared.wall, rung); got != 0 {
			t.Errorf("%d×: a habit of %s", rung, got)
		}
	}
}

func TestAHistoryBelongsToItsDisks(t *testing.T) {
	t.Parallel()
	h := historyOf(ms, 0)
	h = h.Of([]string{"a", "b"})
	for name, c := range map[string]struct {
		disks []string
		kept  bool
	}{
		"the same":     {[]string{"a", "b"}, true},
		"one replaced": {[]string{"b", "c"}, true},
		"unknown":      {nil, true},
		"all replaced": {[]string{"c"}, false},
	} {
		if got := h.Of(c.disks); len(got.Days) > 0 != c.kept {
			t.Errorf("%s: %d days are left", name, len(got.Days))
		}
	}
	b := compared(t, ms)
	b.j.UseHistory(h)
	b.j.compared.identify(DevicesReading{Chain: []Device{{Name: "sda", WWID: "naa.5000c500a1b2c3d4"}}})
	if b.j.compared.usual != 0 {
		t.Errorf("after a change of drives a write usually takes %s", b.j.compared.usual)
	}
}

func TestASlowSpellThatHealedIsRememberedUnlessItComesAllDay(t *testing.T) {
	t.Parallel()
	h := historyOf(ms, 0)
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	h.AddSlow(at(3), 20*time.Minute)
	h.AddSlow(at(9), scheduleLongest+time.Second)
	if got := h.LongestSlow(); got != 20*time.Minute {
		t.Errorf("got %s", got)
	}
	for hour := range 24 {
		h.AddSlow(at(hour), slowCounts-time.Second)
	}
	for hour := range slowHours {
		h.AddSlow(at(hour), 15*time.Minute)
	}
	if got := h.LongestSlow(); got != 20*time.Minute || h.RecursSlow() {
		t.Errorf("a disk that is slow for long in eight hours of a day: %s, broken: %t", got, h.RecursSlow())
	}
	h.AddSlow(at(slowHours), slowCounts)
	if got := h.LongestSlow(); got != 0 || !h.RecursSlow() {
		t.Errorf("a disk that is slow for long in nine hours of a day: %s, broken: %t", got, h.RecursSlow())
	}
}
