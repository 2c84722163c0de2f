// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Verdict is what there is to say about the machine at one moment.
type Verdict struct {
	// State is the worst of all checks, and Since the moment it was entered.
	State State
	Since time.Duration
	// Code, Text and Remedy are those of the worst finding. With none, Code and Remedy are empty and Text says what was
	// measured.
	Code   Code
	Text   string
	Remedy string
	// Qualified says that the disk passed a qualifying run and has been OK or WARM ever since.
	Qualified bool
	// Findings are all there are, the worst first.
	Findings []Finding
	Figures  Figures
}

// Finding is one thing that is wrong, or not known yet.
type Finding struct {
	Code      Code
	Component Component
	State     State  // the verdict that this finding alone calls for
	Text      string // what was measured, against its limit
	Remedy    string
	Since     time.Duration // the moment its state was entered
}

// Change is the edge from one state of a check to another, or from one code to another within a state.
type Change struct {
	Component Component
	From, To  State
	Code      Code   // of the problem from now on, empty if To is OK
	Text      string // what was measured when it happened
	At        time.Duration
}

// Judge holds what must be remembered between two looks at the machine. It is not safe for concurrent use.
type Judge struct {
	limits Thresholds
	checks []*check
	fsync  *fsync
	cpu    *cpu

	now   time.Duration
	begun bool
	reset bool
	state State
	since time.Duration
}

// New gives a judge who knows nothing yet. The error says which thresholds make no sense.
func New(t Thresholds) (*Judge, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("cannot judge by these thresholds: %w", err)
	}
	j := &Judge{limits: t}
	var disk, processor *check
	j.fsync, disk = fsyncCheck(t)
	j.cpu, processor = cpuCheck(t.Starved)
	// A new check is one line here: its function declares it and has its reader.
	j.checks = []*check{disk, spaceCheck(t), processor}
	for _, c := range j.checks {
		c.State, c.Code = c.start, c.startCode
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
	j.now, j.reset = in.Now, false
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
	j.begun, j.since = true, now
	j.fsync.begin(now)
	for _, c := range j.checks {
		c.Since = now
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
	newest := j.fsync.lastSample
	for i := range d.Samples {
		s := &d.Samples[i]
		s.End, s.Latency = min(max(s.End, newest), in.Now), max(s.Latency, 0)
		newest = s.End
	}
	return in
}

func (j *Judge) verdict() Verdict {
	v := Verdict{State: OK, Qualified: j.fsync.qualified, Figures: j.figures()}
	for _, c := range j.checks {
		v.State = Worst(v.State, c.State)
		if f, wrong := c.finding(); wrong {
			v.Findings = append(v.Findings, f)
		}
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return b.State.weight() - a.State.weight() })
	if v.State != j.state {
		j.state, j.since = v.State, j.now
	}
	v.Since, v.Text = j.since, j.fsync.text()
	if len(v.Findings) > 0 {
		worst := v.Findings[0]
		v.Code, v.Text, v.Remedy = worst.Code, worst.Text, worst.Remedy
	}
	return v
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
		for _, r := range c.rules {
			all = append(all, Rule{c.component, r.from, r.to, r.code, r.when, r.isReturn})
		}
	}
	return all
}
