// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestAValueLastsSinceItWasFirstSeen(t *testing.T) {
	t.Parallel()
	s := Since{}
	if d := s.Of("membership", "a", 100, 1); d != 0 {
		t.Fatalf("a new value is %s old", d)
	}
	if d := s.Of("membership", "a", 130, 2); d != 30 {
		t.Fatalf("the value is %s old, want 30ns", d)
	}
	if d := s.Of("membership", "b", 140, 3); d != 0 {
		t.Fatalf("another value is %s old", d)
	}
	s.Forget(4) // a round that does not evaluate the value
	if d := s.Of("membership", "b", 150, 5); d != 0 {
		t.Fatalf("after a gap the value is %s old", d)
	}
}

func TestASilentLearnerMakesNoProgress(t *testing.T) {
	t.Parallel()
	s := Since{}
	limits := policy.Limits{PromoteLag: 10}
	m := policy.Member{ID: 1, Learner: true, Live: true, LagKnown: true, Lag: 50}
	at := func(now time.Duration, round uint64, live bool, applied uint64, paused bool) policy.Member {
		m.Live = live
		s.trackMember(&m, applied, limits, paused, now, round)
		s.Forget(round)
		return m
	}
	at(0, 1, true, 100, false)
	if got := at(10, 2, true, 120, false); got.StalledFor != 0 || got.LiveFor != 10 {
		t.Fatalf("with progress: stalled for %s, live for %s", got.StalledFor, got.LiveFor)
	}
	if got := at(20, 3, false, 0, false); got.StalledFor != 10 || got.LiveFor != 0 {
		t.Fatalf("silent: stalled for %s, live for %s", got.StalledFor, got.LiveFor)
	}
	if got := at(30, 4, false, 0, false); got.StalledFor != 20 || got.DownFor != 10 {
		t.Fatalf("still silent: stalled for %s, down for %s", got.StalledFor, got.DownFor)
	}
	if got := at(40, 5, true, 120, false); got.StalledFor != 30 {
		t.Fatalf("back with the same index: stalled for %s, want 30ns", got.StalledFor)
	}
	if got := at(50, 6, true, 120, true); got.StalledFor != 0 {
		t.Fatalf("while paused: stalled for %s", got.StalledFor)
	}
}

func TestASilentMemberServedForItsLastPeriodOfAnswers(t *testing.T) {
	t.Parallel()
	s := Since{}
	for round, c := range []struct {
		live bool
		want time.Duration
	}{
		{true, 0},
		{true, 0},
		{true, 0},
		{false, 20}, // it answered from 0 to 20
		{false, 20},
		{true, 20}, // a single answer
		{false, 0},
	} {
		m := policy.Member{ID: 1, Live: c.live}
		s.trackMember(&m, 0, policy.Limits{}, false, time.Duration(10*round), uint64(round))
		if s.Forget(uint64(round)); m.ServedFor != c.want {
			t.Errorf("round %d: served for %d, want %d", round, m.ServedFor, c.want)
		}
	}
}

func TestAMemberThatFallsSilentDuringAGapInTheRoundsCountsAsNotServedBefore(t *testing.T) {
	t.Parallel()
	for _, gap := range []bool{false, true} {
		s := Since{}
		for round, live := range []bool{true, true, false} {
			if gap && !live {
				s.Forget(99) // a round in which no member was evaluated
			}
			m := policy.Member{ID: 1, Live: live}
			s.trackMember(&m, 0, policy.Limits{}, false, time.Duration(10*round), uint64(round))
			if want := map[bool]time.Duration{false: 10, true: 0}[gap]; !live && m.ServedFor != want {
				t.Errorf("gap %v: served for %d, want %d", gap, m.ServedFor, want)
			}
		}
	}
}

func TestAPauseDoesNotMakeALearnerFollow(t *testing.T) {
	t.Parallel()
	s := Since{}
	still := func(now time.Duration, round uint64, applied uint64, paused bool) time.Duration {
		m := policy.Member{ID: 1, Learner: true, Live: true}
		s.trackMember(&m, applied, policy.Limits{}, paused, now, round)
		return m.StillFor
	}
	for i, step := range []struct {
		applied uint64
		paused  bool
		want    time.Duration
	}{{100, false, 0}, {101, false, 0}, {101, false, 10}, {101, true, 20}, {101, false, 30}, {102, true, 0}} {
		if got := still(time.Duration(10*i), uint64(i), step.applied, step.paused); got != step.want {
			t.Errorf("look %d: no progress for %d, want %d", i, got, step.want)
		}
	}
}
