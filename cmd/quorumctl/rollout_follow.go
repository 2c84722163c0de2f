// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// followRollout shows how a rollout goes until it is over, and how it ended. A daemon that does not answer may be
// restarting, perhaps because it is its host's turn.
func (a *app) followRollout(ctx context.Context, started control.Rollout, most time.Duration) error {
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: most, goal: "until the rollout is over",
		stands: "it goes on", hint: "quorumctl rollout status tells how it goes, quorumctl rollout abort ends it",
		lost: "another rollout has been started, or quorumd no longer knows of this one",
	}
	last := display.Progress(started)
	s, err := f.follow(ctx, started.Started, func(s control.Status) sight {
		if s.Rollout == nil || s.Rollout.ID != started.ID {
			return sight{state: "unknown", text: "quorumd has not looked at it yet", says: last, missing: true}
		}
		last = rolloutStanding(s)
		goesOn := s.Rollout.State == control.RolloutRunning || s.Rollout.State == control.RolloutPaused
		return sight{state: s.Rollout.State, text: last, says: last, over: !goesOn}
	})
	if err != nil {
		return err
	}
	return a.rolloutOver(s)
}

// rolloutOver shows a rollout that is over. One that has not ended well is an error.
func (a *app) rolloutOver(s control.Status) error {
	if err := a.emit(rolloutOf(s), func(p *page) { writeRollout(p, s) }); err != nil {
		return err
	}
	return rolloutFault(*s.Rollout)
}

// rolloutFault is the failure of a rollout that will not go on by itself.
func rolloutFault(r control.Rollout) error {
	switch r.State {
	case control.RolloutStopped:
		return &failure{
			code: exitFault, message: "cannot go on with the rollout: " + r.Text,
			hint: "quorumctl rollout resume, when it is mended",
		}
	case control.RolloutAborted:
		return &failure{
			code:    exitFault,
			message: "cannot go on with the rollout: it was aborted" + display.After(", ", r.Text),
		}
	}
	return nil
}

// rolloutStanding says how far a rollout is, and whose turn it is.
func rolloutStanding(s control.Status) string {
	text := display.Progress(*s.Rollout)
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			text += "; " + h.Name + " is in phase " + s.Op.Phase
		}
	}
	return text
}
