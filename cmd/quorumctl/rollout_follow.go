// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
)

// followRollout shows the progress of a rollout until it has ended, then its outcome.
func (a *app) followRollout(ctx context.Context, started control.Rollout, timeout time.Duration) error {
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: timeout, goal: "until the rollout is over",
		effect:    "the rollout continues",
		hint:      "quorumctl rollout status shows its progress; quorumctl rollout abort ends it",
		lostCause: "another rollout was started, or quorumd has lost this one",
	}
	last := display.Progress(started)
	s, err := f.follow(ctx, started.Started, func(s control.Status) observation {
		if s.Rollout == nil || s.Rollout.ID != started.ID {
			return observation{
				state: "unknown", text: "quorumd has not read the rollout yet", summary: last, missing: true,
			}
		}
		last = rolloutProgress(s)
		active := s.Rollout.State == record.RolloutRunning || s.Rollout.State == record.RolloutPaused
		return observation{state: s.Rollout.State, text: last, summary: last, done: !active}
	})
	if err != nil {
		return err
	}
	return a.showOutcome(s)
}

// showOutcome shows a finished rollout. It returns an error unless the rollout succeeded.
func (a *app) showOutcome(s control.Status) error {
	if err := a.emit(rolloutOf(s), func(p *page) { writeRollout(p, s) }); err != nil {
		return err
	}
	return rolloutFailure(*s.Rollout)
}

// rolloutFailure returns an error if the rollout has stopped or was aborted.
func rolloutFailure(r control.Rollout) error {
	switch r.State {
	case record.RolloutStopped:
		return &failure{
			code: exitFault, message: "rollout stopped: " + r.Text,
			hint: "after fixing the cause: quorumctl rollout resume",
		}
	case record.RolloutAborted:
		return &failure{
			code:    exitFault,
			message: "rollout aborted" + display.ChangedBy(r),
		}
	}
	return nil
}

// rolloutProgress describes the progress of a rollout and its current host.
func rolloutProgress(s control.Status) string {
	text := display.Progress(*s.Rollout)
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			text += "; " + h.Name + " is in phase " + s.Op.Phase
		}
	}
	return text
}
