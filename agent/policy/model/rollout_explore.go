// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// rolloutRules are what a mistake changes.
type rolloutRules struct {
	view            func(v *policy.View)     // what an agent sees
	decision        func(d *policy.Decision) // its decision
	beforeEnd       func(t *policy.RolloutProgress, s *policy.Step)
	afterEnd        func(end *policy.RolloutEnd)
	unfenced        bool          // operations begin, and hosts go down, whatever has happened to record and lock since the view
	ignored         rolloutBreach // a breach that is ignored, to see what follows from it
	overwrites      bool          // the rollout's record is written whatever it contains by then
	countsAsResumed bool          // a host's end counts as if operators had resumed the rollout
	releasedNotDone bool          // a released operation counts as not done
	skipsLiveness   bool          // the run to rest is not checked
}

// rolloutMachine explores a scope under rules.
type rolloutMachine struct {
	Rollout
	rolloutRules
	cache  map[rolloutObservation]policy.Decision
	live   map[rolloutWorld]bool // from which it comes to rest
	result Result
}

func newRolloutMachine(sc Rollout, r rolloutRules) *rolloutMachine {
	return &rolloutMachine{
		Rollout: sc, rolloutRules: r, cache: map[rolloutObservation]policy.Decision{}, live: map[rolloutWorld]bool{},
		result: Result{
			Scenario: Scenario{Name: sc.Name}, Steps: map[policy.StepKind]bool{},
			Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide asks the real policy, once for every sight.
func (m *rolloutMachine) decide(s *rolloutObservation) policy.Decision {
	if d, ok := m.cache[*s]; ok {
		return d
	}
	v := s.view(m.Rollout)
	if m.view != nil {
		m.view(&v)
	}
	d := policy.Decide(v)
	if m.decision != nil {
		m.decision(&d)
	}
	m.result.Steps[d.Step.Kind] = true
	m.cache[*s] = d
	return d
}

// ExploreRollout explores every course of a rollout. It ends at the fixpoint, at the first breach, at most states if most
// is not 0, or with its context.
func ExploreRollout(ctx context.Context, sc Rollout, most int) Result {
	return newRolloutMachine(sc, rolloutRules{}).explore(ctx, most)
}

func (m *rolloutMachine) explore(ctx context.Context, most int) Result {
	search[rolloutWorld]{
		first: m.first(), successors: m.successors, text: m.text,
		promise: func(b uint8) promise { return rolloutPromises()[rolloutBreach(b)] },
		liveness: func(w *rolloutWorld) uint8 {
			if m.skipsLiveness || m.isLive(w) {
				return 0
			}
			return uint8(rolloutNeverEnds)
		},
	}.explore(ctx, most, &m.result)
	return m.result
}
