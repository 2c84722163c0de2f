// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// lossRules are what a mistake changes.
type lossRules struct {
	view          func(v *policy.View)                    // what an agent sees
	decision      func(v policy.View, d *policy.Decision) // its decision
	report        func(r *policy.HostRemains)             // what a host reports to operators about itself
	offered       func(shown *policy.OfferedPlan)         // what a host compares when a plan is offered to it
	copiesBlindly bool                                    // a copy is made whatever the log contains by then
	skipsLiveness bool                                    // the run to rest is not checked
}

// lossMachine explores a scope under rules.
type lossMachine struct {
	QuorumLoss
	lossRules
	cache  map[lossObservation]policy.Decision
	live   map[lossWorld]bool // from which every host becomes a voter
	result Result
}

func newLossMachine(sc QuorumLoss, r lossRules) *lossMachine {
	return &lossMachine{
		QuorumLoss: sc, lossRules: r, cache: map[lossObservation]policy.Decision{}, live: map[lossWorld]bool{},
		result: Result{
			Scenario: Scenario{Name: sc.Name}, Steps: map[policy.StepKind]bool{},
			Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide asks the real policy, once for every outlook.
func (m *lossMachine) decide(o *lossObservation) policy.Decision {
	if d, ok := m.cache[*o]; ok {
		return d
	}
	v := o.view()
	if m.view != nil {
		m.view(&v)
	}
	d := policy.Decide(v)
	if m.decision != nil {
		m.decision(v, &d)
	}
	m.result.Steps[d.Step.Kind] = true
	m.result.Reasons[d.Step.Outcome] = true
	for _, r := range d.Reasons {
		m.result.Reasons[r.Code] = true
	}
	m.cache[*o] = d
	return d
}

// ExploreQuorumLoss explores every course of a quorum loss. It ends at the fixpoint, at the first breach, at most states if
// most is not 0, or with its context.
func ExploreQuorumLoss(ctx context.Context, sc QuorumLoss, most int) Result {
	return newLossMachine(sc, lossRules{}).explore(ctx, most)
}

func (m *lossMachine) explore(ctx context.Context, most int) Result {
	first := m.first()
	m.markStalePlans(&first)
	search[lossWorld]{
		first: first, successors: m.successors, text: m.text,
		promise: func(b uint8) promise { return lossPromises()[lossBreach(b)] },
		liveness: func(w *lossWorld) uint8 {
			if m.skipsLiveness || m.isLive(w) {
				return 0
			}
			return uint8(neverRecovers)
		},
	}.explore(ctx, most, &m.result)
	return m.result
}
