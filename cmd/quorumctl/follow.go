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
)

// follower waits for a change of quorumd's status, and shows the progress.
type follower struct {
	app      *app
	progress *progress
	most     time.Duration // maximum wait; 0 for no limit
	goal     string        // the end of the wait, as in "until the host is back"
	stands   string        // what happens to the request if the wait ends early; empty without a request
	hint     string        // the remedy then
	lost     string        // the cause if the request disappears from the status
	silent   string        // the remedy while quorumd does not answer; empty while it does
}

// patienceForLost is how long a request may be missing from the status before it counts as lost: the status is that of
// the last round, and a daemon that restarts has none yet.
const patienceForLost = 15 * time.Second

// staleFor is how long a status from before the request is hidden: it shows the old state.
const staleFor = 3 * time.Second

// sight is what one status shows about the awaited change.
type sight struct {
	state, text string
	how         *control.Progress // progress, if counted
	says        string            // text for the error of a wait that ends here
	over        bool              // reached, or out of reach
	missing     bool              // the status does not contain the request
	quiet       bool              // do not show this status
}

// follow reads the status until see reports the end, and returns that status. A daemon that does not answer may be
// restarting, so follow continues.
func (f *follower) follow(ctx context.Context, now time.Time, see func(control.Status) sight) (control.Status, error) {
	bounded, cancel := f.bound(ctx)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var missing time.Time // since when the request is missing
	last := "quorumd has not answered"
	for {
		seen := sight{state: "unknown", text: "quorumd does not answer"}
		s, err := f.app.client().Status(bounded)
		switch {
		case err == nil:
			now, seen = s.Time, see(s)
			last, f.silent = seen.says, ""
		case bounded.Err() != nil || past(bounded): // cut off: the last status says more
			return s, f.early(ctx.Err() != nil, last)
		case !passing(err):
			return s, cannot("wait "+f.goal, err)
		default:
			last = f.away(err)
		}
		if seen.over {
			return s, f.progress.end()
		}
		if !seen.quiet {
			if err := f.progress.show(now, seen.state, seen.text, seen.how); err != nil {
				return s, err
			}
		}
		switch {
		case !seen.missing:
			missing = time.Time{}
		case missing.IsZero():
			missing = s.Time
		case s.Time.Sub(missing) > patienceForLost:
			return s, f.gone()
		}
		select {
		case <-bounded.Done():
			return s, f.early(ctx.Err() != nil, last)
		case <-tick.C:
		}
	}
}

// until follows the maintenance requested at since, until it satisfies reached or has ended; see ended.
func (f *follower) until(ctx context.Context, since time.Time,
	reached func(control.Maintenance) bool,
) (control.Status, error) {
	f.lost = "quorumd has lost the request"
	var first control.Status
	return f.follow(ctx, since, func(s control.Status) sight {
		if first.Time.IsZero() {
			first = s
		}
		state, text := standing(s, first, since)
		return sight{
			state: state, text: text, how: awaited(s), says: state + display.After(", ", text),
			missing: !asked(s, since),
			over:    ended(s, since) != nil || asked(s, since) && reached(*s.Maintenance),
			quiet:   s.Loop.Rounds == first.Loop.Rounds && s.Time.Sub(first.Time) < staleFor,
		}
	})
}

func (f *follower) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.most == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, f.most)
}

// past reports whether the deadline of a context has passed. A connection may notice that before the context.
func past(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && !time.Now().Before(deadline)
}

// away returns why quorumd did not answer. It keeps the remedy, which replaces a hint that needs quorumd.
func (f *follower) away(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		f.silent = e.Hint
		return e.Message
	}
	return err.Error()
}

// early is the failure of a wait that was interrupted or timed out.
func (f *follower) early(interrupted bool, last string) error {
	if err := f.progress.end(); err != nil {
		return err
	}
	if interrupted {
		return &failure{
			code: exitFault, hint: cmp.Or(f.silent, f.hint),
			message: fmt.Sprintf("interrupted while waiting %s: %s", f.goal, cmp.Or(f.stands, last)),
		}
	}
	return &failure{
		code: exitTimeout, hint: cmp.Or(f.silent, f.hint),
		message: fmt.Sprintf("timed out after %s waiting %s: %s", durationfmt.Text(f.most), f.goal,
			last+display.After("; ", f.stands)),
	}
}

// gone is the failure of a wait for a request that has disappeared.
func (f *follower) gone() error {
	if err := f.progress.end(); err != nil {
		return err
	}
	return &failure{
		code: exitFault, hint: "quorumctl history shows what happened to it",
		message: "cannot wait " + f.goal + ": " + f.lost,
	}
}

// asked reports whether the maintenance requested at that time is the current one.
func asked(s control.Status, since time.Time) bool {
	return s.Maintenance != nil && s.Maintenance.Since.Equal(since)
}

// ended returns the end of the maintenance requested at that time, or nil.
func ended(s control.Status, since time.Time) *control.MaintenanceEnd {
	if s.LastMaintenance != nil && s.LastMaintenance.Since.Equal(since) && !asked(s, since) {
		return s.LastMaintenance
	}
	return nil
}

// awaited returns the progress of the first reason.
func awaited(s control.Status) *control.Progress {
	if len(s.Reasons) == 0 {
		return nil
	}
	return s.Reasons[0].Progress
}

// standing returns the state of a maintenance and what it waits for. first is the status from before the wait.
func standing(s, first control.Status, since time.Time) (state, text string) {
	if !asked(s, since) {
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
	return s.Maintenance.State, text
}
