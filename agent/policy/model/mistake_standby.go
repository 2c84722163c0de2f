// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// withSpare returns a scope in which a voter has a standby, and a spare could replace that standby, with n faults of
// these classes.
func withSpare(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Repair, sc.Faults, sc.Budget = 3, 1, true, class, n
		sc.Target = policy.Target{Voters: 1, Standbys: 1}
	}
}

// showStandbysLost shows as lost every started learner for which where returns true.
func showStandbysLost(v *policy.View, where func(m *policy.Member) bool) {
	eachMember(v, func(m *policy.Member) {
		if m.Learner && m.Name != "" && where(m) {
			m.Live, m.LagKnown, m.Lag = true, true, 1000
			m.StalledFor, m.StillFor, m.BehindFor = ages, ages, ages
		}
	})
}

// standbyMistakes returns the mistakes about a lost standby.
func standbyMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a standby that keeps up is removed", breach: usefulStandbyRemoved, scope: withSpare(0, 0),
			rules: seeing(func(v *policy.View) {
				showStandbysLost(v, func(m *policy.Member) bool { return m.Standby })
			}),
		},
		{
			Name: "a standby whose health is unknown is removed as unhealthy", breach: usefulStandbyRemoved,
			scope: withSpare(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					if h := &v.Hosts[i]; h.Role == policy.RoleStandby && h.Health == health.Unknown {
						h.Health, h.UnhealthySince.For = health.Slow, ages
					}
				}
			}),
		},
		{
			Name: "a standby with a restarting etcd is removed although its agent runs", breach: usefulStandbyRemoved,
			scope: withSpare(1, EtcdCrash),
			rules: seeing(func(v *policy.View) { showStandbysLost(v, func(m *policy.Member) bool { return !m.Live }) }),
		},
		{
			Name: "a standby is removed when only its agent is down", breach: usefulStandbyRemoved,
			scope: withSpare(1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				showStandbysLost(v, func(m *policy.Member) bool {
					for _, h := range v.Hosts {
						if h.PeerURL == m.PeerURL {
							return false
						}
					}
					return true
				})
			}),
		},
		{
			Name: "a standby that has just fallen behind is removed", breach: usefulStandbyRemoved,
			scope: withSpare(1, Slowness),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if m.Standby {
						m.StalledFor, m.BehindFor = ages, ages
					}
				})
			}),
		},
		{
			Name: "a standby is removed although no other host is ready", breach: standbyWithoutReplacement,
			scope: withSpare(1, HostCrash|HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Waiting = ""
				}
			}),
		},
		{
			Name: "a standby is removed although it is back", breach: usefulStandbyRemoved,
			scope: withSpare(1, HostCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Outcome == policy.StandbyLost {
					showStandbysLost(v, func(*policy.Member) bool { return true })
				}
			}),
		},
		{
			Name: "a lost standby is never removed", breach: notReplaced, scope: withLiveness(withSpare(1, HostCrash)),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.AgentGoneFor, m.StalledFor = 0, 0 })
			}),
		},
	}
}
