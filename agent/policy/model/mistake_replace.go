// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// replacements returns a scope in which a spare replaces one dead voter of three, with n faults of these classes in
// addition to the dead host.
func replacements(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Repair, sc.Faults, sc.Budget = 4, 3, true, HostCrash|class, n+1
		sc.Target = policy.Target{Voters: 3}
	}
}

// replacementsDuringMaintenance is like replacements, with a request for a host operation.
func replacementsDuringMaintenance(sc *Scenario) {
	replacements(0, 0)(sc)
	sc.Requests = 1
}

// byStandby is like replacements, with a standby instead of a spare.
func byStandby(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		replacements(n, class)(sc)
		sc.Target.Standbys = 1
	}
}

// inReplacement reports whether a replacement is in flight.
func inReplacement(v *policy.View) bool { return v.Op != nil && v.Op.Kind == policy.KindReplace }

// reportDead changes the view so that every voter reports a member dead.
func reportDead(v *policy.View, id uint64) {
	url := ""
	eachMember(v, func(m *policy.Member) {
		if m.ID == id {
			m.Live, m.AgentGoneFor, url = false, ages, m.PeerURL
		}
	})
	v.Hosts = slices.DeleteFunc(slices.Clone(v.Hosts), func(h policy.Host) bool { return h.PeerURL == url })
	for i := range v.Hosts {
		v.Hosts[i].Sees = reportsLost(id)
	}
}

// replacementMistakes returns the mistakes about voters that are replaced.
func replacementMistakes() []Mistake {
	return slices.Concat(deadMistakes(), repairMistakes(), surplusMistakes(), abortedReplacementMistakes(),
		ejectedMistakes())
}

// deadMistakes returns the mistakes about which voter is dead.
func deadMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a voter without an agent counts as dead", breach: liveReplaced,
			scope: replacements(0, AgentCrash),
			rules: seeing(func(v *policy.View) {
				for _, m := range v.Cluster.Members {
					gone := !slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.PeerURL == m.PeerURL })
					if gone && !m.Learner {
						reportDead(v, m.ID)
					}
				}
			}),
		},
		{
			Name: "a voter with a stopped etcd counts as dead although its agent runs", breach: liveReplaced,
			scope: replacements(0, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				for _, m := range v.Cluster.Members {
					if !m.Live && !m.Learner {
						reportDead(v, m.ID)
					}
				}
			}),
		},
		{
			Name: "a single agent can declare a voter dead", breach: liveReplaced,
			scope: replacements(0, HostCrash|AgentCrash|EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if m.DownFor = 0; !m.Live && !m.Learner && m.AgentGoneFor == 0 {
						m.AgentGoneFor = ages
					}
				})
				for i := range v.Hosts {
					v.Hosts[i].MemberLostFor = ages
					for _, m := range v.Cluster.Members {
						if !m.Live && !m.Learner {
							v.Hosts[i].Sees = reportsLost(m.ID)
						}
					}
				}
			}),
		},
		{
			Name: "a dead voter's return is not rechecked before its removal", breach: liveReplaced,
			scope: replacements(0, 0),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) {
					reportDead(v, v.Op.Replaces)
				}
			}),
		},
		{
			Name: "reports from before the operation count as current", breach: replacedOnOldReports,
			scope: replacements(0, 0),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Answered = true
				}
			}),
		},
		{
			Name: "a voter is replaced although it responds to one host", breach: liveReplaced,
			scope: replacements(0, AgentCutOff),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					present := slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.PeerURL == m.PeerURL })
					if m.Live && !m.Learner && !present { // no host record, but the voter answers this host
						reportDead(v, m.ID)
					}
				})
			}),
		},
	}
}

// deadSurplus returns a scope with four voters, one more than configured, and no spare. One voter dies, and up to n
// more faults of these classes occur.
func deadSurplus(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		replacements(n, class)(sc)
		sc.Voters = 4
	}
}

// surplusMistakes returns the mistakes about a dead surplus voter.
func surplusMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a dead surplus voter stays", breach: notReplaced, scope: withLiveness(deadSurplus(0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Op == nil {
					v.Limits.DeadGrace = 0
				}
			}),
		},
		{
			Name: "a surplus voter without an agent counts as dead", breach: liveReplaced,
			scope: deadSurplus(0, AgentCrash),
			rules: seeing(func(v *policy.View) {
				for _, m := range v.Cluster.Members {
					gone := !slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.PeerURL == m.PeerURL })
					if gone {
						reportDead(v, m.ID)
					}
				}
			}),
		},
		{
			Name: "a dead surplus voter is removed although it is back", breach: liveReplaced,
			scope: deadSurplus(0, 0),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) {
					reportDead(v, v.Op.Replaces)
				}
			}),
		},
		{
			Name: "a dead surplus voter is removed on outdated reports", breach: replacedOnOldReports,
			scope: deadSurplus(0, 0),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Answered = true
				}
			}),
		},
		{
			Name: "a dead surplus voter is removed while another voter is unhealthy", breach: replacedInCommon,
			scope: deadSurplus(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Health = health.OK
				}
			}),
		},
	}
}

// repairMistakes returns the mistakes about when a dead voter is replaced, and by which host.
func repairMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a dead voter is replaced while another voter is unhealthy", breach: replacedInCommon,
			scope: replacements(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Health = health.OK
				}
			}),
		},
		{
			Name: "an unhealthy spare replaces a voter", breach: removedWithoutReplacement,
			scope: replacements(1, HealthChange),
			rules: seeing(func(v *policy.View) { v.Health.State = health.OK }),
		},
		{
			Name: "a spare with a wrong clock replaces a voter", breach: removedWithoutReplacement,
			scope: replacements(1, ClockChange),
			rules: seeing(func(v *policy.View) { v.Clock.Offset = 0 }),
		},
		{
			Name: "a standby that has not caught up replaces a voter", breach: removedWithoutReplacement,
			scope: byStandby(1, Slowness),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Lag, m.LagKnown, m.SteadyFor, m.LiveFor = 0, true, ages, ages
				})
			}),
		},
		{
			Name: "a dead voter is replaced right after a membership change", breach: unsettled,
			scope: byStandby(0, 0),
			rules: seeing(func(v *policy.View) { v.Cluster.StableFor, v.IdleFor = ages, ages }),
		},
		{
			Name: "a replacement does not wait for the lock", breach: writeWithoutLock, scope: replacements(0, 0),
			rules: rules{noConfirm: true, noTokenFence: true, view: func(v *policy.View) {
				v.Lock.Held, v.Lock.Mine, v.Lock.Token = true, true, tokenNow
			}},
		},
		{
			Name: "a removal is sent to etcd without being recorded first", breach: removedWithoutOperation,
			scope: replacements(0, 0),
			rules: after(seeing(func(v *policy.View) {
				if inReplacement(v) && v.Op.Phase == policy.PhaseBegun {
					v.Op.Phase = policy.PhaseRemoving
				}
			}), replacedOnOldReports),
		},
		{
			Name: "a dead voter is never replaced", breach: notReplaced, scope: withLiveness(replacements(0, 0)),
			rules: seeing(func(v *policy.View) { v.Limits.DeadGrace = 0 }),
		},
		{
			Name: "a spare that could replace a dead voter counts as not ready", breach: readyDiffers,
			scope: replacements(0, 0),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Waiting == "" && d.Role == policy.RoleSpare {
					d.Waiting = policy.VoterNotLive
				}
			}},
		},
	}
}

// abortedReplacementMistakes returns the mistakes about a replacement that does not complete.
func abortedReplacementMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a replacement ends while its removal may still be applied", breach: removalForgotten,
			scope: replacements(1, LateCall),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) {
					v.Op.WrittenFor = ages
				}
			}),
		},
		{
			Name: "a replacement ends as if its removal had not been sent", breach: removalForgotten,
			scope: replacements(1, LateCall),
			rules: after(seeing(func(v *policy.View) {
				if inReplacement(v) && v.Op.Phase == policy.PhaseRemoving {
					if dead := v.Cluster.Members; slices.ContainsFunc(dead, func(m policy.Member) bool {
						return m.ID == v.Op.Replaces && m.Live
					}) {
						v.Op.Phase = policy.PhaseBegun
					}
				}
			}), joinMiscounted),
		},
		{
			Name: "a replacement is adopted as soon as its lock is gone", breach: adoptedEarly,
			scope: replacements(1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) {
					v.Op.OrphanedFor = ages
				}
			}),
		},
		{
			Name: "a replacement whose agent is gone is never adopted", breach: operationStuck,
			scope: withLiveness(replacements(1, AgentCrash)),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) {
					v.Op.OrphanedFor = 0
				}
			}),
		},
		{
			Name:   "an operation blocked by a dead voter does not end, and blocks the replacement",
			breach: notReplaced, scope: withLiveness(replacementsDuringMaintenance),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Kind == policy.KindCycle {
					v.Op.WrittenFor = 0
				}
			}),
		},
		{
			Name:   "an etcd that was stopped for a reboot stays stopped when another voter dies",
			breach: notReplaced, scope: withLiveness(replacementsDuringMaintenance),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && !v.Cluster.Reachable {
					v.Asked.RebootFor = 0
				}
			}),
		},
		{
			Name:   "an operation does not end if etcd runs again but is still recorded as stopped",
			breach: notReplaced, scope: withLiveness(replacementsDuringMaintenance),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Asked != nil && v.Asked.Stopped && v.Unit.State == policy.UnitActive {
					v.Op.WrittenFor = 0
				}
			}),
		},
		{
			Name: "an aborted replacement waits forever", breach: operationStuck,
			scope: withLiveness(replacements(1, AgentCrash)),
			rules: seeing(func(v *policy.View) {
				if inReplacement(v) && v.Op.Phase == policy.PhaseRollback {
					v.Op.WrittenFor = 0
				}
			}),
		},
	}
}
