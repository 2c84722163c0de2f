// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// lossRules describe the changes that a mistake makes. The zero value changes nothing.
type lossRules struct {
	view          func(v *policy.View)                    // changes the view before the policy decides
	decision      func(v policy.View, d *policy.Decision) // changes what the policy decides
	report        func(r *policy.HostRemains)             // changes what a host reports to operators
	offered       func(plan *policy.OfferedPlan)          // changes the plan that operators offer to a host
	copiesBlindly bool                                    // a copy completes although the log has grown since the plan
	skipsLiveness bool                                    // liveness is not checked
}

// lossMachine explores a scope under rules.
type lossMachine struct {
	QuorumLoss
	lossRules
	cache  map[lossObservation]policy.Decision
	live   map[lossWorld]bool // worlds from which a liveness run ends as required
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

// decide returns the real policy's decision for an observation. It calls the policy once for each observation.
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

// ExploreQuorumLoss explores every course of a quorum loss until it reaches the fixpoint, the first breach or, if most
// is not 0, that many states, or until the context ends.
func ExploreQuorumLoss(ctx context.Context, sc QuorumLoss, most int) Result {
	return newLossMachine(sc, lossRules{}).explore(ctx, most)
}

func (m *lossMachine) explore(ctx context.Context, most int) Result {
	first := m.initial()
	m.markStalePlans(&first)
	search[lossWorld]{
		initial: first, successors: m.successors, text: m.text,
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
