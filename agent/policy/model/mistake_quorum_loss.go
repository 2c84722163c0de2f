// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// QuorumLossMistake is a mistake seeded into the policy, or into its input, after a quorum loss. The exploration must
// find it.
type QuorumLossMistake struct {
	Name    string
	Promise string // the broken promise, as in Breach
	Text    string
	scope   int // an index into smallestQuorumLosses
	breach  lossBreach
	rules   lossRules
}

// Explore explores the smallest scope in which the mistake has an effect.
func (m QuorumLossMistake) Explore(ctx context.Context) Result {
	r := m.rules
	r.skipsLiveness = m.breach != neverRecovers
	return newLossMachine(m.Scope(), r).explore(ctx, 0)
}

// Scope returns the smallest scope in which the mistake has an effect.
func (m QuorumLossMistake) Scope() QuorumLoss { return smallestQuorumLosses()[m.scope] }

// Values of QuorumLossMistake.scope. The default 0 has no name.
const (
	threeHealthy    = 2
	fiveUnequalLogs = 3 // two of five hosts are left, and the first of them has the shorter log
)

func smallestQuorumLosses() []QuorumLoss {
	return append(QuorumLosses(), QuorumLoss{Name: "3 of 5 lost", Voters: 5, Wiped: 3, Behind: 1, Plans: 1})
}

// QuorumLossMistakes returns the seeded mistakes.
func QuorumLossMistakes() []QuorumLossMistake {
	list := quorumLossMistakes()
	for i := range list {
		p := lossPromises()[list[i].breach]
		list[i].Promise, list[i].Text = p.name, p.text
	}
	return list
}

func quorumLossMistakes() []QuorumLossMistake {
	return []QuorumLossMistake{
		{
			Name:   "neither operators nor agents detect that the old quorum serves and its logs grow",
			breach: twoClustersServe, scope: threeHealthy,
			rules: lossRules{
				copiesBlindly: true,
				report:        func(r *policy.HostRemains) { r.Quorum, r.Empty = false, r.Host != "A" },
				offered:       func(p *policy.OfferedPlan) { p.Now.Quorum, p.Now.Index = false, 10 },
				view: func(v *policy.View) {
					if v.Recovery != nil {
						v.Cluster = policy.Cluster{ExpectedID: v.Cluster.ExpectedID, Error: "no voter answers"}
					}
				},
			},
		},
		{
			Name: "data is copied under a running etcd", breach: copiedWhileRunning,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Survivor && d.Step.Kind == policy.StepStopForRecovery
			}, policy.Step{Kind: policy.StepCopyData}),
		},
		{
			Name: "the survivor starts etcd on its old data", breach: oldDataStarted,
			rules: plannedStep(func(_ policy.View, d policy.Decision) bool {
				return d.Step.Kind == policy.StepCopyData
			}, policy.Step{Kind: policy.StepStartUnit}),
		},
		{
			Name: "a host moves its data aside as soon as it has a plan", breach: movedAsideEarly,
			scope: fiveUnequalLogs,
			rules: seeingPlan(func(v *policy.View, r *policy.Recovery) {
				if !r.Survivor && v.Data.ClusterID == r.Old {
					showRecoveredCluster(v, r)
				}
			}),
		},
		{
			Name: "a host without data treats the plan as completed", breach: planEndsEarly,
			rules: seeingPlan(func(v *policy.View, r *policy.Recovery) {
				if !r.Survivor && v.Data.State == policy.DataEmpty {
					showRecoveredCluster(v, r)
				}
			}),
		},
		{
			Name: "the survivor treats the new cluster as recorded", breach: unrecordedStarted,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.Noted = true }),
		},
		{
			Name: "a host ignores that its plan was aborted", breach: abortedPlanContinues,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.GivenUp = false }),
		},
		{
			Name: "a host with a plan takes the lock", breach: actsOutsidePlan,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Plan != "" && d.Step.Kind == policy.StepNone
			}, policy.Step{Kind: policy.StepTakeLock}),
		},
		{
			Name: "every host copies its data", breach: actsOutsidePlan, scope: fiveUnequalLogs,
			rules: seeingPlan(func(_ *policy.View, r *policy.Recovery) { r.Survivor = true }),
		},
		{
			Name: "the shorter log is chosen", breach: shorterLogChosen, scope: fiveUnequalLogs,
			rules: lossRules{report: func(r *policy.HostRemains) { r.Index = 100 - r.Index }},
		},
		{
			Name: "the survivor does not announce the new cluster", breach: neverRecovers,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Survivor && d.Step.Outcome == policy.Recovered
			}, policy.Step{Kind: policy.StepEndRecovery, Outcome: policy.QuorumRestored}),
		},
		{
			Name: "a late host keeps its old data", breach: neverRecovers,
			rules: plannedStep(func(v policy.View, d policy.Decision) bool {
				return v.Recovery.Late && d.Step.Kind == policy.StepLayAside
			}, policy.Step{}),
		},
		{
			Name: "a host does not report why it waits", breach: lossNoReason,
			rules: lossRules{decision: func(v policy.View, d *policy.Decision) {
				if v.Recovery != nil && v.Recovery.Copy.State == policy.CopyRuns {
					d.Reasons = nil
				}
			}},
		},
	}
}

// plannedStep returns a mistake that replaces the step of a host that has a plan or is late, if when returns true.
func plannedStep(when func(v policy.View, d policy.Decision) bool, step policy.Step) lossRules {
	return lossRules{decision: func(v policy.View, d *policy.Decision) {
		if v.Recovery != nil && when(v, *d) {
			d.Step = step
		}
	}}
}

// seeingPlan returns a mistake in the policy's view of a plan.
func seeingPlan(change func(v *policy.View, r *policy.Recovery)) lossRules {
	return lossRules{view: func(v *policy.View) {
		if v.Recovery != nil {
			own := *v.Recovery
			v.Recovery = &own
			change(v, &own)
		}
	}}
}

// showRecoveredCluster changes the view as if the recovered cluster answered.
func showRecoveredCluster(v *policy.View, r *policy.Recovery) {
	v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.ID = true, true, r.New
}
