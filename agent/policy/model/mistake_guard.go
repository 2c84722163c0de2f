// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// wrongStartGuard returns a mistake that replaces one change of the start guard in the notes with a wrong one.
func wrongStartGuard(right, wrong policy.StartGuard) rules {
	return rules{decision: func(d *policy.Decision) {
		if d.Notes.StartGuard == right {
			d.Notes.StartGuard = wrong
		}
	}}
}

// wrongStepGuard returns a mistake that makes every step of that kind begin with a wrong change of the start guard.
func wrongStepGuard(kind policy.StepKind, wrong policy.StartGuard) rules {
	return rules{decision: func(d *policy.Decision) {
		if d.Step.Kind == kind {
			d.Step.Guard = wrong
		}
	}}
}

// guardMistakes returns the mistakes about the start guard.
func guardMistakes() []Mistake {
	return []Mistake{
		{
			Name: "maintenance sets no start guard", breach: startedEarly, scope: oneRequest(3, 1, HostCrash),
			rules: wrongStepGuard(policy.StepTakeDown, policy.GuardUnchanged),
		},
		{
			Name: "maintenance sets no start guard for an etcd that is already down", breach: startedEarly,
			scope: oneRequest(3, 2, HostCrash|EtcdCrash),
			rules: after(seeing(func(v *policy.View) {
				if v.Asked != nil && v.Unit.State != policy.UnitActive {
					v.Asked.Stopped = true
				}
			}), recalledNeedlessly),
		},
		{
			Name: "a reboot, restart or command sets the start guard", breach: startGuardStays,
			scope: oneRequest(3, 1, HostCrash), rules: wrongStepGuard(policy.StepTakeDown, policy.GuardSet),
		},
		{
			Name: "the start guard is not removed before etcd is started", breach: startGuardStays,
			scope: oneRequest(3, 1, HostCrash), rules: wrongStepGuard(policy.StepStartUnit, policy.GuardUnchanged),
		},
		{
			Name: "the start guard is removed only if etcd is started", breach: startGuardStays,
			scope: oneRequest(3, 2, AgentCrash|HostCrash),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Notes.StartGuard == policy.GuardCleared {
					d.Notes.StartGuard = policy.GuardUnchanged
				}
				d.Notes.Request.Guard = policy.GuardUnchanged
			}},
		},
		{
			Name: "the start guard outlives the request", breach: startGuardStays,
			scope: oneRequest(3, 1, AgentCrash),
			rules: rules{decision: func(d *policy.Decision) {
				d.Notes.Request.Guard = policy.GuardUnchanged
			}},
		},
		{
			Name: "a fresh view counts as outdated, so no start guard is set", breach: startGuardMissing,
			rules: seeing(func(v *policy.View) { v.Cluster.Fresh = false }),
		},
		{
			Name: "the start guard of a spare is removed", breach: startGuardMissing,
			rules: wrongStartGuard(policy.GuardSet, policy.GuardCleared),
		},
		{
			Name: "a crash-looping etcd without a member gets no start guard", breach: startGuardMissing,
			scope: clusterWith(3, 1, 1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitActivating && v.Op == nil {
					v.Unit.State = policy.UnitActive
				}
			}),
		},
		{
			Name: "a member gets the start guard of a spare", breach: startGuardStays,
			rules: wrongStartGuard(policy.GuardCleared, policy.GuardSet),
		},
		{
			Name: "the start guard is removed before the maintenance ends", breach: startedEarly,
			scope: oneRequest(3, 1, HostCrash), rules: wrongStartGuard(policy.GuardUnchanged, policy.GuardCleared),
		},
	}
}
