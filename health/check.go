// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// A check judges one thing. It is a declaration, the rules, and a reader that turns an [Input] into the evidence the
// rules ask.
type check struct {
	name      string // in snapshots; never changed
	component Component
	start     State // the state before the first input,
	startCode Code  // and its code
	// rules are tried in order; the first that holds is followed, and then all are tried again.
	rules []rule
	// read takes in what is new.
	read func(Input)
	// text describes the present state by the newest evidence; it is asked when there is a problem, or to say what is
	// well.
	text func() string
	// entered is told of every change, nil if the evidence does not care.
	entered func(from State)

	*track
}

// rule is one way from a state to another, or from a code to another within a state.
type rule struct {
	from []State
	to   State
	code Code // the problem while in to; none if that is OK
	// when is the condition with its numbers, for people.
	when string
	// holds gives what was measured, against its limit, and whether the condition is met.
	holds func() (string, bool)
	// isReturn says that this is a recovery: each one makes the next take twice as long.
	isReturn bool
}

// track is where a check stands. All of it survives a restart of the agent.
type track struct {
	State State `json:"state"`
	Code  Code  `json:"code,omitempty"`
	// Since is the moment the state was entered.
	Since time.Duration `json:"since"`
	// Reason is what was measured when state and code were entered.
	Reason string `json:"reason,omitempty"`
	// Returns holds the moments of the recoveries to each state.
	Returns map[State][]time.Duration `json:"returns,omitempty"`
}

const (
	patienceLimit = 4 * time.Hour
	patienceSpan  = 24 * time.Hour
	// returnsKept is enough to double any time that matters up to the limit.
	returnsKept = 16
	// stepsPerRound bounds how far a check may go in one round. The longest way is short of it; see the tests.
	stepsPerRound = 8
)

// patience gives how long things have to be well before the state may be returned to: base, doubled for every return of
// the last 24 h, up to 4 h.
func (t *track) patience(to State, base, now time.Duration) time.Duration {
	for _, at := range t.Returns[to] {
		if now-at < patienceSpan && base < patienceLimit {
			base = min(2*base, patienceLimit)
		}
	}
	return base
}

func (t *track) remember(to State, now time.Duration) {
	if t.Returns == nil {
		t.Returns = map[State][]time.Duration{}
	}
	kept := append(t.Returns[to], now)
	t.Returns[to] = slices.Clone(kept[max(0, len(kept)-returnsKept):])
}

// settle follows the rules until none holds, and gives the changes.
func (c *check) settle(now time.Duration) []Change {
	var changes []Change
	for range stepsPerRound {
		change, moved := c.step(now)
		if !moved {
			break
		}
		changes = append(changes, change)
	}
	return changes
}

func (c *check) step(now time.Duration) (Change, bool) {
	for _, r := range c.rules {
		if !slices.Contains(r.from, c.State) || r.to == c.State && r.code == c.Code {
			continue
		}
		measured, met := r.holds()
		if !met {
			continue
		}
		from := c.State
		if r.to != from {
			c.State, c.Since = r.to, now
		}
		c.Code, c.Reason = r.code, measured
		if r.isReturn {
			c.remember(r.to, now)
		}
		if c.entered != nil {
			c.entered(from)
		}
		return Change{Component: c.component, From: from, To: r.to, Code: r.code, Text: measured, At: now}, true
	}
	return Change{}, false
}

// finding gives what is wrong, and false if nothing is.
func (c *check) finding() (Finding, bool) {
	if c.State == OK {
		return Finding{}, false
	}
	problem, _ := c.Code.Problem()
	return Finding{
		Code: c.Code, Component: c.component, State: c.State,
		Text: c.text(), Remedy: problem.Remedy, Since: c.Since,
	}, true
}
