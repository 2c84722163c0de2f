// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

// A disk that always exceeds the recommended limit must not make the other voters publish all day.
func TestADiskThatIsAsFastAsTheOthersSoonStopsAsking(t *testing.T) {
	t.Parallel()
	b := compared(t, 14*ms)
	b.j.compared.agreedAt = 0
	asked := 0
	for range 40 {
		b.answering(time.Minute, 14*ms, 14*ms)
		if b.result.AsksPeers {
			asked++
		}
	}
	if asked == 0 || asked > 10 {
		t.Errorf("it asked in %d of 40 minutes", asked)
	}
	if b.result.State != OK || !slices.ContainsFunc(b.result.Findings, func(f Finding) bool {
		return f.Code == DiskSlowAsPeers
	}) {
		t.Errorf("got %s %+v", b.result.State, b.result.Findings)
	}
}

// habitually returns a bench of a host whose history contains a spell at this hour: for four minutes, writes took four
// times the usual time.
func habitually(t *testing.T) *bench {
	t.Helper()
	b := compared(t, 4*ms)
	b.peers = peersAt(0, 0) // no other voter answers
	for _, rung := range []int{2, 3, 4} {
		b.j.compared.history.AddSpell(b.wall.Add(b.now), rung, 4*time.Minute)
	}
	b.j.compared.learned()
	b.each(10*time.Minute, 4*ms) // the host no longer asks
	b.j.compared.agreedAt = 0
	return b
}

func TestAHabitualSpellNeitherAsksNorCountsAsSlowLater(t *testing.T) {
	t.Parallel()
	b := habitually(t)
	for range 20 {
		b.each(12*time.Second, 20*ms)
		if b.result.State != OK || b.result.AsksPeers {
			t.Fatalf("in the habitual spell: %s, asks: %t", b.result.State, b.result.AsksPeers)
		}
	}
	for range 20 {
		b.each(time.Minute, 4*ms)
		if b.result.State != OK || b.result.AsksPeers {
			t.Fatalf("after the habitual spell: %s %s, asks: %t", b.result.State, b.result.Text, b.result.AsksPeers)
		}
	}
}

func TestASpellThatOutlastsTheHabitCounts(t *testing.T) {
	t.Parallel()
	b := habitually(t)
	b.each(8*time.Minute, 20*ms)
	if b.result.State != Warm {
		t.Errorf("after 8 min, twice as long as usual: %s", b.result.State)
	}
}

func TestAHabitCoversTheNextHigherMultiple(t *testing.T) {
	t.Parallel()
	var h History
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	h.AddSpell(at, 3, 4*time.Minute)
	for rung, want := range map[int]time.Duration{2: 0, 3: 4 * time.Minute, 4: 4 * time.Minute, 6: 0} {
		if got := h.Longest(at, rung); got != want {
			t.Errorf("at %d times the usual: %s, want %s", rung, got, want)
		}
	}
}

func TestADiskThatIsSlowAsEverAsksNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(b *bench)
		rest   time.Duration
		warm   bool
	}{
		{"as slow as in the last week", func(*bench) {}, 4 * ms, false},
		{"its slowest tenth was faster", func(b *bench) {
			for day := range b.j.compared.history.Days {
				b.j.compared.history.Days[day].Tenths = map[int]int{bucketOf(15 * ms): dayFewest}
			}
		}, 4 * ms, true},
		{"its median was faster", func(*bench) {}, 9 * ms, true},
		{"it has learned for less than a week", func(b *bench) {
			b.j.compared.history.Days = b.j.compared.history.Days[1:]
		}, 4 * ms, true},
	} {
		b := compared(t, 4*ms)
		b.peers, b.j.compared.agreedAt = peersAt(0, 0), 0 // no other voter answers
		for day := range b.j.compared.history.Days {
			b.j.compared.history.Days[day].Tenths = map[int]int{bucketOf(35 * ms): dayFewest}
		}
		c.change(b)
		b.j.compared.remember()
		asked := false
		for i := range 240 {
			took := c.rest
			if i%7 == 6 {
				took = 40 * ms
			}
			b.each(time.Second, took)
			asked = asked || b.result.AsksPeers
		}
		if asked != c.warm || (b.result.State == Warm) != c.warm {
			t.Errorf("%s: asked: %t, %s %s", c.name, asked, b.result.State, b.result.Text)
		}
	}
}
