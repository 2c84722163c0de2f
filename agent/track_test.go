// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestAPauseIsNoSignThatALearnerFollows(t *testing.T) {
	t.Parallel()
	s := since{marks: map[string]mark{}}
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
			t.Errorf("look %d: it stands still for %d, want %d", i, got, step.want)
		}
	}
}
