// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// misjudging adds a mistake to each assessment of a real judge. The benchmark must show the effect of the mistake.
type misjudging struct {
	judge
	mistake func(*health.Assessment)
}

func (b misjudging) Observe(in health.Input) (health.Assessment, []health.Change) {
	a, changes := b.judge.Observe(in)
	b.mistake(&a)
	return a, changes
}

// withMistake plays a scenario with hosts that have learned nothing, and whose judges make a mistake.
func withMistake(t *testing.T, s scenario, mistake func(*health.Assessment)) outcome {
	t.Helper()
	s.young = true
	o, err := play(&s, 1, time.Hour, newPasts(func(limits health.Thresholds) (judge, error) {
		j, err := realJudge(limits)
		return misjudging{j, mistake}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// slowFor returns a scenario in which the leader's disk is slow for that long, once in each period.
func slowFor(slow, every, lasts time.Duration) scenario {
	return scenario{
		name: "slow for " + slow.String(), hosts: three("nvme"),
		fault: fault{plus: 150 * time.Millisecond, lasts: slow, every: every}, on: []int{0}, lasts: lasts,
	}
}

func TestReplacementOfASlowVoterDependsOnItsReports(t *testing.T) {
	t.Parallel()
	once := func(a *health.Assessment) { // the host has recovered from 80 slow minutes before
		if a.State == health.Slow {
			a.HealsAfter = 80 * time.Minute
		}
	}
	for name, c := range map[string]struct {
		slow    time.Duration
		mistake func(*health.Assessment)
		want    int
	}{
		"slow for 25 min": {25 * time.Minute, func(*health.Assessment) {}, 0},
		"slow for 80 min": {80 * time.Minute, func(*health.Assessment) {}, 1},
		"slow for 80 min, after recovering from 80 min before": {80 * time.Minute, once, 0},
		"slow for 80 min, with the earlier recovery forgotten": {80 * time.Minute, func(a *health.Assessment) {
			once(a)
			a.HealsAfter = 0
		}, 1},
		"slow for 25 min, and defective": {25 * time.Minute, func(a *health.Assessment) {
			a.Defective = a.State == health.Slow
		}, 1},
		"slow for 8 min, for good by its own report": {8 * time.Minute, func(a *health.Assessment) {
			a.Recovers, a.Defective = false, a.State == health.Slow
		}, 0}, // etcd's own metrics do not confirm it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slowFor(c.slow, 12*time.Hour, 2*time.Hour)
			if got := len(withMistake(t, s, c.mistake).replaced); got != c.want {
				t.Errorf("replaced %d times, want %d", got, c.want)
			}
		})
	}
}

func TestTheViewShowsWhetherWritesAreFastAgain(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		h := &host{}
		h.state.SlowNow = slow
		if got := h.policyHealth().FastAgain; got == slow {
			t.Errorf("slow now: %t, fast again: %t", slow, got)
		}
	}
}
