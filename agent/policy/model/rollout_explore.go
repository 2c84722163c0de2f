// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// rolloutRules describe the changes that a mistake makes. The zero value changes nothing.
type rolloutRules struct {
	view     func(v *policy.View)     // changes the view before the policy decides
	decision func(d *policy.Decision) // changes what the policy decides
	// beforeEnd and afterEnd change the input and the result of policy.RolloutAfter.
	beforeEnd       func(t *policy.RolloutProgress, s *policy.Step)
	afterEnd        func(end *policy.RolloutEnd)
	unfenced        bool          // steps compare neither the record nor the lock with the view
	ignored         rolloutBreach // a breach that is ignored, to explore its consequences
	overwrites      bool          // a write of the rollout's record does not compare its revision
	countsAsResumed bool          // the end of a host's operation counts as a resume by operators
	releasedNotDone bool          // a released operation does not count as done
	// holdsWithoutPause records the pause before the last member of an upgrade without pausing.
	holdsWithoutPause bool
	skipsLiveness     bool // liveness is not checked
}

// rolloutMachine explores a scope under rules.
type rolloutMachine struct {
	Rollout
	rolloutRules
	cache  map[rolloutObservation]policy.Decision
	live   map[rolloutWorld]bool // worlds from which a liveness run ends as required
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

// decide returns the real policy's decision for an observation. It calls the policy once for each observation.
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

// ExploreRollout explores every course of a rollout until it reaches the fixpoint, the first breach or, if most is not
// 0, that many states, or until the context ends.
func ExploreRollout(ctx context.Context, sc Rollout, most int) Result {
	return newRolloutMachine(sc, rolloutRules{}).explore(ctx, most)
}

func (m *rolloutMachine) explore(ctx context.Context, most int) Result {
	search[rolloutWorld]{
		initial: m.initial(), successors: m.successors, text: m.text,
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
