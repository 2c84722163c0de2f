// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// check judges one thing by its declaration, its evidence and its rules.
type check struct {
	declaration
	evidence
	*track

	rules []rule // the ways of the evidence
	told  string // why it was not available when that was said last
}

// evidence is what a check holds against the machine. One that has nothing to say to some of it embeds [plain].
type evidence interface {
	reader
	teller
	keeper
}

// reader takes in what there is to judge by.
type reader interface {
	// begin says that nobody looked before now.
	begin(now time.Duration)
	// read takes in what is new.
	read(Input)
	// absent says why there is nothing to judge by, without numbers that change; empty when there is. A vital check has
	// a rule for that instead.
	absent() string
}

// teller says how things are.
type teller interface {
	// ways gives the rules. They are tried in order; the first that holds is followed, and then all are tried again.
	ways() []rule
	// entered is told of every change.
	entered(from State)
	// text describes the present state by the newest evidence; it is asked when there is a problem, or to say what is
	// well.
	text() string
	// report adds what was measured to the verdict.
	report(*Verdict)
}

// keeper is what survives a restart of the agent beside the track.
type keeper interface {
	// memory gives it as JSON makes it; nil for nothing.
	memory() any
	// recall takes what memory gave in a snapshot of that moment.
	recall(memory []byte, at, now time.Duration) error
}

// plain is evidence of which nothing but the reading counts.
type plain struct{}

func (plain) begin(time.Duration)                               {}
func (plain) absent() string                                    { return "" }
func (plain) entered(State)                                     {}
func (plain) report(*Verdict)                                   {}
func (plain) memory() any                                       { return nil }
func (plain) recall([]byte, time.Duration, time.Duration) error { return nil }

// newCheck gives a check that has seen nothing yet.
func newCheck(d declaration) *check {
	c := &check{declaration: d, track: &track{State: d.start, Code: d.startCode}}
	c.evidence = d.gather(c.track)
	c.rules = c.ways()
	return c
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

// absent says why an optional check has nothing to judge by. A vital one counts whatever its evidence says.
func (c *check) absent() string {
	if c.Vital {
		return ""
	}
	return c.evidence.absent()
}

// settle follows the rules until none holds, and gives the changes. While there is nothing to judge by it says so once
// and stays where it is.
func (c *check) settle(now time.Duration) []Change {
	if why := c.absent(); why != "" {
		if why == c.told || why == notYet {
			return nil
		}
		c.told = why
		return []Change{{
			Component: c.Component, Check: c.Name, From: c.State, To: c.State, Code: c.Code, NotAvailable: why, At: now,
		}}
	}
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
		c.entered(from)
		return Change{
			Component: c.Component, Check: c.Name, From: from, To: r.to, Code: r.code, Text: measured, At: now,
		}, true
	}
	return Change{}, false
}

// finding gives what is wrong, and false if nothing is. What is known to be harmful does not get better by falling
// silent; anything less does not outlive its reading.
func (c *check) finding() (Finding, bool) {
	why := c.absent()
	if c.State == OK || why != "" && Slow.WorseThan(c.State) {
		return Finding{}, false
	}
	f := Finding{
		Code: c.Code, Component: c.Component, State: c.State, Gates: c.Gates, Text: c.text(), Since: c.Since,
	}
	if many, is := c.evidence.(interface{ count() int }); is {
		f.Count = many.count()
	}
	if graded, is := c.evidence.(interface{ grade() float64 }); is {
		f.Grade = graded.grade()
	}
	if why != "" {
		f.Text = c.Reason + "; " + why + ", so this may be out of date"
	}
	if i := slices.IndexFunc(c.Problems, func(p Problem) bool { return p.Code == c.Code }); i >= 0 {
		f.Remedy = c.Problems[i].Remedy
	}
	return f, true
}
