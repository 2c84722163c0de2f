// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// after ignores earlier breaches, so that the one behind them is found.
func after(r rules, past ...breach) rules {
	r.past = past
	return r
}

// graveMistakes returns mistakes that break a promise only after another one, or in a way of their own. With them, a
// mistake breaks every promise.
func graveMistakes() []Mistake {
	return []Mistake{
		{
			Name: "validity counts from receipt, and another agent takes the lock", breach: twoHolders,
			scope: faults(1, AgentPause),
			rules: after(rules{leaseBeforeValidity: true}, holderWithoutLock),
		},
		{
			Name: "a call does not end with the validity, and another host joins meanwhile", breach: twoChanges,
			scope: faults(1, AgentPause),
			rules: after(rules{noDeadline: true}, changeWithoutLock),
		},
		{
			Name: "a change of membership is sent without asking for the lock again", breach: sentWithoutLock,
			scope: faults(1, AgentPause),
			rules: after(rules{noConfirm: true}, changeWithoutLock, holderWithoutLock),
		},
		{
			Name: "the lock holder changes the membership without an operation", breach: changeWithoutOp,
			scope: of(3, 1, 0, 0),
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
			scope: of(3, 1, 1, EtcdCrash),
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
			Name: "two hosts are asked to bootstrap at once, against the documentation", breach: secondCluster,
			scope: func(sc *Scenario) { sc.Hosts, sc.Voters, sc.Founders = 3, 0, 2 },
		},
		{
			Name: "a host does not record that it became a member", breach: selfUnnoted, scope: of(3, 1, 0, 0),
			rules: rules{say: func(d *policy.Decision) { d.Notes.Self = policy.SelfNote{} }},
		},
		{
			Name: "no reason is reported for doing nothing", breach: noReason, scope: of(3, 1, 0, 0),
			rules: rules{say: func(d *policy.Decision) { d.Reasons = nil }},
		},
		{
			Name: "a host reports itself ready despite reasons against it", breach: readyDiffers,
			scope: faults(1, HealthChange),
			rules: rules{say: func(d *policy.Decision) { d.Waiting = "" }},
		},
	}
}

// graveCycleMistakes returns those about hosts that are taken down and brought back.
func graveCycleMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "a host is taken down, and another one has released its operation meanwhile",
			breach: stoppedWithoutOp, scope: asking(3, 1, AgentPause),
			rules: after(seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Kind == policy.KindCycle && v.Op.Host != v.Self.ID {
					v.Op.Kind, v.Op.OrphanedFor, v.Op.MemberID = policy.KindJoin, ages, 0
				}
			}), cycleTouched),
		},
		{
			Name: "the next host is taken down before the previous one is back", breach: twoDown,
			scope: asking2(1, AgentCrash),
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
			Name: "the time since a member serves again is not tracked", breach: notBack,
			scope: lively(asking(3, 0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					ownMember(v, func(m *policy.Member) { m.LiveFor = 0 })
				}
			}),
		},
		{
			Name: "a request outlives its released operation", breach: notBack,
			scope: lively(asking(3, 1, OperatorRelease)),
			rules: requesting(policy.RequestEnds, policy.RequestStays),
		},
		{
			Name: "an etcd restart is not detected", breach: noRest, scope: lively(asking(3, 0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					v.Op.Restarted = false
				}
			}),
		},
		{
			Name:   "an etcd that an operator stops after a reboot counts as not started",
			breach: stoppedStarted, scope: asking(3, 1, OperatorStop),
			rules: seeing(func(v *policy.View) { v.Unit.Ran = false }),
		},
	}
}
