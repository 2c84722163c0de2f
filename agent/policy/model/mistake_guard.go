// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// guarding is a mistake about the start guard: one value is taken for another.
func guarding(right, wrong policy.StartGuard) rules {
	return rules{say: func(d *policy.Decision) {
		if d.Notes.StartGuard == right {
			d.Notes.StartGuard = wrong
		}
	}}
}

// stepping is a mistake about the start guard before a step.
func stepping(kind policy.StepKind, wrong policy.StartGuard) rules {
	return rules{say: func(d *policy.Decision) {
		if d.Step.Kind == kind {
			d.Step.Guard = wrong
		}
	}}
}

// guardMistakes returns mistakes about what keeps etcd from starting at a boot.
func guardMistakes() []Mistake {
	return []Mistake{
		{
			Name: "maintenance sets no start guard", breach: startedEarly, scope: asking(3, 1, HostCrash),
			rules: stepping(policy.StepTakeDown, policy.GuardUnchanged),
		},
		{
			Name: "maintenance sets no start guard for an etcd that is already down", breach: startedEarly,
			scope: asking(3, 2, HostCrash|EtcdCrash),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Unit.State != policy.UnitActive {
					v.Asked.Stopped = true
				}
			}),
		},
		{
			Name: "a reboot, restart or command sets the start guard", breach: heldBack,
			scope: asking(3, 1, HostCrash), rules: stepping(policy.StepTakeDown, policy.GuardSet),
		},
		{
			Name: "the start guard is not removed before etcd is started", breach: heldBack,
			scope: asking(3, 1, HostCrash), rules: stepping(policy.StepStartUnit, policy.GuardUnchanged),
		},
		{
			Name: "the start guard is removed only where etcd is started", breach: heldBack,
			scope: asking(3, 2, AgentCrash|HostCrash),
			rules: rules{say: func(d *policy.Decision) {
				if d.Notes.StartGuard == policy.GuardCleared {
					d.Notes.StartGuard = policy.GuardUnchanged
				}
				d.Notes.Request.Guard = policy.GuardUnchanged
			}},
		},
		{
			Name: "the start guard outlives the request", breach: heldBack,
			scope: asking(3, 1, AgentCrash),
			rules: rules{say: func(d *policy.Decision) {
				d.Notes.Request.Guard = policy.GuardUnchanged
			}},
		},
		{
			Name: "the start guard treats a fresh reading as old", breach: leftLoose,
			rules: seeing(func(v *policy.View) { v.Cluster.Fresh = false }),
		},
		{
			Name: "the start guard of a spare is removed", breach: leftLoose,
			rules: guarding(policy.GuardSet, policy.GuardCleared),
		},
		{
			Name: "a crash-looping etcd without a member gets no start guard", breach: leftLoose,
			scope: of(3, 1, 1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitActivating && v.Op == nil {
					v.Unit.State = policy.UnitActive
				}
			}),
		},
		{
			Name: "a member gets the start guard of a spare", breach: heldBack,
			rules: guarding(policy.GuardCleared, policy.GuardSet),
		},
		{
			Name: "the start guard is removed before the maintenance ends", breach: startedEarly,
			scope: asking(3, 1, HostCrash), rules: guarding(policy.GuardUnchanged, policy.GuardCleared),
		},
	}
}
