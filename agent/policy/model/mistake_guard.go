// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// guarding is a mistake about the start guard: one thing is taken for another.
func guarding(right, wrong policy.StartGuard) rules {
	return rules{say: func(d *policy.Decision) {
		if d.Notes.StartGuard == right {
			d.Notes.StartGuard = wrong
		}
	}}
}

// stepping is a mistake about what the start guard is before a step.
func stepping(kind policy.StepKind, wrong policy.StartGuard) rules {
	return rules{say: func(d *policy.Decision) {
		if d.Step.Kind == kind {
			d.Step.Guard = wrong
		}
	}}
}

// guardMistakes are mistakes about what keeps etcd from starting by itself at a boot.
func guardMistakes() []Mistake {
	return []Mistake{
		{
			Name: "etcd is not held back in maintenance", breach: startedEarly, scope: asking(3, 1, HostCrash),
			rules: stepping(policy.StepTakeDown, policy.HoldAsIs),
		},
		{
			Name: "an etcd that is down already is not held back in maintenance", breach: startedEarly,
			scope: asking(3, 2, HostCrash|EtcdCrash),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Unit.State != policy.UnitActive {
					v.Asked.Stopped = true
				}
			}),
		},
		{
			Name: "etcd is held back for a reboot, a restart or a command as it is in maintenance", breach: heldBack,
			scope: asking(3, 1, HostCrash), rules: stepping(policy.StepTakeDown, policy.HoldBack),
		},
		{
			Name: "what holds etcd back is not taken away before it is started", breach: heldBack,
			scope: asking(3, 1, HostCrash), rules: stepping(policy.StepStartUnit, policy.HoldAsIs),
		},
		{
			Name: "what holds etcd back is taken away only where it is started", breach: heldBack,
			scope: asking(3, 2, AgentCrash|HostCrash),
			rules: rules{say: func(d *policy.Decision) {
				if d.Notes.StartGuard == policy.HoldNot {
					d.Notes.StartGuard = policy.HoldAsIs
				}
				d.Notes.Request.Guard = policy.HoldAsIs
			}},
		},
		{
			Name: "what holds etcd back outlives what was asked", breach: heldBack,
			scope: asking(3, 1, AgentCrash),
			rules: rules{say: func(d *policy.Decision) {
				d.Notes.Request.Guard = policy.HoldAsIs
			}},
		},
		{
			Name: "the start guard takes what was just read for old", breach: leftLoose,
			rules: seeing(func(v *policy.View) { v.Cluster.Fresh = false }),
		},
		{
			Name: "the start guard of a spare is taken away", breach: leftLoose,
			rules: guarding(policy.HoldBack, policy.HoldNot),
		},
		{
			Name: "an etcd that starts for ever is not held back where it has no member", breach: leftLoose,
			scope: of(3, 1, 1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitActivating && v.Op == nil {
					v.Unit.State = policy.UnitActive
				}
			}),
		},
		{
			Name: "a member is held back as a spare is", breach: heldBack,
			rules: guarding(policy.HoldNot, policy.HoldBack),
		},
		{
			Name: "the start guard of a maintenance is taken away before it is over", breach: startedEarly,
			scope: asking(3, 1, HostCrash), rules: guarding(policy.HoldAsIs, policy.HoldNot),
		},
	}
}
