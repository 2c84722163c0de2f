// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// followRollout shows a rollout until it is over, then its outcome. A daemon that does not answer may be restarting as
// part of the rollout.
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

// rolloutOver shows a finished rollout. It returns an error unless the rollout succeeded.
func (a *app) rolloutOver(s control.Status) error {
	if err := a.emit(rolloutOf(s), func(p *page) { writeRollout(p, s) }); err != nil {
		return err
	}
	return rolloutFault(*s.Rollout)
}

// rolloutFault returns the error of a rollout that will not continue by itself.
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

// rolloutStanding describes the progress of a rollout and its current host.
func rolloutStanding(s control.Status) string {
	text := display.Progress(*s.Rollout)
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			text += "; " + h.Name + " is in phase " + s.Op.Phase
		}
	}
	return text
}
