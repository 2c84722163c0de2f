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

// follower waits for what quorumd tells of in its status, and shows how it goes.
type follower struct {
	app      *app
	progress *progress
	most     time.Duration // to wait; 0 for as long as it takes
	goal     string        // what is waited for, as in "until the host is back"
	stands   string        // what happens to the wish when the waiting ends early; empty when there is none
	hint     string        // what to do about it
	lost     string        // why nothing is waited for any more that quorumd does not tell of
	silent   string        // what to do about a quorumd that does not answer; empty while it does
}

// patience is how long a maintenance may be missing from the status before it counts as lost: the
// status is the picture of the last round, and a daemon that restarts has none yet.
const patienceForLost = 15 * time.Second

// staleFor is how long a picture is passed over that quorumd took before it was asked: nothing is
// shown until it has looked again, unless that takes so long that it must be said.
const staleFor = 3 * time.Second

// sight is what a look at the status shows of what is waited for.
type sight struct {
	state, text string
	how         *control.Progress // how far it is, where that is counted
	says        string            // in the failure of a wait that ends here
	over        bool              // it is there, or cannot come any more
	missing     bool              // quorumd does not tell of it
	quiet       bool              // nothing is to be shown of this look
}

// follow looks until see says that it is over, and gives the status that showed it. A daemon that does not answer may
// be restarting, and is waited for.
func (f *follower) follow(ctx context.Context, now time.Time, see func(control.Status) sight) (control.Status, error) {
	bounded, cancel := f.bound(ctx)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var missing time.Time // since when quorumd does not tell of it
	last := "quorumd has not answered"
	for {
		seen := sight{state: "unknown", text: "quorumd does not answer"}
		s, err := f.app.client().Status(bounded)
		switch {
		case err == nil:
			now, seen = s.Time, see(s)
			last, f.silent = seen.says, ""
		case bounded.Err() != nil || past(bounded): // cut off: what was seen before says more
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

// until follows the maintenance that was asked for at since, until it satisfies reached or has ended; see ended.
func (f *follower) until(ctx context.Context, since time.Time,
	reached func(control.Maintenance) bool,
) (control.Status, error) {
	f.lost = "quorumd no longer knows that it was asked for"
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

// past tells whether the time of a context is over. A connection notices that before the context does.
func past(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && !time.Now().Before(deadline)
}

// away says why quorumd did not answer, and keeps what to do about it: it stands in the place of a hint that needs one
// that does.
func (f *follower) away(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		f.silent = e.Hint
		return e.Message
	}
	return err.Error()
}

// early is the failure of a wait that was interrupted, or whose time is over.
func (f *follower) early(interrupted bool, last string) error {
	if err := f.progress.end(); err != nil {
		return err
	}
	if interrupted {
		return &failure{
			code: exitFault, hint: cmp.Or(f.silent, f.hint),
			message: fmt.Sprintf("cannot wait %s: interrupted; %s", f.goal, cmp.Or(f.stands, last)),
		}
	}
	return &failure{
		code: exitTimeout, hint: cmp.Or(f.silent, f.hint),
		message: fmt.Sprintf("cannot wait longer than %s %s: %s", durationfmt.Text(f.most), f.goal,
			last+display.After("; ", f.stands)),
	}
}

// gone is the failure of a wait for something that is not there any more.
func (f *follower) gone() error {
	if err := f.progress.end(); err != nil {
		return err
	}
	return &failure{
		code: exitFault, hint: "quorumctl history tells what became of it",
		message: "cannot wait " + f.goal + ": " + f.lost,
	}
}

// asked tells whether the maintenance asked for at that moment is what is asked of the host.
func asked(s control.Status, since time.Time) bool {
	return s.Maintenance != nil && s.Maintenance.Since.Equal(since)
}

// ended gives how the maintenance asked for at that moment has ended, or nothing.
func ended(s control.Status, since time.Time) *control.MaintenanceEnd {
	if s.LastMaintenance != nil && s.LastMaintenance.Since.Equal(since) && !asked(s, since) {
		return s.LastMaintenance
	}
	return nil
}

// awaited gives how far that is which a host waits for first.
func awaited(s control.Status) *control.Progress {
	if len(s.Reasons) == 0 {
		return nil
	}
	return s.Reasons[0].Progress
}

// standing says how far a maintenance is, and what it waits for. First is the picture that was there
// when the waiting began.
func standing(s, first control.Status, since time.Time) (state, text string) {
	if !asked(s, since) {
		return "unknown", "quorumd has not looked at it yet"
	}
	switch {
	case s.Loop.Rounds == first.Loop.Rounds:
		text = "quorumd has not looked at it yet"
	case len(s.Reasons) > 0:
		text = s.Reasons[0].Code + ": " + s.Reasons[0].Text
	default:
		text = s.Next.Text
	}
	return s.Maintenance.State, text
}
