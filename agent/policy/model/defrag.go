// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// A defragmentation is a command that also deletes the old database at its end. Package defrag promises that the
// database is complete at every moment, and its tests kill the process at every point. In the model, a defragmentation
// succeeds, fails, or is cut off by a reboot.

// defrags returns the scopes of defragmentations.
func defrags() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "one host defragmented, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 1, Work: command,
			Defrag: true, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		{
			Name: "two hosts defragmented", Hosts: 3, Voters: 3, Target: three, Requests: 2, Work: command,
			Defrag: true, Liveness: true,
		},
	}
}

// defragmented returns a scope in which the requests are for a defragmentation.
func defragmented(scope func(sc *Scenario)) func(sc *Scenario) {
	return func(sc *Scenario) {
		scope(sc)
		sc.Work, sc.Defrag = command, true
	}
}

// defragMistakes returns the mistakes about a defragmentation.
func defragMistakes() []Mistake {
	one := defragmented(oneRequest(3, 0, 0))
	asked := func(change func(v *policy.View, a *policy.Asked)) rules {
		return seeing(func(v *policy.View) {
			if v.Asked != nil && v.Asked.Work == policy.WorkDefrag {
				change(v, v.Asked)
			}
		})
	}
	own := func(v *policy.View, change func(m *policy.Member)) {
		for i := range v.Cluster.Members {
			if m := &v.Cluster.Members[i]; m.PeerURL == v.Self.PeerURL {
				change(m)
			}
		}
	}
	healthy := func(m *policy.Member) {
		m.Live, m.Errors, m.LagKnown, m.Lag = true, false, true, 0
		m.LiveFor, m.SteadyFor = time.Hour, time.Hour
	}
	return []Mistake{
		{
			Name: "etcd is not started after a failed defragmentation", breach: hostNotBack,
			scope: withLiveness(one), rules: asked(func(_ *policy.View, a *policy.Asked) {
				if a.Command.State == policy.HooksFailed {
					a.Command.State = policy.HooksRunning
				}
			}),
		},
		{
			Name: "a defragmentation ends while the member is down", breach: endedEarly, scope: one,
			rules: asked(func(v *policy.View, a *policy.Asked) {
				a.OldDeleted = true
				own(v, healthy)
			}),
		},
		{
			Name: "the database is compacted while etcd runs", breach: ranWhileEtcdRuns, scope: one,
			rules: asked(func(v *policy.View, a *policy.Asked) {
				a.Stopped, v.Unit.State = true, policy.UnitInactive
			}),
		},
		{
			Name: "etcd is started while the database is compacted", breach: startedDuringCommand, scope: one,
			rules: asked(func(_ *policy.View, a *policy.Asked) {
				if a.Command.State == policy.HooksRunning {
					a.Command.State = policy.HooksDone
				}
			}),
		},
		{
			Name: "the old database is deleted before the member is healthy", breach: oldDeletedEarly, scope: one,
			rules: asked(func(v *policy.View, a *policy.Asked) {
				if a.Command.Ended() && !a.OldDeleted {
					own(v, healthy)
				}
			}),
		},
		{
			Name: "a failed defragmentation counts as successful", breach: notRun, scope: one,
			rules: asked(func(_ *policy.View, a *policy.Asked) {
				if a.Command.State == policy.HooksFailed {
					a.Command.State = policy.HooksDone
				}
			}),
		},
		{
			Name: "two hosts are defragmented at once", breach: recordOverwritten,
			scope: defragmented(twoRequests(1, AgentCrash)),
			rules: rules{noOpFence: true, takeUnfenced: true, view: func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op, v.IdleFor = nil, 90*time.Second
					v.Lock.Held, v.Cluster.StableFor = false, time.Hour
					eachMember(v, healthy)
				}
			}},
		},
	}
}
