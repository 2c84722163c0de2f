// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// RolloutMistake is a mistake that is seeded into the policy of rollouts or into their execution. The exploration must
// find it.
type RolloutMistake struct {
	Name    string
	Promise string // the broken promise, as in Breach
	Text    string
	scope   int // an index into Rollouts followed by LongRollouts
	breach  rolloutBreach
	rules   rolloutRules
}

// Explore explores the smallest scope in which the mistake has an effect.
func (m RolloutMistake) Explore(ctx context.Context) Result {
	r := m.rules
	r.skipsLiveness = m.breach != rolloutNeverEnds
	return newRolloutMachine(append(Rollouts(), LongRollouts()...)[m.scope], r).explore(ctx, 0)
}

// Values of RolloutMistake.scope: indices into Rollouts followed by LongRollouts. The first scope, 0, is the default
// and has no name.
const (
	rolloutWithOperator = iota + 1
	rolloutWithFault
	rolloutWithSpare
	rolloutUpgrade
	_ // the upgrade with a fault, which no mistake needs
	_ // the first of LongRollouts, which no mistake needs
	rolloutWithFaultAndOperator
)

// RolloutMistakes returns the seeded mistakes.
func RolloutMistakes() []RolloutMistake {
	list := slices.Concat(rolloutOrderMistakes(), rolloutProgressMistakes(), upgradeMistakes())
	for i := range list {
		p := rolloutPromises()[list[i].breach]
		list[i].Promise, list[i].Text = p.name, p.text
	}
	return list
}

// rolloutOrderMistakes returns the mistakes about when and in which order hosts are taken down.
func rolloutOrderMistakes() []RolloutMistake {
	return []RolloutMistake{
		{
			Name: "a paused rollout continues", breach: rolloutNotHalted, scope: rolloutWithOperator,
			rules: seeingRollout(func(_ *policy.View, r *policy.Rollout) { r.Runs = true }),
		},
		{
			Name: "a request of a rollout outlives the rollout", breach: rolloutNotHalted, scope: rolloutWithOperator,
			rules: rolloutRules{view: func(v *policy.View) {
				if v.Asked != nil {
					v.Asked.Rollout = ""
				}
			}},
		},
		{
			Name:   "a rollout requests the next host's operation while another host's request is pending",
			breach: rolloutLeaderFirst,
			rules: seeingRollout(func(v *policy.View, r *policy.Rollout) {
				for i := range v.Hosts {
					v.Hosts[i].Wants = ""
				}
				r.Waiting = []string{v.Self.ID}
			}),
		},
		{
			Name: "the leader counts as a follower", breach: rolloutLeaderFirst,
			rules: rolloutRules{view: func(v *policy.View) {
				for i := range v.Cluster.Members {
					v.Cluster.Members[i].Leader = false
				}
			}},
		},
		{
			Name: "operations begin, and hosts go down, without the lock", breach: rolloutTwoDown,
			rules: rolloutRules{unfenced: true, ignored: rolloutLeaderFirst, view: func(v *policy.View) {
				if v.Rollout != nil {
					v.Rollout.Waiting = []string{v.Self.ID}
				}
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op = nil
				}
				v.Lock.Held, v.Lock.Mine, v.Lock.Token, v.Lock.ValidFor = true, true, tokenNow, ages
				v.IdleFor = ages
				for i := range v.Hosts {
					v.Hosts[i].Wants, v.Hosts[i].InOperation = "", false
				}
				for i := range v.Cluster.Members {
					v.Cluster.Members[i].Live, v.Cluster.Members[i].Leader = true, false
				}
				if v.Op != nil {
					v.Op.Token = tokenNow
				}
			}},
		},
	}
}

// rolloutProgressMistakes returns the mistakes about the progress of a rollout and its end.
func rolloutProgressMistakes() []RolloutMistake {
	return []RolloutMistake{
		{
			Name: "a host does not record that the rollout has reached it", breach: rolloutHostTwice,
			scope: rolloutWithFault,
			rules: seeingRollout(func(_ *policy.View, r *policy.Rollout) { r.Due = true }),
		},
		{
			Name:   "a released operation does not count as done",
			breach: rolloutHostTwice, scope: rolloutWithFaultAndOperator, rules: rolloutRules{releasedNotDone: true},
		},
		{
			Name:   "the end of every host's operation counts as a resume by an operator",
			breach: rolloutHostTwice, scope: rolloutWithFault,
			rules: rolloutRules{countsAsResumed: true},
		},
		{
			Name: "a completed restart is not detected", breach: rolloutHostTwice,
			rules: rolloutRules{view: func(v *policy.View) {
				if v.Op != nil {
					v.Op.Restarted = false
				}
			}},
		},
		{
			Name: "a host whose operation was cancelled in a rollout counts as done", breach: rolloutDoneEarly,
			scope: rolloutWithOperator,
			rules: rolloutRules{beforeEnd: func(_ *policy.RolloutProgress, s *policy.Step) {
				s.Outcome = policy.Cycled
			}},
		},
		{
			Name: "a rollout ends after its first host", breach: rolloutDoneEarly,
			rules: rolloutRules{beforeEnd: func(t *policy.RolloutProgress, _ *policy.Step) { t.Waiting = 0 }},
		},
		{
			Name:   "the etcd version is not checked at the end of an operation",
			breach: rolloutWrongVersion, scope: rolloutWithFault,
			rules: rolloutRules{beforeEnd: func(t *policy.RolloutProgress, _ *policy.Step) { t.Wants = "" }},
		},
		{
			Name: "the rollout record is written without comparing its revision", breach: rolloutOverwritten,
			scope: rolloutWithOperator,
			rules: rolloutRules{overwrites: true},
		},
		{
			Name: "a member is removed in a rollout", breach: rolloutUnexpectedStep,
			rules: rolloutRules{decision: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepRestartUnit {
					d.Step.Kind = policy.StepRemoveMember
				}
			}},
		},
		{
			Name: "the last host does not end the rollout", breach: rolloutNeverEnds,
			rules: rolloutRules{afterEnd: func(end *policy.RolloutEnd) { end.Done = false }},
		},
		{
			Name: "the queue never admits a host", breach: rolloutNeverEnds, scope: rolloutWithSpare,
			rules: rolloutRules{decision: func(d *policy.Decision) { d.Notes.Queue.Queue.Down = nil }},
		},
		{
			Name: "a host does not report why it waits", breach: rolloutNoReason,
			rules: rolloutRules{decision: func(d *policy.Decision) { d.Reasons = nil }},
		},
	}
}

// upgradeMistakes returns the mistakes about the pause before the last member of an upgrade.
func upgradeMistakes() []RolloutMistake {
	return []RolloutMistake{
		{
			Name: "an upgrade does not pause", breach: rolloutNotAsked, scope: rolloutUpgrade,
			rules: seeingRollout(func(_ *policy.View, r *policy.Rollout) { r.Hold = false }),
		},
		{
			Name: "every member counts as running the older version", breach: rolloutNotAsked, scope: rolloutUpgrade,
			rules: seeingRollout(func(v *policy.View, _ *policy.Rollout) {
				for i := range v.Cluster.Members {
					v.Cluster.Members[i].Version = oldMinor
				}
			}),
		},
		{
			Name: "an upgrade records its pause but continues", breach: rolloutNotAsked,
			scope: rolloutUpgrade, rules: rolloutRules{holdsWithoutPause: true},
		},
	}
}

// seeingRollout returns a mistake in the policy's view of a rollout.
func seeingRollout(change func(v *policy.View, r *policy.Rollout)) rolloutRules {
	return rolloutRules{view: func(v *policy.View) {
		if v.Rollout != nil {
			own := *v.Rollout
			v.Rollout = &own
			change(v, &own)
		}
	}}
}
