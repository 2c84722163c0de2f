// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// transferring returns a scope in which an operator requests a leadership transfer in a cluster of three voters, with n
// faults of these classes.
func transferring(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Transfers, sc.Faults, sc.Budget = 3, 3, 1, class, n
		sc.Target = policy.Target{Voters: 3}
	}
}

// transferMistakes returns the mistakes about leadership transfers that operators request.
func transferMistakes() []Mistake {
	asked := func(change func(v *policy.View)) rules {
		return seeing(func(v *policy.View) {
			if v.TransferAsked != nil {
				change(v)
			}
		})
	}
	eachHost := func(change func(h *policy.Host)) rules {
		return asked(func(v *policy.View) {
			for i := range v.Hosts {
				change(&v.Hosts[i])
			}
		})
	}
	oneTakenDown := func(n int, class Faults) func(sc *Scenario) {
		return func(sc *Scenario) {
			transferring(n, class)(sc)
			sc.Requests = 1
		}
	}
	noted := func(change func(n *policy.TransferNote)) rules {
		return rules{decision: func(d *policy.Decision) { change(&d.Notes.Transfer) }}
	}
	return []Mistake{
		{
			Name: "leadership is transferred on request without the lock", breach: calledWithoutLock,
			scope: transferring(0, 0),
			rules: rules{
				noConfirm: true, view: func(v *policy.View) { v.Lock.Mine = v.Lock.Mine || v.TransferAsked != nil },
			},
		},
		{
			Name: "a requested transfer ignores the operation in flight", breach: transferredDuringOperation,
			scope: oneTakenDown(1, AgentCrash),
			rules: asked(func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op = nil
				}
			}),
		},
		{
			Name: "leadership is transferred on request to a voter that is down", breach: transferredToDead,
			scope: transferring(1, EtcdCrash),
			rules: asked(func(v *policy.View) { eachMember(v, func(m *policy.Member) { m.Live = true }) }),
		},
		{
			Name: "leadership is transferred on request to an unhealthy voter", breach: transferredToWorse,
			scope: transferring(1, HealthChange),
			rules: eachHost(func(h *policy.Host) {
				if h.Health == health.Slow {
					h.Health = health.OK
				}
			}),
		},
		{
			Name: "leadership is transferred on request to a voter whose health is unknown", breach: transferredToWorse,
			scope: transferring(1, HealthChange),
			rules: eachHost(func(h *policy.Host) {
				if h.Health == health.Unknown {
					h.Health = health.OK
				}
			}),
		},
		{
			Name:   "leadership is transferred on request to a host that is about to be taken down",
			breach: transferredToTaken,
			scope:  oneTakenDown(0, 0), rules: eachHost(func(h *policy.Host) { h.Wants, h.Waiting = "", "" }),
		},
		{
			Name: "an expired request to transfer leadership is carried out", breach: transferredUnasked,
			scope: transferring(0, 0), rules: asked(func(v *policy.View) { v.TransferAsked.Expired = false }),
		},
		{
			Name: "leadership is transferred to a different voter than requested", breach: transferredUnasked,
			scope: transferring(0, 0),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepTransferLeadership {
					d.Step.MemberID = 1
				}
			}},
		},
		{
			Name: "leadership is transferred on request during a pause", breach: stepWhilePaused,
			scope: transferring(1, OperatorPause), rules: asked(func(v *policy.View) { v.Pause = nil }),
		},
		{
			Name: "a request to transfer leadership ends at once", breach: transferDropped, scope: transferring(0, 0),
			rules: noted(func(n *policy.TransferNote) { n.Ends = true }),
		},
		{
			Name: "a request to transfer leadership never ends", breach: transferNeverEnds,
			scope: withLiveness(transferring(0, 0)), rules: noted(func(n *policy.TransferNote) { n.Ends = false }),
		},
	}
}
