// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// followRollout shows how a rollout goes until it is over, and how it ended. A daemon that does not answer may be
// restarting, perhaps because it is its host's turn, and is waited for.
func (a *app) followRollout(ctx context.Context, started control.Rollout, most time.Duration) error {
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: most, goal: "until the rollout is over",
		stands: "it goes on", hint: "quorumctl rollout status tells how it goes, quorumctl rollout abort ends it",
	}
	bounded, cancel := f.bound(ctx)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last, now := progressOf(started), started.Started
	var missing time.Time // since when it is not the one that the status shows
	for {
		s, err := a.client().Status(bounded)
		state, text := "unknown", "quorumd does not answer"
		switch {
		case err == nil && s.Rollout != nil && s.Rollout.ID == started.ID:
			if goesOn := s.Rollout.State == control.RolloutRunning ||
				s.Rollout.State == control.RolloutPaused; !goesOn {
				return a.rolloutOver(f, s)
			}
			now, missing = s.Time, time.Time{}
			state, last = s.Rollout.State, rolloutStanding(s)
			text = last
		case err == nil:
			now, text = s.Time, "quorumd has not looked at it yet"
			if missing.IsZero() {
				missing = now
			}
			if now.Sub(missing) > patienceForLost {
				return f.gone("another rollout has been started, or quorumd no longer knows of this one")
			}
		case bounded.Err() != nil || past(bounded): // cut off: what was seen before says more
			return f.early(ctx.Err() != nil, last)
		case !passing(err):
			return cannot("wait "+f.goal, err)
		}
		if err := f.progress.show(now, state, text); err != nil {
			return err
		}
		select {
		case <-bounded.Done():
			return f.early(ctx.Err() != nil, last)
		case <-tick.C:
		}
	}
}

// rolloutOver shows a rollout that is over. One that has not ended well is an error.
func (a *app) rolloutOver(f *follower, s control.Status) error {
	if err := f.progress.end(); err != nil {
		return err
	}
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
		return &failure{code: exitFault, message: "cannot go on with the rollout: it was aborted" + after(", ", r.Text)}
	}
	return nil
}

// rolloutStanding says how far a rollout is, and whose turn it is.
func rolloutStanding(s control.Status) string {
	text := progressOf(*s.Rollout)
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			text += "; " + h.Name + " is in phase " + s.Op.Phase
		}
	}
	return text
}
