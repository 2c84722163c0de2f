// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// resizing returns a scope in which three voters become one, with n faults of these classes.
func resizing(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.ResizeTo, sc.Faults, sc.Budget = 3, 3, 1, class, n
		sc.Target = policy.Target{Voters: 3}
	}
}

// retiring returns a scope with these numbers of hosts and voters, in which an operator retires one host, with n faults
// of these classes.
func retiring(hosts, voters, n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Retirements, sc.Faults, sc.Budget = hosts, voters, 1, class, n
		sc.Target = policy.Target{Voters: voters}
	}
}

// retireMistakes returns the mistakes about hosts that operators retire.
func retireMistakes() []Mistake {
	unretired := func(holds func(v *policy.View) bool) rules {
		return seeing(func(v *policy.View) {
			if holds(v) {
				v.Retired = nil
			}
		})
	}
	own := func(v *policy.View) bool { return len(v.Retired) > 0 && v.Retired[0].Host == v.Self.ID }
	return []Mistake{
		{
			Name: "a retired host joins", breach: retiredJoins,
			scope: func(sc *Scenario) {
				retiring(3, 1, 0, 0)(sc)
				sc.Target.Standbys = 1
			},
			rules: unretired(own),
		},
		{
			Name: "a retired learner without data stays", breach: targetMissed,
			scope: withLiveness(also(retiring(3, 1, 1, Swap), func(sc *Scenario) { sc.Target.Standbys = 1 })),
			rules: unretired(func(v *policy.View) bool {
				listed := slices.ContainsFunc(v.Cluster.Members, func(m policy.Member) bool {
					return m.PeerURL == v.Self.PeerURL
				})
				return own(v) && v.Data.State == policy.DataEmpty && listed
			}),
		},
		{
			Name: "no host joins in place of a retired voter", breach: targetMissed, scope: withLiveness(
				retiring(4, 3, 0, 0),
			),
			rules: unretired(func(v *policy.View) bool { return !own(v) }),
		},
		{
			Name:   "a different voter leaves instead of the retired one",
			breach: leftUnasked, scope: retiring(4, 3, 0, 0),
			rules: unretired(func(v *policy.View) bool {
				voters, _ := v.Cluster.Counts()
				return voters > v.Target.Voters && !own(v)
			}),
		},
		{
			Name: "a retired voter leaves before another host has joined", breach: leftUnasked, scope: retiring(4, 3, 0,
				0),
			rules: seeing(func(v *policy.View) {
				if own(v) {
					v.Target.Voters--
				}
			}),
		},
		{
			Name: "a retired standby stays", breach: targetMissed,
			scope: func(sc *Scenario) {
				withLiveness(retiring(2, 1, 0, 0))(sc)
				sc.Target.Standbys = 1
			},
			rules: unretired(own),
		},
		{
			Name: "a standby leaves although the configuration requires it", breach: leftUnasked,
			scope: func(sc *Scenario) {
				retiring(3, 1, 0, 0)(sc)
				sc.Target.Standbys = 1
			},
			rules: seeing(func(v *policy.View) {
				if v.Target.Resized {
					v.Target.Standbys = 0
				}
			}),
		},
	}
}

// replacingByName returns a scope in which an operator names the host that replaces one of three voters, with n faults
// of these classes.
func replacingByName(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		retiring(5, 3, n, class)(sc)
		sc.Successor = true
	}
}

// successorMistakes returns the mistakes about hosts that operators name to replace a voter.
func successorMistakes() []Mistake {
	unnamed := func(holds func(v *policy.View, r *policy.Retired) bool) rules {
		return seeing(func(v *policy.View) {
			for i := range v.Retired {
				if r := &v.Retired[i]; holds(v, r) {
					r.Successor = record.Successor{}
				}
			}
		})
	}
	host := func(v *policy.View, id string) (policy.Host, bool) {
		i := slices.IndexFunc(v.Hosts, func(h policy.Host) bool { return h.ID == id })
		if i < 0 {
			return policy.Host{}, false
		}
		return v.Hosts[i], true
	}
	return []Mistake{
		{
			Name:   "a different host joins instead of the named one",
			breach: successorIgnored, scope: replacingByName(0, 0),
			rules: unnamed(func(*policy.View, *policy.Retired) bool { return true }),
		},
		{
			Name: "the named host is ignored when it becomes unhealthy", breach: successorIgnored,
			scope: replacingByName(1, HealthChange),
			rules: unnamed(func(v *policy.View, r *policy.Retired) bool {
				h, present := host(v, r.Successor.Host)
				return present && h.Waiting != "" && h.Role != policy.RoleVoter
			}),
		},
		{
			Name: "the named host is ignored when its agent is gone", breach: successorIgnored,
			scope: replacingByName(1, AgentCrash),
			rules: unnamed(func(v *policy.View, r *policy.Retired) bool {
				_, present := host(v, r.Successor.Host)
				return !present
			}),
		},
		{
			Name: "the named host does not join", breach: targetMissed,
			scope: withLiveness(replacingByName(0, 0)),
			rules: seeing(func(v *policy.View) {
				for i := range v.Retired {
					if r := &v.Retired[i]; r.Successor.Host == v.Self.ID {
						r.Successor = record.Successor{Host: "X", Name: "X", PeerURL: "X"}
					}
				}
			}),
		},
		{
			Name: "a join that began before a different host was named continues", breach: successorIgnored,
			scope: func(sc *Scenario) {
				replacingByName(0, 0)(sc)
				sc.Retirements = 1
			},
			rules: unnamed(func(v *policy.View, _ *policy.Retired) bool {
				return v.Op != nil && v.Op.Kind == policy.KindJoin && v.Op.Host == v.Self.ID
			}),
		},
	}
}

// leaving reports whether the operation in flight is a leave.
func leaving(v *policy.View) bool { return v.Op != nil && v.Op.Kind == policy.KindLeave }

// resizeMistakes returns the mistakes about a cluster that operators resize.
func resizeMistakes() []Mistake {
	return append([]Mistake{
		{
			Name: "a voter leaves while another one is down", breach: removedAtRisk, scope: resizing(1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live = m.Live || v.Target.Resized })
			}),
		},
		{
			Name: "a voter leaves while another one is unhealthy", breach: removedAtRisk,
			scope: resizing(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					if v.Hosts[i].ID != v.Self.ID {
						v.Hosts[i].Health = v.Health.State
					}
				}
			}),
		},
		{
			Name: "more voters leave than the size requires", breach: leftUnasked, scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) { v.Target.Voters -= 2 * int(bit(v.Target.Voters > 1)) }),
		},
		{
			Name: "a leave continues after the cluster was resized back", breach: leftUnasked, scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) {
				if leaving(v) {
					v.Target.Voters = 1
				}
			}),
		},
		{
			Name: "the configured number of voters counts as a recorded size", breach: leftUnasked,
			scope: func(sc *Scenario) {
				resizing(0, 0)(sc)
				sc.Target.Voters, sc.ResizeTo = 1, 3
			},
			rules: seeing(func(v *policy.View) {
				v.Target = policy.Target{Voters: 1, Resized: true, WithoutSnapshot: true}
			}),
		},
		{
			Name: "a voter leaves on outdated reports", breach: replacedOnOldReports, scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Answered = true
				}
			}),
		},
		{
			Name: "a leader leaves without a leadership transfer", breach: leaderRemoved, scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) {
				if leaving(v) {
					eachMember(v, func(m *policy.Member) { m.Leader = false })
				}
			}),
		},
		{
			Name: "leadership is not checked again before a voter is removed", breach: leaderRemoved,
			scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) {
				if leaving(v) && v.Op.Phase == policy.PhaseRemoving {
					eachMember(v, func(m *policy.Member) { m.Leader = false })
				}
			}),
		},
		{
			Name: "a voter's removal is sent before its phase is recorded", breach: removedWithoutOperation,
			scope: resizing(0, 0),
			rules: seeing(func(v *policy.View) {
				if leaving(v) && v.Op.Phase == policy.PhaseBegun {
					v.Op.Phase = policy.PhaseRemoving
				}
			}),
		},
		{
			Name: "a leave begins before the last membership change has settled", breach: unsettled, scope: resizing(0,
				0),
			rules: seeing(func(v *policy.View) { v.Cluster.StableFor, v.IdleFor = ages, ages }),
		},
		{
			Name: "a leave ignores the operation in flight", breach: recordOverwritten,
			scope: func(sc *Scenario) {
				resizing(1, AgentCrash)(sc)
				sc.Requests = 1
			},
			rules: rules{noOpFence: true, view: func(v *policy.View) {
				if v.Target.Resized && v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op = nil
				}
			}},
		},
	}, resizeEndMistakes()...)
}

// resizeEndMistakes returns further mistakes about a cluster that operators resize.
func resizeEndMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a leave is ended while its removal may still be applied", breach: removalForgotten,
			scope: resizing(1, LateCall|AgentCrash),
			rules: seeing(func(v *policy.View) {
				if leaving(v) {
					v.Op.WrittenFor = ages
				}
			}),
		},
		{
			Name: "no voter ever leaves", breach: targetMissed, scope: withLiveness(resizing(0, 0)),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepBeginLeave {
					d.Step = policy.Step{}
				}
			}},
		},
		{
			Name:   "a leave whose agent is gone is never ended",
			breach: operationStuck, scope: withLiveness(resizing(1, AgentCrash)),
			rules: seeing(func(v *policy.View) {
				if leaving(v) {
					v.Op.OrphanedFor = 0
				}
			}),
		},
		{
			Name: "a voter leaves during a pause", breach: stepWhilePaused, scope: resizing(1, OperatorPause),
			rules: seeing(func(v *policy.View) {
				if v.Target.Resized {
					v.Pause = nil
				}
			}),
		},
		{
			Name: "the data of a voter is moved aside before it has left", breach: memberDataMoved, scope: resizing(0,
				0),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepRemoveMember {
					d.Step.Kind = policy.StepMoveDataAside
				}
			}},
		},
	}
}
