// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// rollRules are what a mistake changes.
type rollRules struct {
	view     func(v *policy.View)     // what an agent sees
	say      func(d *policy.Decision) // its decision
	after    func(t *policy.RolloutProgress, s *policy.Step)
	ends     func(end *policy.RolloutEnd)
	unfenced bool       // operations begin, and hosts go down, whatever has happened to record and lock since the view
	past     rollBreach // a breach that is ignored, to see what follows from it
	unread   bool       // the rollout's record is written whatever it contains by then
	counted  bool       // a host's end counts as if operators had resumed the rollout
	released bool       // a released operation counts as not done
	safe     bool       // the run to rest is not checked
}

// rollMachine explores a scope under rules.
type rollMachine struct {
	Roll
	rollRules
	cache  map[rollSight]policy.Decision
	rests  map[rolling]bool // from which it comes to rest
	result Result
}

func newRollMachine(sc Roll, r rollRules) *rollMachine {
	return &rollMachine{
		Roll: sc, rollRules: r, cache: map[rollSight]policy.Decision{}, rests: map[rolling]bool{},
		result: Result{
			Scenario: Scenario{Name: sc.Name}, Steps: map[policy.StepKind]bool{},
			Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide asks the real policy, once for every sight.
func (m *rollMachine) decide(s *rollSight) policy.Decision {
	if d, ok := m.cache[*s]; ok {
		return d
	}
	v := s.view(m.Roll)
	if m.view != nil {
		m.view(&v)
	}
	d := policy.Decide(v)
	if m.say != nil {
		m.say(&d)
	}
	m.result.Steps[d.Step.Kind] = true
	m.cache[*s] = d
	return d
}

// ExploreRoll explores every course of a rollout. It ends at the fixpoint, at the first breach, at most states if most
// is not 0, or with its context.
func ExploreRoll(ctx context.Context, sc Roll, most int) Result {
	return newRollMachine(sc, rollRules{}).explore(ctx, most)
}

func (m *rollMachine) explore(ctx context.Context, most int) Result {
	walk[rolling]{
		first: m.first(), follow: m.follow, text: m.text,
		tell: func(b uint8) promise { return rollPromises()[rollBreach(b)] },
		rests: func(w *rolling) uint8 {
			if m.safe || m.comesToRest(w) {
				return 0
			}
			return uint8(rollForEver)
		},
	}.explore(ctx, most, &m.result)
	return m.result
}
