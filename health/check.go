// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// check evaluates one property of the machine, with a declaration, evidence and rules.
type check struct {
	declaration
	evidence
	*track

	rules    []rule // the evidence's rules
	reported string // the last reported reason for a missing reading
}

// evidence is what a check measures, and how it decides. Embed [plain] for default methods.
type evidence interface {
	reader
	decider
	keeper
}

// reader consumes input.
type reader interface {
	// begin is called before the first input, with its time.
	begin(now time.Duration)
	// read processes new input.
	read(Input)
	// absent returns why there is no reading, as a stable text, or "" if there is one. A vital check instead has a rule
	// for a missing reading.
	absent() string
}

// decider decides and describes the state.
type decider interface {
	// transitions returns the rules. The first rule that holds is applied, then all are tried again.
	transitions() []rule
	// entered is called after every transition.
	entered(from State)
	// text describes the current state with the newest measurement, even while the state is OK.
	text() string
	// report adds measurements to the assessment.
	report(*Assessment)
}

// keeper persists evidence across restarts of the agent.
type keeper interface {
	// memory returns the evidence to store as JSON, or nil if there is none.
	memory() any
	// recall restores what memory returned. at is the time of that call, and now the current time. It returns an error
	// if the memory is impossible.
	recall(memory []byte, at, now time.Duration) error
}

// plain has the default methods of evidence.
type plain struct{}

func (plain) begin(time.Duration)                               {}
func (plain) absent() string                                    { return "" }
func (plain) entered(State)                                     {}
func (plain) report(*Assessment)                                {}
func (plain) memory() any                                       { return nil }
func (plain) recall([]byte, time.Duration, time.Duration) error { return nil }

// newCheck returns a check that has not received any input yet.
func newCheck(d declaration) *check {
	c := &check{declaration: d, track: &track{State: d.start, Code: d.startCode}}
	c.evidence = d.gather(c.track)
	c.rules = c.transitions()
	return c
}

// rule is a transition between states, or between codes within a state.
type rule struct {
	from []State
	to   State
	code Code // code of the finding in state to; empty if to is OK
	// when is the condition with its numbers, for display.
	when string
	// holds returns the measurement with its limit, and whether the condition holds.
	holds func() (string, bool)
	// isReturn marks a recovery. Each recovery doubles the time that the next one takes.
	isReturn bool
}

// track is the state of a check. It survives restarts of the agent.
type track struct {
	State State `json:"state"`
	Code  Code  `json:"code,omitempty"`
	// Since is when the state was entered.
	Since time.Duration `json:"since"`
	// Reason describes the measurement that caused the current state and code.
	Reason string `json:"reason,omitempty"`
	// Returns contains the times of the last recoveries to each state: see rule.isReturn.
	Returns map[State][]time.Duration `json:"returns,omitempty"`
}

const (
	patienceLimit = 4 * time.Hour
	patienceSpan  = 24 * time.Hour
	// returnsKept is the number of recoveries to remember, enough to double any time up to patienceLimit.
	returnsKept = 16
	// stepsPerRound bounds the transitions of one round. The tests prove that no chain is that long.
	stepsPerRound = 8
)

// patience returns how long a recovery to the state takes: base, doubled for every recovery to that state in the last
// 24 h, at most 4 h.
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

// absent returns why an optional check has no reading. For a vital check it returns "", because a vital check counts
// even without a reading.
func (c *check) absent() string {
	if c.Vital {
		return ""
	}
	return c.evidence.absent()
}

// settle applies rules until none holds, and returns the changes. Without a reading it keeps the state. It then returns
// the reason as a change, unless that reason was the last one reported or nothing has been measured yet.
func (c *check) settle(now time.Duration) []Change {
	if why := c.absent(); why != "" {
		if why == c.reported || why == notYet {
			return nil
		}
		c.reported = why
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

// finding returns the current finding, and false if there is none. While the check has no reading, only a finding of
// SLOW or worse counts.
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
		f.Text = c.Reason + "; " + why + ", so this may be stale"
	}
	if i := slices.IndexFunc(c.Problems, func(p Problem) bool { return p.Code == c.Code }); i >= 0 {
		f.Remedy = c.Problems[i].Remedy
	}
	return f, true
}
