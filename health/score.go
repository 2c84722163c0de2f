// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

const (
	scoreLeast = 1.0
	scoreMost  = 100.0
	// fullShare is the lowest share of slow writes in a round that doubles the score.
	fullShare = 0.1
)

// score distinguishes a disk that is always slow from one that was slow once. It rises fast and falls slowly, like
// TiKV's slow score: a round with slow writes multiplies it by up to 2, a round without slow writes lowers it linearly.
// A round without writes has no effect. If the share of slow writes is fullShare or more, the score rises from 1 to 100
// in seven rounds.
type score struct {
	value float64
	began time.Duration // when the current round began
	// The numbers of writes in this round and in the previous one.
	count, slow         int
	lastCount, lastSlow int
}

// add counts a write.
func (s *score) add(slow bool) {
	s.count++
	if slow {
		s.slow++
	}
}

// advance ends the round if it has lasted long enough.
func (s *score) advance(now, round, decay time.Duration) {
	elapsed := now - s.began
	if elapsed < round {
		return
	}
	if s.count > 0 {
		share := float64(s.slow) / float64(s.count)
		if s.slow == 0 {
			s.value -= scoreMost * elapsed.Seconds() / decay.Seconds()
		}
		s.value *= 1 + min(share, fullShare)/fullShare
		s.value = min(max(s.value, scoreLeast), scoreMost)
	}
	s.lastCount, s.lastSlow = s.count, s.slow
	s.began, s.count, s.slow = now, 0, 0
}
