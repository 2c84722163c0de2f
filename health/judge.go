// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Verdict is what there is to say about the machine at one moment.
type Verdict struct {
	// State is the worst of all checks that gate anything, and Since the moment it was entered.
	State State
	Since time.Duration
	// Gates is what the findings keep from happening, all together.
	Gates Gate
	// Code, Text and Remedy are those of the worst finding that gates anything. With none, Code and Remedy are empty
	// and Text says what was measured.
	Code   Code
	Text   string
	Remedy string
	// Qualified says that the disk passed a qualifying run and has been OK or WARM ever since.
	Qualified bool
	// Recovers says that the state is SLOW for the time that writes took, and that they are not slow any more: their
	// last minute alone would not make the disk SLOW.
	Recovers bool
	// Writes is how long writes to the disk take now.
	Writes Writes
	// Findings are all there are, the worst first, and those that advise only after all that gate something.
	Findings []Finding
	// Checks tells where each check stands, in the order of [Checks].
	Checks []Standing
	// NotAvailable lists the optional checks that have nothing to judge by, and things of which one knows nothing while
	// it looks at others. They count for nothing.
	NotAvailable []Absence
	Figures      Figures
}

// Absence says that an optional check has nothing to judge by.
type Absence struct {
	Check     string
	Component Component
	Why       string
}

// Finding is one thing that is wrong, or not known yet.
type Finding struct {
	Code      Code
	Component Component
	State     State  // the verdict that this finding alone calls for
	Gates     Gate   // what it keeps from happening
	Text      string // what was measured, against its limit
	Remedy    string
	Since     time.Duration // the moment its state was entered
	// Count is how many things are so, each for long enough; 0 where they are not counted.
	Count int
	// Grade is how bad it is, one more for each time that it is twice as bad; 0 where that is not told.
	Grade float64
	// Cause is what writes are most likely slow because of, where that is what was found, and Why says what was
	// measured that speaks for it. Both are empty when nothing does.
	Cause Cause
	Why   string
}

// Change is the edge from one state of a check to another, or from one code to another within a state.
type Change struct {
	Component Component
	Check     string // its name
	From, To  State
	Code      Code   // of the problem from now on, empty if To is OK
	Text      string // what was measured when it happened
	// NotAvailable says why the check has nothing to judge by any more; then all else is as before.
	NotAvailable string
	At           time.Duration
}

// Judge holds what must be remembered between two looks at the machine. It is not safe for concurrent use.
type Judge struct {
	checks []*check

	now    time.Duration
	newest time.Duration // when the newest sample came back
	// devices are those below etcd's data, as told last
	devices       DevicesReading
	circumstances circumstances
	begun         bool
	reset         bool
	state         State
	since         time.Duration
}

// New gives a judge who knows nothing yet. The error says which thresholds make no sense.
func New(t Thresholds) (*Judge, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("cannot judge by these thresholds: %w", err)
	}
	return judgeBy(declarations(t))
}

// judgeBy gives a judge who runs over these checks.
func judgeBy(all []declaration) (*Judge, error) {
	j := &Judge{}
	for i, d := range all {
		if err := d.valid(all[:i]); err != nil {
			return nil, fmt.Errorf("cannot judge by these checks: %w", err)
		}
		c := newCheck(d)
		if err := c.consistent(); err != nil {
			return nil, fmt.Errorf("cannot judge by these checks: %w", err)
		}
		j.checks = append(j.checks, c)
	}
	return j, nil
}

// Observe takes in what is new and gives the verdict, and the changes since the last one in the order in which they
// happened.
func (j *Judge) Observe(in Input) (Verdict, []Change) {
	in = j.plausible(in)
	if !j.begun {
		j.begin(in.Now)
	}
	j.now, j.reset, j.devices = in.Now, false, in.Devices
	j.circumstances.read(in)
	var changes []Change
	for _, c := range j.checks {
		c.read(in)
		changes = append(changes, c.settle(in.Now)...)
	}
	return j.verdict(), changes
}

// Reset tells the judge that an operator has repaired what is FAILED; the next Observe puts it to the proof again. The
// error says that nothing is.
func (j *Judge) Reset() error {
	if !slices.ContainsFunc(j.checks, func(c *check) bool { return c.State == Failed }) {
		return errors.New("cannot reset: nothing is FAILED; see 'quorumctl health' for what is wrong")
	}
	j.reset = true
	return nil
}

func (j *Judge) begin(now time.Duration) {
	j.begun, j.since, j.newest = true, now, now
	for _, c := range j.checks {
		c.Since = now
		c.begin(now)
	}
}

// plausible repairs what a clock or a reading must not say, so that no rule has to think of it.
func (j *Judge) plausible(in Input) Input {
	in.Now = max(in.Now, j.now)
	in.reset = j.reset
	d := &in.Disk
	d.InFlight, d.UsageAge, d.LastCompletion = max(d.InFlight, 0), max(d.UsageAge, 0), min(d.LastCompletion, in.Now)
	if d.Err != nil {
		d.Err = &DiskError{d.Err.Op, d.Err.Errno, min(d.Err.At, in.Now)}
	}
	d.Samples = slices.Clone(d.Samples)
	d.Samples = slices.DeleteFunc(d.Samples, func(s Sample) bool { return s.Lane > LaneWAL })
	for i := range d.Samples {
		s := &d.Samples[i]
		s.End, s.Latency = min(max(s.End, j.newest), in.Now), max(s.Latency, 0)
		j.newest = s.End
	}
	return in
}

func (j *Judge) verdict() Verdict {
	v := Verdict{
		State: OK, Findings: j.findings(), Checks: j.standings(), Figures: Figures{Devices: j.devices},
	}
	missing := map[string]string{}
	for _, c := range j.checks {
		c.report(&v)
		why := c.absent()
		missing[c.Name] = why
		said := slices.ContainsFunc(c.Behind, func(cause string) bool { return missing[cause] == why })
		if why != "" && !said {
			v.NotAvailable = append(v.NotAvailable, Absence{c.Name, c.Component, why})
		}
		if partly, is := c.evidence.(interface{ unknown() []string }); is {
			for _, what := range partly.unknown() {
				v.NotAvailable = append(v.NotAvailable, Absence{c.Name, c.Component, what})
			}
		}
	}
	v.Text = v.Checks[0].Text
	j.circumstances.attributed(&v)
	if len(v.Findings) > 0 && v.Findings[0].Gates != Nothing {
		worst := v.Findings[0]
		v.State, v.Code, v.Text, v.Remedy = worst.State, worst.Code, worst.Text, worst.Remedy
		for _, f := range v.Findings {
			v.Gates |= f.Gates
			v.Recovers = v.Recovers && (f.Gates == Nothing || f.Code == DiskFsyncSlow || Slow.WorseThan(f.State))
		}
	}
	if v.State != j.state {
		j.state, j.since = v.State, j.now
	}
	v.Since = j.since
	return v
}

// findings gives what is wrong, without what its cause says already: first what gates something, the worst first, and
// then what advises only.
func (j *Judge) findings() []Finding {
	var listed []Finding
	for _, c := range j.checks {
		if f, wrong := c.finding(); wrong && j.cause(c, f) == "" {
			listed = append(listed, f)
		}
	}
	slices.SortStableFunc(listed, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(min(b.Gates, 1), min(a.Gates, 1)),
			cmp.Compare(b.State.weight(), a.State.weight()),
		)
	})
	return listed
}

// Rule declares one way from a state to another, or from a code to another within a state.
type Rule struct {
	Component Component
	From      []State
	To        State
	Code      Code   // the problem while in To, empty if that is OK
	When      string // the condition, with its numbers
	Return    bool   // a recovery: each one doubles the time the next to this state takes, up to 4 h, for 24 h
}

// Rules gives all ways between states that the judge knows, in the order in which they are tried.
func (j *Judge) Rules() []Rule {
	var all []Rule
	for _, c := range j.checks {
		all = append(all, c.declared()...)
	}
	return all
}

// declared gives the rules of one check.
func (c *check) declared() []Rule {
	var all []Rule
	for _, r := range c.rules {
		all = append(all, Rule{c.Component, r.from, r.to, r.code, r.when, r.isReturn})
	}
	return all
}
