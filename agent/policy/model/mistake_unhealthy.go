// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// unhealthyScope returns a scope in which a spare replaces one unhealthy voter of three, with n further faults of
// these classes.
func unhealthyScope(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Unhealthy, sc.Faults, sc.Budget = 4, 3, true, HealthChange|class, n+1
		sc.Target = policy.Target{Voters: 3}
	}
}

// surplus returns a scope with four voters, one more than configured. One voter becomes unhealthy, and up to n agents
// die.
func surplus(n int) func(sc *Scenario) {
	return func(sc *Scenario) {
		unhealthyScope(n, AgentCrash)(sc)
		sc.Voters = 4
	}
}

// withTardyVoter returns the scope with unhealthy voters that, if they do not answer, are too slow rather than hung.
func withTardyVoter(scope func(sc *Scenario)) func(sc *Scenario) {
	return func(sc *Scenario) {
		scope(sc)
		sc.Tardy = true
	}
}

// eachHost returns a mistake in what a view shows about every host.
func eachHost(change func(v *policy.View, h *policy.Host)) rules {
	return seeing(func(v *policy.View) {
		for i := range v.Hosts {
			change(v, &v.Hosts[i])
		}
	})
}

// withFsyncs returns a mistake in what a view shows about every member, including its fsyncs, and about its host.
func withFsyncs(change func(m *policy.Member, h *policy.Host)) rules {
	return eachHost(func(v *policy.View, h *policy.Host) {
		eachMember(v, func(m *policy.Member) {
			if m.PeerURL == h.PeerURL {
				change(m, h)
			}
		})
	})
}

// ofReplaced returns a mistake in what a view shows about the replaced member and its host.
func ofReplaced(change func(v *policy.View, m *policy.Member, h *policy.Host)) rules {
	return eachHost(func(v *policy.View, h *policy.Host) {
		eachMember(v, func(m *policy.Member) {
			if inReplacement(v) && m.ID == v.Op.Replaces && m.PeerURL == h.PeerURL {
				change(v, m, h)
			}
		})
	})
}

// whileItVotes returns a mistake in the view of a host that is a voter during its replacement of another voter.
func whileItVotes(change func(v *policy.View)) rules {
	return seeing(func(v *policy.View) {
		for _, m := range v.Cluster.Members {
			if inReplacement(v) && v.Op.Host == v.Self.ID && m.PeerURL == v.Self.PeerURL && !m.Learner {
				change(v)
				return
			}
		}
	})
}

// assumeAbsentHealth returns a change of the view: while there is a surplus voter, every voter without a host record is
// shown with this health state.
func assumeAbsentHealth(state health.State) func(v *policy.View) {
	return func(v *policy.View) {
		if voters, _ := v.Cluster.Counts(); voters <= v.Target.Voters {
			return
		}
		for _, m := range v.Cluster.Members {
			present := slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.PeerURL == m.PeerURL })
			if !present && !m.Learner {
				v.Hosts = append(slices.Clone(v.Hosts), policy.Host{
					ID: m.PeerURL, Name: m.PeerURL, PeerURL: m.PeerURL, Role: policy.RoleVoter, Manage: true,
					Health: state, Answered: true,
				})
			}
		}
	}
}

// unhealthyMistakes returns the mistakes about unhealthy voters.
func unhealthyMistakes() []Mistake {
	return append(witnessMistakes(), []Mistake{
		{
			Name: "an unhealthy voter that fails reads counts as live", breach: voterDown,
			scope: unhealthyScope(1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if m.Fsyncs.SlowFor > 0 {
						m.Live, m.Version, m.DownFor = true, etcdVersion(), 0
					}
				})
			}),
		},
		{
			Name: "an unhealthy voter that responds is removed as if it did not", breach: removedBeforeJoin,
			scope: unhealthyScope(0, 0),
			rules: ofReplaced(func(_ *policy.View, m *policy.Member, h *policy.Host) {
				m.Live, m.DownFor, h.UnhealthySince.HangsFor = false, ages, ages
			}),
		},
		{
			Name: "an unhealthy voter that responds too slowly is removed as if it hung", breach: removedBeforeJoin,
			scope: withTardyVoter(unhealthyScope(1, EtcdCrash)),
			rules: ofReplaced(func(_ *policy.View, _ *policy.Member,
				h *policy.Host,
			) {
				h.UnhealthySince.HangsFor = ages
			}),
		},
		{
			Name:   "no host reports its connections to an unhealthy voter that responds too slowly",
			breach: neverQuiescent, scope: withLiveness(withTardyVoter(unhealthyScope(0, 0))),
			rules: eachHost(func(_ *policy.View, h *policy.Host) { h.Sees = nil }),
		},
		{
			Name: "a down voter is overlooked while an unhealthy one responds too slowly", breach: voterDown,
			scope: withTardyVoter(unhealthyScope(1, EtcdCrash)),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if inReplacement(v) && m.ID != v.Op.Replaces && !m.Learner {
						m.Live, m.Version = true, etcdVersion()
					}
				})
			}),
		},
		{
			Name: "an unhealthy leader is removed without a leadership transfer", breach: leaderRemoved,
			scope: unhealthyScope(0, 0),
			rules: ofReplaced(func(_ *policy.View, m *policy.Member, _ *policy.Host) { m.Leader = false }),
		},
		{
			Name: "an unhealthy voter is removed while another voter is down", breach: removedAtRisk,
			scope: unhealthyScope(1, EtcdCrash),
			rules: whileItVotes(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live, m.Version = true, etcdVersion() })
			}),
		},
		{
			Name: "outdated reports about an unhealthy voter count as current", breach: replacedOnOldReports,
			scope: unhealthyScope(0, 0),
			rules: eachHost(func(_ *policy.View, h *policy.Host) { h.Answered = true }),
		},
		{
			Name: "an unhealthy spare replaces an unhealthy voter", breach: removedWithoutReplacement,
			scope: unhealthyScope(1, 0),
			rules: seeing(func(v *policy.View) {
				v.Health.State = health.OK
				for i := range v.Hosts {
					if h := &v.Hosts[i]; h.ID == v.Self.ID {
						h.Health, h.UnhealthySince = health.OK, policy.UnhealthySince{}
					}
				}
			}),
		},
		{
			Name: "an unhealthy surplus voter stays while an agent is down", breach: notReplaced,
			scope: withLiveness(surplus(1)),
			rules: seeing(assumeAbsentHealth(health.Unknown)),
		},
		{
			Name: "a voter without an agent counts as healthy when an unhealthy one is removed", breach: removedAtRisk,
			scope: surplus(2), rules: after(whileItVotes(assumeAbsentHealth(health.OK)), replacedOnOldReports),
		},
		{
			Name: "a recovered voter is removed while another voter is unhealthy", breach: healthyRemoved,
			scope: unhealthyScope(1, 0),
			rules: ofReplaced(func(v *policy.View, m *policy.Member, h *policy.Host) {
				for i := range v.Hosts {
					if h.Health == health.OK && m.Live {
						v.Hosts[i].Health, v.Hosts[i].UnhealthySince = health.OK, policy.UnhealthySince{}
					}
				}
			}),
		},
		{
			Name: "an unhealthy voter is never replaced", breach: notReplaced,
			scope: withLiveness(unhealthyScope(0, 0)),
			rules: seeing(func(v *policy.View) { v.Limits.UnhealthyGrace = 0 }),
		},
	}...)
}

// witnessMistakes returns the mistakes about which voter is unhealthy.
func witnessMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "a voter's own health state counts as evidence from its etcd's metrics",
			breach: liveReplaced, scope: unhealthyScope(0, 0),
			rules: withFsyncs(func(m *policy.Member, h *policy.Host) {
				if h.Health == health.Slow {
					m.Fsyncs.SlowFor = ages
				}
			}),
		},
		{
			Name: "a voter is replaced on the metrics of its etcd alone", breach: liveReplaced,
			scope: unhealthyScope(0, 0),
			rules: withFsyncs(func(m *policy.Member, h *policy.Host) {
				if m.Fsyncs.SlowFor > 0 {
					h.Health, h.UnhealthySince.For, h.Recovers = health.Slow, ages, false
				}
			}),
		},
		{
			Name: "an unhealthy voter is replaced while another voter is unhealthy", breach: replacedInCommon,
			scope: unhealthyScope(1, 0),
			rules: withFsyncs(func(m *policy.Member, h *policy.Host) {
				if m.Fsyncs.SlowFor == 0 {
					h.Health, h.Strained = health.OK, false
				}
			}),
		},
		{
			Name: "an unhealthy voter is replaced although another voter was recently WARM", breach: replacedInCommon,
			scope: unhealthyScope(1, ClockChange),
			rules: eachHost(func(_ *policy.View, h *policy.Host) { h.Strained = h.Health == health.Slow }),
		},
		{
			Name: "a voter that is SLOW only because of past samples counts as slow now", breach: liveReplaced,
			scope: unhealthyScope(1, ClockChange),
			rules: eachHost(func(_ *policy.View, h *policy.Host) {
				if h.Recovers {
					h.Recovers, h.UnhealthySince.For = false, ages
				}
			}),
		},
		{
			Name: "a recovered voter is replaced", breach: healthyReplaced,
			scope: unhealthyScope(0, 0),
			rules: ofReplaced(func(_ *policy.View, m *policy.Member, h *policy.Host) {
				h.Health, h.Recovers, h.UnhealthySince = health.Slow, false, policy.UnhealthySince{For: ages}
				m.Fsyncs.SlowFor = ages
			}),
		},
	}
}
