// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// timeline records what the judge reports over time.
type timeline struct {
	*bench
	page strings.Builder
}

func (s *timeline) heading(text string) { fmt.Fprintf(&s.page, "\n# %s\n", text) }

// write writes the changes since the last call, and then the assessment.
func (s *timeline) write() {
	for _, c := range s.changes {
		fmt.Fprintf(&s.page, "%-11s %s: %s -> %s %s\n            %s\n", c.At-time.Hour, c.Component, c.From, c.To,
			c.Code, c.Text)
	}
	s.changes = nil
	qualified := ""
	if s.result.Qualified {
		qualified = ", qualified"
	}
	fmt.Fprintf(&s.page, "%-11s = %s %s (since %s%s)\n              %s\n", s.now-time.Hour, s.result.State,
		s.result.Code, s.result.Since-time.Hour, qualified, s.result.Text)
}

func (s *timeline) stall(span time.Duration) {
	for age := time.Second / 2; age <= span; age += time.Second / 2 {
		s.now += time.Second / 2
		s.next.InFlight, s.next.InFlightOp = age, "wal write+sync"
		s.look()
	}
	s.write()
	s.next.InFlight, s.next.InFlightOp = 0, ""
	s.sample(disk.LaneWAL, span)
	s.look()
}

func TestTheTimelineOfADisk(t *testing.T) {
	t.Parallel()
	s := &timeline{bench: newBench(t, DefaultThresholds())}
	s.heading("A host without a member qualifies")
	s.look()
	s.write()
	s.each(time.Second, ms)
	s.burst(1234, 2*ms)
	s.write()
	s.burst(1766, 2*ms)
	s.write()

	s.heading("It joins, and its disk has spikes")
	s.member = true
	s.each(10*time.Minute, ms)
	s.write()
	s.each(11*time.Second, 18*ms)
	s.write()

	s.heading("It gets worse")
	s.each(5*time.Second, 182*ms)
	s.write()

	s.heading("It hangs for 3 s and comes back")
	s.stall(3 * time.Second)
	s.write()

	s.heading("5 min later it is still SLOW, after 15 it is WARM and then OK")
	s.each(5*time.Minute, ms)
	s.write()
	s.until(Warm, time.Hour)
	s.write()
	s.each(time.Second, ms)
	s.write()

	s.heading("It flaps: each return takes twice as long")
	for range 4 {
		s.each(11*time.Second, 18*ms)
		s.each(4*time.Minute, ms)
		s.write()
		s.until(OK, 5*time.Hour)
		s.write()
	}

	s.heading("24 h later that is forgotten")
	s.pass(24*time.Hour, ms)
	s.each(11*time.Second, 18*ms)
	s.until(OK, 5*time.Hour)
	s.write()

	s.heading("It hangs for 31 s, and stays FAILED although it comes back")
	s.stall(31 * time.Second)
	s.write()
	s.pass(time.Hour, ms)
	s.write()

	s.heading("An operator has repaired it")
	if err := s.j.Reset(); err != nil {
		t.Fatal(err)
	}
	s.each(time.Second, ms)
	s.write()
	s.each(5*time.Minute, ms)
	s.write()
	golden(t, "testdata/timeline.golden", s.page.String())
}

// TestEveryReturnTakesTwiceAsLong checks the times that TestTheTimelineOfADisk shows.
func TestEveryReturnTakesTwiceAsLong(t *testing.T) {
	t.Parallel()
	b := member(t)
	for _, minutes := range []int{5, 10, 20, 40, 80, 160, 240, 240} {
		b.pass(15*time.Minute, ms) // as long as the long window
		b.warm()
		from := b.now
		for b.disk() == Warm && b.now-from < 5*time.Hour {
			b.pass(10*time.Second, ms)
		}
		if took := b.now - from; int(took.Minutes()) != minutes {
			t.Errorf("WARM lasted %s, want %d min", took, minutes)
		}
	}
	b.pass(24*time.Hour, ms)
	b.warm()
	if took := b.until(OK, 5*time.Hour); took > 5*time.Minute {
		t.Errorf("after 24 h it lasted %s", took)
	}
}
