// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// removals returns a scope in which an operator removes one of three voters, with n faults of these classes.
func removals(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Removals, sc.Faults, sc.Budget = 3, 3, 1, class, n
	}
}

// removedMember returns the ID of the member to be removed, or 0.
func removedMember(v *policy.View) uint64 {
	switch {
	case v.Op != nil && v.Op.Kind == policy.KindRemove:
		return v.Op.MemberID
	case v.Removal != nil:
		return v.Removal.MemberID
	}
	return 0
}

// removalMistakes returns the mistakes about members that operators remove.
func removalMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a voter with a removal request counts as dead", breach: liveRemoved, scope: removals(0, 0),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Live, m.DownFor = m.Live && m.ID != removedMember(v), ages
				})
			}),
		},
		{
			Name: "a voter's return is not rechecked before its removal", breach: liveRemoved,
			scope: removals(1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Kind == policy.KindRemove {
					eachMember(v, func(m *policy.Member) {
						m.Live, m.DownFor = m.Live && m.ID != removedMember(v), ages
					})
				}
			}),
		},
		{
			Name: "down voters count as live when a voter is removed", breach: removedAtRisk,
			scope: removals(1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Live = m.Live || removedMember(v) != 0 && m.ID != removedMember(v)
				})
			}),
		},
		{
			Name: "a removal ignores the operation in flight", breach: recordOverwritten,
			scope: func(sc *Scenario) {
				removals(1, AgentCrash)(sc)
				sc.Voters = 2
			},
			rules: rules{noOpFence: true, takeUnfenced: true, view: func(v *policy.View) {
				if v.Removal != nil && v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op = nil
				}
			}},
		},
		{
			Name: "a removal does not wait for the lock", breach: writeWithoutLock, scope: removals(0, 0),
			rules: rules{noConfirm: true, noTokenFence: true, view: func(v *policy.View) {
				if v.Removal != nil {
					v.Lock.Held, v.Lock.Mine, v.Lock.Token = true, true, tokenNow
				}
			}},
		},
		{
			Name: "a member is removed without a recorded removal", breach: removedWithoutOperation,
			scope: removals(0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Removal != nil && v.Removal.Live && v.Op != nil && v.Op.Kind == policy.KindRemove {
					v.Op.Phase = policy.PhaseRemoving
				}
			}),
		},
		{
			Name:   "a removal that may have been sent is aborted when its member is back",
			breach: removalForgotten, scope: removals(2, EtcdCrash|LateCall),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if v.Op != nil && v.Op.Kind == policy.KindRemove && m.ID == v.Op.MemberID && m.Live {
						v.Op.Phase, v.Removal = policy.PhaseBegun, nil
					}
				})
			}),
		},
		{
			Name: "a removal request is dropped before it expires", breach: removalDropped, scope: removals(0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Removal != nil {
					v.Removal.Expired = true
				}
			}),
		},
		{
			Name: "a removal request is dropped while its operation is in flight", breach: removalDropped,
			scope: removals(0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Removal != nil && v.Removal.Begun {
					v.Op = nil
				}
			}),
		},
		{
			Name: "a running removal counts as not begun", breach: removedAgain,
			scope: removals(1, OperatorRelease),
			rules: seeing(func(v *policy.View) {
				if v.Removal != nil {
					v.Removal.Begun = false
				}
			}),
		},
		{
			Name: "a removal request is never dropped", breach: removalNeverEnds, scope: withLiveness(removals(0, 0)),
			rules: rules{decision: func(d *policy.Decision) { d.Notes.Removal = policy.RemovalNote{} }},
		},
	}
}
