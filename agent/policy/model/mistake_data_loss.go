// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// swapped returns a scope in which the disk of a voter in maintenance is replaced, with n more faults of these classes.
func swapped(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Requests, sc.Faults, sc.Budget = 3, 3, 1, Swap|class, n+1
		sc.Target = policy.Target{Voters: 3}
	}
}

// ownVoter returns the deciding host's member, if it votes.
func ownVoter(v *policy.View) (policy.Member, bool) {
	for _, m := range v.Cluster.Members {
		if m.PeerURL == v.Self.PeerURL && !m.Learner {
			return m, true
		}
	}
	return policy.Member{}, false
}

// seesLoss returns a mistake in the view of a host that has lost its voter's data.
func seesLoss(change func(v *policy.View, m policy.Member)) rules {
	return seeing(func(v *policy.View) {
		if m, votes := ownVoter(v); votes && v.Data.State == policy.DataEmpty {
			change(v, m)
		}
	})
}

// dataLossMistakes returns the mistakes about a voter whose data is gone when its host returns.
func dataLossMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a voter starts on an empty disk", breach: startedEmpty, scope: swapped(0, 0),
			rules: seesLoss(func(v *policy.View, m policy.Member) {
				v.Data.State, v.Data.ClusterID, v.Data.MemberID = policy.DataMember, clusterID, m.ID
			}),
		},
		{
			Name: "a host with lost data waits forever", breach: hostNotBack, scope: withLiveness(swapped(0, 0)),
			rules: seeing(func(v *policy.View) { v.Self.DataMount = "" }),
		},
		{
			Name: "a disk counts as lost while it is being replaced", breach: endedEarly, scope: swapped(0, 0),
			rules: seesLoss(func(v *policy.View, _ policy.Member) {
				if v.Asked != nil {
					asked := *v.Asked
					asked.Over, asked.Ended, asked.OverFor = true, true, ages
					v.Asked = &asked
				}
			}),
		},
		{
			Name:   "an operation ends as MEMBER_LOST although the host's disk does not record the loss",
			breach: endedEarly,
			scope:  swapped(0, 0),
			rules:  seesLoss(func(v *policy.View, m policy.Member) { v.Self.LostID = m.ID }),
		},
		{
			Name:   "an operation whose host has lost its data is reported as successful",
			breach: endedEarly, scope: swapped(0, 0),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Outcome == policy.MemberLost {
					d.Step.Outcome = policy.Cycled
				}
			}},
		},
		{
			Name: "a voter that is down is removed although its data is there", breach: liveReplaced,
			scope: swapped(0, EtcdCrash|OperatorStop),
			rules: rules{ignored: []breach{startGuardStays}, view: func(v *policy.View) {
				if m, votes := ownVoter(v); votes && v.Asked == nil && !m.Live {
					v.Self.LostID = m.ID
				}
			}},
		},
		{
			Name: "a voter with lost data is removed while another one is down", breach: removedAtRisk,
			scope: swapped(1, EtcdCrash),
			rules: seesLoss(func(v *policy.View, own policy.Member) {
				eachMember(v, func(m *policy.Member) { m.Live = m.Live || m.ID != own.ID })
			}),
		},
		{
			Name: "a voter with lost data is removed although its host cannot join", breach: removedWithoutReplacement,
			scope: swapped(1, ClockChange),
			rules: seesLoss(func(v *policy.View, _ policy.Member) { v.Clock.Offset = 0 }),
		},
		{
			Name:   "a voter with lost data is removed in favour of a standby that is not ready",
			breach: removedWithoutReplacement, scope: func(sc *Scenario) {
				swapped(1, Slowness)(sc)
				sc.Hosts, sc.Target.Standbys = 4, 1
			},
			rules: seesLoss(func(v *policy.View, _ policy.Member) {
				eachMember(v, func(m *policy.Member) {
					if m.Learner && m.Name != "" {
						m.Live, m.Lag, m.LagKnown, m.SteadyFor, m.LiveFor = true, 0, true, ages, ages
					}
				})
			}),
		},
		{
			Name: "the end of an operation deletes the record of lost data", breach: targetMissed,
			scope: withLiveness(swapped(0, 0)),
			rules: seesLoss(func(v *policy.View, _ policy.Member) {
				if v.Asked == nil {
					v.Self.LostID = 0
				}
			}),
		},
		{
			Name:   "no start guard is set for a voter whose data is lost",
			breach: startedEmpty,
			scope:  swapped(1, HostCrash),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Notes.Request.Change == policy.RequestEnds {
					d.Notes.Request.Guard = policy.GuardCleared
				}
				if d.Step.Outcome == policy.MemberLost || d.Notes.Self.Lost != 0 {
					d.Notes.StartGuard = policy.GuardCleared
				}
				if d.Notes.StartGuard == policy.GuardSet {
					d.Notes.StartGuard = policy.GuardUnchanged
				}
			}},
		},
	}
}
