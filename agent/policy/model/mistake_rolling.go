// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// RollMistake is a mistake seeded into the policy of rollouts, or into their execution. The walk must find it.
type RollMistake struct {
	Name    string
	Promise string // the broken promise, as in Breach
	Text    string
	scope   int // in Rolls, followed by LongRolls
	breach  rollBreach
	rules   rollRules
}

// Explore explores the smallest scope in which the mistake shows.
func (m RollMistake) Explore(ctx context.Context) Result {
	r := m.rules
	r.safe = m.breach != rollForEver
	return newRollMachine(append(Rolls(), LongRolls()...)[m.scope], r).explore(ctx, 0)
}

// The scopes in which mistakes show, apart from the first.
const (
	rollWord = iota + 1
	rollFault
	rollSpare
	_ // the first of LongRolls: no mistake shows there first
	rollFaultWord
)

// RollMistakes returns the seeded mistakes.
func RollMistakes() []RollMistake {
	list := append(mistakesOfTurns(), mistakesOfEnds()...)
	for i := range list {
		p := rollPromises()[list[i].breach]
		list[i].Promise, list[i].Text = p.name, p.text
	}
	return list
}

// mistakesOfTurns returns those about which host is next.
func mistakesOfTurns() []RollMistake {
	return []RollMistake{
		{
			Name: "a paused rollout continues", breach: rollHalted, scope: rollWord,
			rules: seeingRollout(func(_ *policy.View, r *policy.Rollout) { r.Runs = true }),
		},
		{
			Name: "a request of a rollout outlives the rollout", breach: rollHalted, scope: rollWord,
			rules: rollRules{view: func(v *policy.View) {
				if v.Asked != nil {
					v.Asked.Rollout = ""
				}
			}},
		},
		{
			Name: "the next host of a rollout is requested while another one is pending", breach: rollLeaderFirst,
			rules: seeingRollout(func(v *policy.View, r *policy.Rollout) {
				for i := range v.Hosts {
					v.Hosts[i].Wants = ""
				}
				r.Waiting = []string{v.Self.ID}
			}),
		},
		{
			Name: "the leader is unknown", breach: rollLeaderFirst,
			rules: rollRules{view: func(v *policy.View) {
				for i := range v.Cluster.Members {
					v.Cluster.Members[i].Leader = false
				}
			}},
		},
		{
			Name: "operations begin, and hosts go down, without the lock", breach: rollAtOnce,
			rules: rollRules{unfenced: true, past: rollLeaderFirst, view: func(v *policy.View) {
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

// mistakesOfEnds returns those about what has been done, and about how a rollout ends.
func mistakesOfEnds() []RollMistake {
	return []RollMistake{
		{
			Name: "a host does not record that the rollout has reached it", breach: rollTwice, scope: rollFault,
			rules: seeingRollout(func(_ *policy.View, r *policy.Rollout) { r.Due = true }),
		},
		{
			Name:   "a released operation does not count as done",
			breach: rollTwice, scope: rollFaultWord, rules: rollRules{released: true},
		},
		{
			Name: "every finished host counts as a resumed rollout", breach: rollTwice, scope: rollFault,
			rules: rollRules{counted: true},
		},
		{
			Name: "a completed restart is not detected", breach: rollTwice,
			rules: rollRules{view: func(v *policy.View) {
				if v.Op != nil {
					v.Op.Restarted = false
				}
			}},
		},
		{
			Name: "a host that was cancelled in a rollout counts as done", breach: rollEarly, scope: rollWord,
			rules: rollRules{after: func(_ *policy.RolloutProgress, s *policy.Step) { s.Outcome = policy.Cycled }},
		},
		{
			Name: "a rollout ends with its first host", breach: rollEarly,
			rules: rollRules{after: func(t *policy.RolloutProgress, _ *policy.Step) { t.Waiting = 0 }},
		},
		{
			Name: "the etcd version is not checked afterwards", breach: rollWrong, scope: rollFault,
			rules: rollRules{after: func(t *policy.RolloutProgress, _ *policy.Step) { t.Wants = "" }},
		},
		{
			Name: "the rollout record is written without comparing its revision", breach: rollOverwritten,
			scope: rollWord,
			rules: rollRules{unread: true},
		},
		{
			Name: "a member of a rollout is removed", breach: rollStray,
			rules: rollRules{say: func(d *policy.Decision) {
				if d.Step.Kind == policy.StepRestartUnit {
					d.Step.Kind = policy.StepRemoveMember
				}
			}},
		},
		{
			Name: "the last host does not end the rollout", breach: rollForEver,
			rules: rollRules{ends: func(end *policy.RolloutEnd) { end.Done = false }},
		},
		{
			Name: "the queue never admits a host", breach: rollForEver, scope: rollSpare,
			rules: rollRules{say: func(d *policy.Decision) { d.Notes.Queue.Queue.Down = nil }},
		},
		{
			Name: "a host does not report what it waits for", breach: rollSilent,
			rules: rollRules{say: func(d *policy.Decision) { d.Reasons = nil }},
		},
	}
}

// seeingRollout is a mistake in what the policy sees of a rollout.
func seeingRollout(change func(v *policy.View, r *policy.Rollout)) rollRules {
	return rollRules{view: func(v *policy.View) {
		if v.Rollout != nil {
			own := *v.Rollout
			v.Rollout = &own
			change(v, &own)
		}
	}}
}
