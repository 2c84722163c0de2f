// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// withLearner returns a scope with one voter, room for a standby, and at most one fault of these classes, in which the
// last host has the role learner.
func withLearner(class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Learner, sc.MaxLearners = 3, 1, LearnerJoins, 2
		sc.Target = policy.Target{Voters: 1, Standbys: 1}
		sc.Faults, sc.Budget = class, int(bit(class != 0))
	}
}

// nextToLearner returns a scope with a permanent learner and that many hosts and voters, and at most one fault of these
// classes. The cluster should have three voters. Dead voters are replaced if hosts may crash.
func nextToLearner(hosts, voters int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Learner, sc.MaxLearners = hosts, voters, LearnerListed, 2
		sc.Target = policy.Target{Voters: 3}
		sc.Faults, sc.Budget, sc.Repair = class, int(bit(class != 0)), class&HostCrash != 0
	}
}

// also returns a function that sets up a scope and then changes it further.
func also(scope, change func(sc *Scenario)) func(sc *Scenario) {
	return func(sc *Scenario) {
		scope(sc)
		change(sc)
	}
}

// asStandby shows the permanent learner as an ordinary standby.
func asStandby(v *policy.View) {
	eachMember(v, func(m *policy.Member) { m.Permanent = false })
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if h.Learner = false; h.Role == policy.RoleLearner {
			h.Role = policy.RoleStandby
		}
	}
}

// learnerMistakes returns the mistakes about permanent learners and the limit on learners.
func learnerMistakes() []Mistake {
	lowered := func(sc *Scenario) { sc.Lowered = true }
	return []Mistake{
		{
			Name: "a permanent learner is promoted when a voter is missing", breach: permanentVotes,
			scope: nextToLearner(4, 2, 0),
			rules: seeing(func(v *policy.View) {
				v.Self.Learner = false
				asStandby(v)
			}),
		},
		{
			Name: "a host with the role learner joins as a voter", breach: permanentVotes,
			scope: clusterWithLearner(2),
			rules: seeing(func(v *policy.View) { v.Self.Learner = false }),
		},
		{
			Name: "a host with the role learner replaces a dead voter", breach: permanentVotes,
			scope: also(nextToLearner(4, 3, HostCrash), func(sc *Scenario) { sc.Learner = LearnerJoins }),
			rules: seeing(func(v *policy.View) {
				if v.Op == nil {
					v.Self.Learner = false
				}
				for i := range v.Hosts {
					v.Hosts[i].Learner = false
				}
			}),
		},
		{
			Name: "a permanent learner joins before the voters", breach: permanentFirst,
			scope: clusterWithLearner(2),
			rules: seeing(func(v *policy.View) {
				if v.Self.Learner {
					v.Target.Voters = 1
				}
			}),
		},
		{
			Name:   "a host compares the configured limits instead of those of the running etcds",
			breach: limitsDiffer, scope: also(withLearner(0), lowered),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.MaxLearners = v.Self.MaxLearners })
			}),
		},
		{
			Name: "an unknown limit counts as equal", breach: limitsDiffer,
			scope: also(withLearner(AgentCrash), lowered),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if m.MaxLearners == 0 {
						m.MaxLearners = v.Self.MaxLearners
					}
				})
			}),
		},
		{
			Name: "the limits are not compared again when the learner is added", breach: limitsDiffer,
			scope: withLearner(LimitChange),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					eachMember(v, func(m *policy.Member) { m.MaxLearners = v.Self.MaxLearners })
				}
			}),
		},
	}
}

// learnerStaysMistakes returns further mistakes about permanent learners and the limit on learners.
func learnerStaysMistakes() []Mistake {
	tooFew := func(sc *Scenario) { sc.MaxLearners = 1 }
	return []Mistake{
		{
			Name: "the limit of etcd's next start is ignored", breach: startsNoMore,
			scope: func(sc *Scenario) { *sc = restartWithLowerLimit() },
			rules: seeing(func(v *policy.View) { v.Self.NextLearners = 0 }),
		},
		{
			Name: "a permanent learner joins although etcd allows only one learner", breach: noPlaceForLearner,
			scope: also(withLearner(0), tooFew),
			rules: seeing(func(v *policy.View) {
				if v.Self.Learner {
					v.Self.MaxLearners++
					eachMember(v, func(m *policy.Member) { m.MaxLearners++ })
				}
			}),
		},
		{
			Name: "standbys do not count towards the limit", breach: noPlaceForLearner,
			scope: also(withLearner(0), func(sc *Scenario) { sc.Hosts, sc.Learner = 4, LearnerThird }),
			rules: seeing(func(v *policy.View) {
				if v.Self.Learner {
					v.Self.MaxLearners++
					eachMember(v, func(m *policy.Member) { m.MaxLearners++ })
				}
			}),
		},
		{
			Name: "a permanent learner waits for a spare that does not become the standby", breach: targetMissed,
			scope: withLiveness(also(withLearner(0), func(sc *Scenario) { sc.Unwilling = true })),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].NoStandbys = false
				}
			}),
		},
		{
			Name: "a dead voter is removed although no learner can be added", breach: noPlaceForLearner,
			scope: also(nextToLearner(5, 3, HostCrash), tooFew),
			rules: seeing(func(v *policy.View) {
				if len(v.Cluster.Members) > 3 { // the dead voter is still a member
					v.Self.MaxLearners = 2
					eachMember(v, func(m *policy.Member) { m.MaxLearners = 2 })
				}
			}),
		},
		{
			Name: "a lost permanent learner is removed", breach: permanentRemoved,
			scope: also(nextToLearner(4, 1, HostCrash), func(sc *Scenario) {
				sc.Target = policy.Target{Voters: 1, Standbys: 1}
			}),
			rules: seeing(asStandby),
		},
		{
			Name: "a permanent learner leaves a cluster without standbys", breach: permanentRemoved,
			scope: also(nextToLearner(4, 3, 0), func(sc *Scenario) { sc.ResizeTo = 1 }),
			rules: seeing(asStandby),
		},
		{
			Name: "a permanent learner joins while a voter is to be replaced", breach: begunInVain,
			scope: also(nextToLearner(4, 3, HealthChange), func(sc *Scenario) {
				sc.Learner, sc.Unhealthy = LearnerJoins, true
			}),
			rules: seeing(func(v *policy.View) {
				if v.Op == nil && v.Self.Learner {
					v.Limits.UnhealthyGrace = 0
				}
			}),
		},
		{
			Name: "a permanent learner counts as the standby", breach: targetMissed,
			scope: withLiveness(also(withLearner(0), func(sc *Scenario) { sc.Learner = LearnerListed })),
			rules: seeing(func(v *policy.View) {
				if !v.Self.Learner {
					asStandby(v)
				}
			}),
		},
	}
}

// clusterWithLearner returns a scope with two voters and that many more hosts. The cluster should have three voters,
// and the last host has the role learner.
func clusterWithLearner(more int) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Learner, sc.MaxLearners = 2+more, 2, LearnerJoins, 2
		sc.Target = policy.Target{Voters: 3}
	}
}
