// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
)

// followRecovery shows how this host does its part of the plan that is in force, until it has ended here.
func (a *app) followRecovery(ctx context.Context, first control.Status) (control.Status, error) {
	plan := first.Recovery.Plan
	f := &follower{
		app: a, progress: a.watchedOn(a.err), goal: "until the plan has ended on this host", stands: "it goes on",
		hint: "quorumctl recover status", lost: "quorumd no longer knows of the plan",
	}
	return f.follow(ctx, first.Time, func(s control.Status) sight {
		now := sight{
			state: "unknown", text: "quorumd has just started", how: awaited(s), says: "it goes on",
			over: s.LastRecovery != nil && s.LastRecovery.Plan == plan && s.Recovery == nil,
		}
		switch {
		case s.Recovery == nil || s.Recovery.Plan != plan:
			now.missing = true
			return now
		case len(s.Reasons) > 0:
			now.text = s.Reasons[0].Code + ": " + s.Reasons[0].Text
		case s.Next.Text != "":
			now.text = s.Next.Text
		}
		now.state, now.says = "joins", now.text
		if s.Recovery.Alone {
			now.state = "alone"
		}
		return now
	})
}

// givenUp is the code with which a plan ends that a person has given up.
const givenUp = "RECOVERY_GIVEN_UP"

// recoveryFault is the failure of a plan that was watched and given up.
func recoveryFault(s control.Status, watched bool) error {
	end := s.LastRecovery
	if !watched || s.Recovery != nil || end == nil || end.Code != givenUp {
		return nil
	}
	return &failure{
		code: exitFault, message: "cannot go on with the plan: it was given up by " + end.GivenUp,
		hint: "take the facts anew on every host and plan again, if most voters are still lost",
	}
}
