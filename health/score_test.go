// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// after returns the score after that many rounds of ten writes, each with the given number of slow writes.
func (s *score) after(rounds, slow int) float64 {
	for range rounds {
		for i := range 10 {
			s.add(i < slow)
		}
		s.advance(s.began+10*time.Second, 10*time.Second, 5*time.Minute)
	}
	return s.value
}

func TestTheScoreReachesItsMaximumInSevenRounds(t *testing.T) {
	t.Parallel()
	s := &score{value: scoreLeast}
	if got := s.after(6, 1); got != 64 {
		t.Errorf("after six rounds: %g", got)
	}
	if got := s.after(1, 10); got != 100 {
		t.Errorf("after the seventh: %g", got)
	}
}

func TestTheScoreFallsToItsMinimumInFiveMinutes(t *testing.T) {
	t.Parallel()
	s := &score{value: scoreMost}
	if got := s.after(29, 0); got < 3.3 || got > 3.4 {
		t.Errorf("after 29 rounds: %g", got)
	}
	if got := s.after(3, 0); got != 1 {
		t.Errorf("after 5 min: %g", got)
	}
}

func TestARoundWithoutWritesKeepsTheScore(t *testing.T) {
	t.Parallel()
	s := &score{value: 50}
	s.advance(time.Hour, 10*time.Second, 5*time.Minute)
	if s.value != 50 || s.began != time.Hour {
		t.Errorf("got %g, the round began at %s", s.value, s.began)
	}
	s.add(true)
	s.advance(time.Hour+10*time.Second-1, 10*time.Second, 5*time.Minute)
	if s.value != 50 {
		t.Errorf("an unfinished round makes it %g", s.value)
	}
}

func TestAWriteAtTheLimitIsNotSlowForTheScore(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.each(time.Minute, 100*ms)
	if got := fsyncOf(b.j).score.value; got != 1 {
		t.Errorf("the score is %g", got)
	}
	b.each(20*time.Second, 100*ms+1)
	if got := fsyncOf(b.j).score.value; got < 2 {
		t.Errorf("the score is %g", got)
	}
}
