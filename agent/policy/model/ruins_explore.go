// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// ruinRules are what a mistake changes.
type ruinRules struct {
	view  func(v *policy.View)                    // what an agent sees
	say   func(v policy.View, d *policy.Decision) // its decision
	tell  func(r *policy.HostRemains)             // what a host reports to operators about itself
	shown func(shown *policy.OfferedPlan)         // what a host compares when a plan is offered to it
	blind bool                                    // a copy is made whatever the log contains by then
	safe  bool                                    // the run to rest is not checked
}

// ruinMachine explores a scope under rules.
type ruinMachine struct {
	Ruin
	ruinRules
	cache  map[outlook]policy.Decision
	rests  map[ruins]bool // from which every host becomes a voter
	result Result
}

func newRuinMachine(sc Ruin, r ruinRules) *ruinMachine {
	return &ruinMachine{
		Ruin: sc, ruinRules: r, cache: map[outlook]policy.Decision{}, rests: map[ruins]bool{},
		result: Result{
			Scenario: Scenario{Name: sc.Name}, Steps: map[policy.StepKind]bool{},
			Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide asks the real policy, once for every outlook.
func (m *ruinMachine) decide(o *outlook) policy.Decision {
	if d, ok := m.cache[*o]; ok {
		return d
	}
	v := o.view()
	if m.view != nil {
		m.view(&v)
	}
	d := policy.Decide(v)
	if m.say != nil {
		m.say(v, &d)
	}
	m.result.Steps[d.Step.Kind] = true
	m.result.Reasons[d.Step.Outcome] = true
	for _, r := range d.Reasons {
		m.result.Reasons[r.Code] = true
	}
	m.cache[*o] = d
	return d
}

// ExploreRuin explores every course of a quorum loss. It ends at the fixpoint, at the first breach, at most states if
// most is not 0, or with its context.
func ExploreRuin(ctx context.Context, sc Ruin, most int) Result {
	return newRuinMachine(sc, ruinRules{}).explore(ctx, most)
}

func (m *ruinMachine) explore(ctx context.Context, most int) Result {
	first := m.first()
	m.settle(&first)
	walk[ruins]{
		first: first, follow: m.follow, text: m.text,
		tell: func(b uint8) promise { return ruinPromises()[ruinBreach(b)] },
		rests: func(w *ruins) uint8 {
			if m.safe || m.comesToRest(w) {
				return 0
			}
			return uint8(neverBack)
		},
	}.explore(ctx, most, &m.result)
	return m.result
}
