// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// RuinMistake is a mistake seeded into the policy, or into its input, after a quorum loss. The walk must find it.
type RuinMistake struct {
	Name    string
	Promise string // the broken promise, as in Breach
	Text    string
	scope   int // in Ruins
	breach  ruinBreach
	rules   ruinRules
}

// Explore explores the smallest scope in which the mistake shows.
func (m RuinMistake) Explore(ctx context.Context) Result {
	r := m.rules
	r.safe = m.breach != neverBack
	return newRuinMachine(m.Ruin(), r).explore(ctx, 0)
}

// Ruin returns that scope.
func (m RuinMistake) Ruin() Ruin { return smallestRuins()[m.scope] }

// The scopes in which mistakes show, apart from the first.
const (
	healthy3 = 2
	unequal5 = 3 // two of five are left, and the one whose name comes first has the shorter log
)

func smallestRuins() []Ruin {
	return append(Ruins(), Ruin{Name: "3 of 5 lost", Voters: 5, Wiped: 3, Behind: 1, Plans: 1})
}

// RuinMistakes returns the seeded mistakes.
func RuinMistakes() []RuinMistake {
	list := ruinMistakes()
	for i := range list {
		p := ruinPromises()[list[i].breach]
		list[i].Promise, list[i].Text = p.name, p.text
	}
	return list
}

func ruinMistakes() []RuinMistake {
	return []RuinMistake{
		{
			Name:   "neither people nor agents see that the old quorum serves, nor that its logs grow",
			breach: twoServe, scope: healthy3,
			rules: ruinRules{
				blind: true,
				tell:  func(r *policy.HostRemains) { r.Quorum, r.Empty = false, r.Host != "A" },
				shown: func(p *policy.OfferedPlan) { p.Now.Quorum, p.Now.Index = false, 10 },
				view: func(v *policy.View) {
					if v.Recovery != nil {
						v.Cluster = policy.Cluster{ExpectedID: v.Cluster.ExpectedID, Error: "no voter answers"}
					}
				},
			},
		},
		{
			Name: "data is copied under a running etcd", breach: copiedOpen,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Survivor && d.Step.Kind == policy.StepStopForRecovery
			}, policy.Step{Kind: policy.StepCopyData}),
		},
		{
			Name: "the survivor starts with its old data", breach: oldStarted,
			rules: plannedStep(func(_ policy.View, d policy.Decision) bool {
				return d.Step.Kind == policy.StepCopyData
			}, policy.Step{Kind: policy.StepStartUnit}),
		},
		{
			Name: "a host moves its data aside as soon as it has a plan", breach: partsEarly, scope: unequal5,
			rules: seeingPlan(func(v *policy.View, r *policy.Recovery) {
				if !r.Survivor && v.Data.ClusterID == r.Old {
					goesOnAlone(v, r)
				}
			}),
		},
		{
			Name: "a host without data treats the plan as done", breach: endsEarly,
			rules: seeingPlan(func(v *policy.View, r *policy.Recovery) {
				if !r.Survivor && v.Data.State == policy.DataEmpty {
					goesOnAlone(v, r)
				}
			}),
		},
		{
			Name: "the survivor treats its new data as recorded", breach: unnotedStarted,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.Noted = true }),
		},
		{
			Name: "an aborted plan is not announced", breach: givenUpGoesOn,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.GivenUp = false }),
		},
		{
			Name: "a host takes the lock under a plan", breach: actsOtherwise,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Plan != "" && d.Step.Kind == policy.StepNone
			}, policy.Step{Kind: policy.StepTakeLock}),
		},
		{
			Name: "every host copies its data", breach: actsOtherwise, scope: unequal5,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.Survivor = true }),
		},
		{
			Name: "the shorter log is chosen", breach: writesLost, scope: unequal5,
			rules: ruinRules{tell: func(r *policy.HostRemains) { r.Index = 100 - r.Index }},
		},
		{
			Name: "the survivor does not announce the new cluster", breach: neverBack,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Survivor && d.Step.Outcome == policy.Recovered
			}, policy.Step{Kind: policy.StepEndRecovery, Outcome: policy.QuorumRestored}),
		},
		{
			Name: "a late host keeps its old data", breach: neverBack,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Late && d.Step.Kind == policy.StepLayAside
			}, policy.Step{}),
		},
		{
			Name: "a host does not report what it waits for", breach: wordsMissing,
			rules: ruinRules{say: func(v policy.View, d *policy.Decision) {
				if v.Recovery != nil && v.Recovery.Copy.State == policy.CopyRuns {
					d.Reasons = nil
				}
			}},
		},
	}
}

// plannedStep is a mistake in the step of a host that has a plan.
func plannedStep(when func(v policy.View, d policy.Decision) bool, step policy.Step) ruinRules {
	return ruinRules{say: func(v policy.View, d *policy.Decision) {
		if v.Recovery != nil && when(v, *d) {
			d.Step = step
		}
	}}
}

// seeingPlan is a mistake in what the policy sees of a plan.
func seeingPlan(change func(v *policy.View, r *policy.Recovery)) ruinRules {
	return ruinRules{view: func(v *policy.View) {
		if v.Recovery != nil {
			own := *v.Recovery
			v.Recovery = &own
			change(v, &own)
		}
	}}
}

// goesOnAlone shows a cluster that answers, as if it were the new one.
func goesOnAlone(v *policy.View, r *policy.Recovery) {
	v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.ID = true, true, r.New
}
