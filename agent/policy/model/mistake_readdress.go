// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// readdressed returns a scope of three voters with that many requested readdresses, and n faults of these classes.
func readdressed(requests, n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Target = 3, 3, policy.Target{Voters: 3}
		sc.Requests, sc.Work, sc.Readdress, sc.Faults, sc.Budget = requests, readdressing, true, class, n
	}
}

// inReaddress returns a mistake in the view of a host during its own readdress in one of these phases; in any phase if
// there are none.
func inReaddress(change func(v *policy.View), phases ...policy.OpPhase) rules {
	return seeing(func(v *policy.View) {
		if v.Op != nil && v.Op.Host == v.Self.ID && v.Op.Work == policy.WorkReaddress &&
			(len(phases) == 0 || slices.Contains(phases, v.Op.Phase)) {
			change(v)
		}
	})
}

func everyHostAnswers(v *policy.View) {
	for i := range v.Hosts {
		v.Hosts[i].Answered = true
	}
}

// readdressMistakes returns the mistakes about changed peer URLs together with other operations.
func readdressMistakes() []Mistake {
	replaced := withLiveness(also(readdressed(1, 1, HostCrash), func(sc *Scenario) { sc.Hosts, sc.Repair = 4, true }))
	return []Mistake{
		{
			Name: "a readdress ends before the other members have connected", breach: endedUnverified,
			scope: readdressed(1, 0, 0), rules: inReaddress(everyHostAnswers, policy.PhaseVerify),
		},
		{
			Name: "a readdress begins while another URL is unverified", breach: twoUnverified,
			scope: readdressed(2, 1, OperatorRelease), rules: inReaddress(everyHostAnswers, policy.PhaseReady),
		},
		{
			Name: "a voter that only one host does not reach counts as down", breach: endedUnverified,
			scope: readdressed(1, 1, AgentBlind),
			rules: inReaddress(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Sees = nil
				}
			}),
		},
		{
			Name: "a readdress ends although an update may be applied late", breach: urlStays,
			scope: withLiveness(readdressed(1, 1, LateCall)),
			rules: inReaddress(func(v *policy.View) { v.UpdatePending = false }),
		},
		{
			Name: "a readdress that cannot continue keeps the new URL", breach: notReplaced, scope: replaced,
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepUpdateMember && len(d.Step.PeerURL) == 1 {
					*d = policy.Decision{Reasons: []policy.Reason{{Code: policy.QuorumAtRisk}}}
				}
			}},
		},
		{
			Name: "the environment is written only after etcd is stopped", breach: notReplaced, scope: replaced,
			rules: rules{decision: func(d *policy.Decision) { d.Step.WriteEnv = false }},
		},
		{
			Name: "a readdress that has restarted etcd restarts it again", breach: notReplaced, scope: replaced,
			rules: inReaddress(func(v *policy.View) { v.Op.Restarted = false }),
		},
		{
			Name: "an operation that was recorded for other work is used for a readdress", breach: hostNotBack,
			scope: withLiveness(also(readdressed(2, 1, LateCall), func(sc *Scenario) { sc.Work = maintenance })),
			rules: seeing(func(v *policy.View) {
				readdress := v.Asked != nil && v.Asked.Work == policy.WorkReaddress
				if readdress && v.Op != nil && v.Op.Host == v.Self.ID && v.Op.Work == "" {
					v.Op.Phase = policy.PhaseReady
				}
			}),
		},
		{
			Name: "the host of a readdress is taken down before the member list is updated", breach: endedUnverified,
			scope: readdressed(1, 0, 0),
			rules: inReaddress(func(v *policy.View) { v.Self.NewPeerURL = "" }),
		},
		{
			Name: "a changed peer URL is applied without a request", breach: updatedUnasked,
			scope: also(readdressed(1, 0, 0), func(sc *Scenario) { sc.Work = maintenance }),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Work == policy.WorkMaintenance {
					v.Asked.Work, v.Self.NewPeerURL = policy.WorkReaddress, v.Self.PeerURL+"2"
				}
				if v.Op != nil && v.Op.Host == v.Self.ID {
					v.Op.Work = policy.WorkReaddress
					everyHostAnswers(v)
				}
			}),
		},
	}
}
