// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestARolloutBeganWhenItWasStartedOrLastResumed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		resumed time.Time
		want    time.Duration
	}{
		"started":                              {time.Time{}, 3 * time.Hour},
		"resumed":                              {now.Add(-time.Minute), time.Minute},
		"resumed before it":                    {now.Add(-4 * time.Hour), 3 * time.Hour},
		"resumed by a host with a wrong clock": {now.Add(time.Hour), 0},
	} {
		r := &round.Round{Wall: now}
		r.Rollout = &record.Rollout{Started: now.Add(-3 * time.Hour), ResumedAt: c.resumed}
		if v := rolloutOf(r); v.Began != c.want {
			t.Errorf("%s: it began %s ago, want %s", name, v.Began, c.want)
		}
	}
}

func TestOnlyADoneOrAbortedRolloutIsOver(t *testing.T) {
	t.Parallel()
	for state, over := range map[string]bool{
		record.RolloutRunning: false, record.RolloutPaused: false, record.RolloutStopped: false,
		record.RolloutAborted: true, record.RolloutDone: true,
	} {
		r := &round.Round{}
		r.Rollout = &record.Rollout{State: state, Raises: true}
		if v := rolloutOf(r); v.Over != over || !v.Raises || v.Runs != (state == record.RolloutRunning) {
			t.Errorf("%s: %+v", state, v)
		}
	}
}
