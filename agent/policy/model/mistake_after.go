// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// after returns rules that ignore earlier breaches, so that the exploration finds a later one.
func after(r rules, past ...breach) rules {
	r.ignored = past
	return r
}

// maskedMistakes returns further mistakes, so that for every promise there is a mistake that breaks it. Some of them
// break a different promise first. The exploration ignores that breach.
func maskedMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "the lock's validity counts from the receipt of the answer, and another agent takes the lock",
			breach: twoHolders,
			scope:  faults(1, AgentPause),
			rules:  after(rules{leaseBeforeValidity: true}, holderWithoutLock),
		},
		{
			Name: "a call outlives the validity of its lock, and another host joins meanwhile", breach: twoChanges,
			scope: faults(1, AgentPause),
			rules: after(rules{noDeadline: true}, changeWithoutLock),
		},
		{
			Name: "a membership change is sent without confirming the lock", breach: sentWithoutLock,
			scope: faults(1, AgentPause),
			rules: after(rules{noConfirm: true}, changeWithoutLock, holderWithoutLock),
		},
		{
			Name: "the lock holder changes the membership without an operation", breach: changeWithoutOp,
			scope: clusterWith(3, 1, 0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Op == nil && v.Lock.Mine {
					v.Op = &policy.Op{
						Kind: policy.KindJoin, Host: v.Self.ID, Target: policy.RoleVoter,
						Phase: policy.PhaseBegun, Token: v.Lock.Token, SameBoot: true,
					}
				}
			}),
		},
		{
			Name: "a learner that is down is promoted next to the only voter", breach: quorumLost,
			scope: clusterWith(3, 1, 1, EtcdCrash),
			rules: after(seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitFailed {
					v.Unit.State = policy.UnitActive
				}
				eachMember(v, func(m *policy.Member) {
					m.Live, m.Version, m.Lag, m.LagKnown, m.SteadyFor, m.LiveFor, m.StillFor = true, etcdVersion(), 0,
						true, ages, ages, 0
				})
			}), voterDown, learnerUnready),
		},
		{
			Name: "data is moved aside under a running etcd", breach: dataMovedUnderEtcd,
			scope: faults(1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitActive && v.Cluster.Reachable && v.Data.MemberID == goneID {
					v.Unit.State = policy.UnitInactive
				}
			}),
		},
		{
			Name: "two hosts receive bootstrap requests at once, against the documentation", breach: secondCluster,
			scope: func(sc *Scenario) { sc.Hosts, sc.Voters, sc.Founders = 3, 0, 2 },
		},
		{
			Name: "a host does not record that it became a member", breach: memberUnrecorded,
			scope: clusterWith(3, 1, 0, 0),
			rules: rules{decision: func(d *policy.Decision) { d.Notes.Self = policy.SelfNote{} }},
		},
		{
			Name: "no reason is reported for doing nothing", breach: noReason, scope: clusterWith(3, 1, 0, 0),
			rules: rules{decision: func(d *policy.Decision) { d.Reasons = nil }},
		},
		{
			Name: "a host reports itself ready despite reasons against it", breach: readyDiffers,
			scope: faults(1, HealthChange),
			rules: rules{decision: func(d *policy.Decision) { d.Waiting = "" }},
		},
	}
}

// maskedCycleMistakes returns further mistakes about host operations, as maskedMistakes does.
func maskedCycleMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "a host is taken down after another host has ended its operation",
			breach: stoppedWithoutOp, scope: oneRequest(3, 1, AgentPause),
			rules: after(seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Kind == policy.KindCycle && v.Op.Host != v.Self.ID {
					v.Op.Kind, v.Op.OrphanedFor, v.Op.MemberID = policy.KindJoin, ages, 0
				}
			}), cycleTouched),
		},
		{
			Name: "the next host is taken down before the previous one is back", breach: twoDown,
			scope: twoRequests(1, AgentCrash),
			rules: after(rules{noOpFence: true, takeUnfenced: true, view: func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op, v.IdleFor = nil, ages
				}
				eachMember(v, func(m *policy.Member) { m.Live = true })
				for i := range v.Hosts {
					v.Hosts[i].Health, v.Hosts[i].InOperation = health.OK, false
				}
			}}, recordOverwritten, stopAtRisk),
		},
		{
			Name: "how long a member has served again is not tracked", breach: hostNotBack,
			scope: withLiveness(oneRequest(3, 0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					ownMember(v, func(m *policy.Member) { m.LiveFor = 0 })
				}
			}),
		},
		{
			Name: "a request outlives its released operation", breach: hostNotBack,
			scope: withLiveness(oneRequest(3, 1, OperatorRelease)),
			rules: wrongRequestChange(policy.RequestEnds, policy.RequestStays),
		},
		{
			Name: "an etcd restart is not detected", breach: neverQuiescent, scope: withLiveness(oneRequest(3, 0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					v.Op.Restarted = false
				}
			}),
		},
		{
			Name:   "an etcd that an operator stops after a reboot counts as not started",
			breach: stoppedStarted, scope: oneRequest(3, 1, OperatorStop),
			rules: seeing(func(v *policy.View) { v.Unit.Ran = false }),
		},
	}
}
