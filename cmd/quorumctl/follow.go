// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
)

// follower polls quorumd's status until a condition holds, and shows the progress.
type follower struct {
	app             *app
	progress        *progress
	timeout         time.Duration // maximum wait; 0 for no limit
	goal            string        // such as "until the host is back"
	effect          string        // what happens to the request if the wait ends early; empty without a request
	hint            string        // the remedy if the wait ends early
	lostCause       string        // the cause if the request disappears from the status
	unreachableHint string        // the remedy while quorumd does not answer; empty while it does
}

// lostAfter is how long a request may be missing from the status before it counts as lost. The status shows the result
// of the last round, and a quorumd that has just restarted has not completed one.
const lostAfter = 15 * time.Second

// staleFor is the longest time for which the follower hides the status while quorumd has completed no round since the
// first status. Such a status may not contain the request yet.
const staleFor = 3 * time.Second

// observation is what the follower reads from one status.
type observation struct {
	state, text string
	progress    *policy.Progress // nil if there are no numbers
	summary     string           // text for the error of a wait that ends here
	done        bool             // the goal has been reached, or can no longer be reached
	missing     bool             // the status does not contain the request
	hidden      bool             // do not show this status
}

// follow reads the status until observe reports the end, and returns that status. It continues if quorumd does not
// answer, because quorumd may be restarting.
func (f *follower) follow(ctx context.Context, now time.Time, observe func(control.Status) observation,
) (control.Status, error) {
	bounded, cancel := f.bound(ctx)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var missing time.Time // when the request disappeared
	last := "quorumd has not answered"
	for {
		seen := observation{state: "unknown", text: "quorumd does not answer"}
		s, err := f.app.client().Status(bounded)
		switch {
		case err == nil:
			now, seen = s.Time, observe(s)
			last, f.unreachableHint = seen.summary, ""
		// report the last status, not that the request for a new one was aborted
		case bounded.Err() != nil || deadlinePassed(bounded):
			return s, f.endedEarly(ctx.Err() != nil, last)
		case !isTransient(err):
			return s, cannot("wait "+f.goal, err)
		default:
			last = f.noAnswer(err)
		}
		if seen.done {
			return s, f.progress.end()
		}
		if !seen.hidden {
			if err := f.progress.show(now, seen.state, seen.text, seen.progress); err != nil {
				return s, err
			}
		}
		switch {
		case !seen.missing:
			missing = time.Time{}
		case missing.IsZero():
			missing = s.Time
		case s.Time.Sub(missing) > lostAfter:
			return s, f.requestLost()
		}
		select {
		case <-bounded.Done():
			return s, f.endedEarly(ctx.Err() != nil, last)
		case <-tick.C:
		}
	}
}

// until follows the maintenance requested at since until it ends or reached returns true.
func (f *follower) until(ctx context.Context, since time.Time,
	reached func(control.Maintenance) bool, // may be nil
) (control.Status, error) {
	f.lostCause = "quorumd has lost the request"
	var first control.Status
	return f.follow(ctx, since, func(s control.Status) observation {
		if first.Time.IsZero() {
			first = s
		}
		state, text := maintenanceProgress(s, first, since)
		return observation{
			state: state, text: text, progress: firstProgress(s), summary: state + display.After(", ", text),
			missing: !isCurrent(s, since),
			done: maintenanceEnd(s, since) != nil ||
				reached != nil && isCurrent(s, since) && reached(*s.Maintenance),
			hidden: s.Loop.Rounds == first.Loop.Rounds && s.Time.Sub(first.Time) < staleFor,
		}
	})
}

func (f *follower) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, f.timeout)
}

// deadlinePassed reports whether the deadline of a context has passed. A connection may time out slightly earlier than
// the context ends.
func deadlinePassed(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && !time.Now().Before(deadline)
}

// noAnswer returns the cause of an error of the client, and stores its remedy as unreachableHint, because the command
// in hint needs quorumd.
func (f *follower) noAnswer(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		f.unreachableHint = e.Hint
		return e.Message
	}
	return err.Error()
}

// endedEarly returns the error of a wait that was interrupted or timed out.
func (f *follower) endedEarly(interrupted bool, last string) error {
	if err := f.progress.end(); err != nil {
		return err
	}
	if interrupted {
		return &failure{
			code: exitFault, hint: cmp.Or(f.unreachableHint, f.hint),
			message: fmt.Sprintf("interrupted while waiting %s: %s", f.goal, cmp.Or(f.effect, last)),
		}
	}
	return &failure{
		code: exitTimeout, hint: cmp.Or(f.unreachableHint, f.hint),
		message: fmt.Sprintf("timed out after %s waiting %s: %s", durationfmt.Text(f.timeout), f.goal,
			last+display.After("; ", f.effect)),
	}
}

// requestLost returns the error of a wait whose request has disappeared from the status.
func (f *follower) requestLost() error {
	if err := f.progress.end(); err != nil {
		return err
	}
	return &failure{
		code: exitFault, hint: "quorumctl history shows what happened to it",
		message: "cannot wait " + f.goal + ": " + f.lostCause,
	}
}

// isCurrent reports whether the maintenance requested at since is the current one.
func isCurrent(s control.Status, since time.Time) bool {
	return s.Maintenance != nil && s.Maintenance.Since.Equal(since)
}

// maintenanceEnd returns the end of the maintenance requested at since, or nil if it has not ended.
func maintenanceEnd(s control.Status, since time.Time) *control.MaintenanceEnd {
	if s.LastMaintenance != nil && s.LastMaintenance.Since.Equal(since) && !isCurrent(s, since) {
		return s.LastMaintenance
	}
	return nil
}

// firstProgress returns the progress of the first reason, or nil.
func firstProgress(s control.Status) *policy.Progress {
	if len(s.Reasons) == 0 {
		return nil
	}
	return s.Reasons[0].Progress
}

// maintenanceProgress returns the state of a maintenance and what it waits for. first is the first status of the wait.
func maintenanceProgress(s, first control.Status, since time.Time) (state, text string) {
	if !isCurrent(s, since) {
		return "unknown", "waiting for quorumd"
	}
	switch {
	case s.Loop.Rounds == first.Loop.Rounds:
		text = "waiting for quorumd"
	case len(s.Reasons) > 0:
		text = s.Reasons[0].Code + ": " + s.Reasons[0].Text
	default:
		text = s.Next.Text
	}
	return string(s.Maintenance.State), text
}
