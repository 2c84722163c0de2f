// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// followRecovery shows the progress of the plan until it has ended on this host.
func (a *app) followRecovery(ctx context.Context, first control.Status) (control.Status, error) {
	plan := first.Recovery.Plan
	f := &follower{
		app: a, progress: a.terminalProgress(a.err), goal: "until the plan has ended on this host",
		effect: "it continues", hint: "quorumctl recover status",
		lostCause: "another plan was applied, or quorumd has lost this one",
	}
	return f.follow(ctx, first.Time, func(s control.Status) observation {
		now := observation{
			state: "unknown", text: "quorumd has not reported the plan yet", progress: firstProgress(s),
			summary: "it continues",
			done:    s.LastRecovery != nil && s.LastRecovery.Plan == plan && s.Recovery == nil,
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
		now.state, now.summary = "joining", now.text
		if s.Recovery.Alone {
			now.state = "survivor"
		}
		return now
	})
}

// recoveryFailure returns an error if the plan was given up while it was watched.
func recoveryFailure(s control.Status, watched bool) error {
	end := s.LastRecovery
	if !watched || s.Recovery != nil || end == nil || end.Code != policy.RecoveryGivenUp {
		return nil
	}
	return &failure{
		code: exitFault, message: "the plan was given up by " + end.GivenUp,
		hint: "if there is still no quorum, repeat quorumctl recover collect on every host and plan again",
	}
}
